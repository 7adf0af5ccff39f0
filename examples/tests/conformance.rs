//! The example agents meet every requirement of the conformance runner: it starts their programs, and is their gateway.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Samples for agents that work on documents: a short one, and one that is dwelt on.
fn documents(folder: &Path) -> String {
    let project = |path: &str| format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
    let (readme, log) = (project("README.md"), project("examples/data/shop.log"));
    let samples = json!({
        "summarize_document": {
            "params": { "path": log }, "slow": { "path": readme, "pace_ms": 12 }, "bad": { "path": 7 },
        },
        "stamp_document": { "params": { "path": log } },
    });
    let path = folder.join("samples.json");
    std::fs::write(&path, samples.to_string()).unwrap();
    path.display().to_string()
}

#[track_caller]
fn is_right(arguments: &[&str]) {
    let began = Instant::now();
    let (code, report) = reach_conformance::check(arguments.iter().copied()).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let with = |status: &str| -> Vec<Value> {
        report["results"].as_array().unwrap().iter().filter(|row| row["status"] == status).cloned().collect()
    };
    let skipped: Vec<String> = with("skipped").iter().map(|row| format!("{}: {}", row["id"], row["why"])).collect();
    println!("{} in {:?}, skipped:\n{}", report["badge"], began.elapsed(), skipped.join("\n"));
    assert_eq!(with("failed"), Vec::<Value>::new());
    assert_eq!(code, 0, "nothing ran in {}", report["idle_profiles"]);
    assert!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
}

#[test]
fn the_summarizer_over_http_meets_every_requirement() {
    let folder = tempfile::tempdir().unwrap();
    let samples = documents(folder.path());
    let ledger = folder.path().join("ledger");
    let start = format!("{} --ledger {}", env!("CARGO_BIN_EXE_reach-example-summarizer"), ledger.display());
    is_right(&["agent", "--http", "--listen", "127.0.0.1:0", "--start", &start, "--samples", &samples]);
}

#[test]
fn the_worker_over_a_web_socket_meets_every_requirement_and_stamps_once() {
    let folder = tempfile::tempdir().unwrap();
    let samples = documents(folder.path());
    let (ledger, register) = (folder.path().join("ledger"), folder.path().join("register").display().to_string());
    let worker = env!("CARGO_BIN_EXE_reach-example-worker");
    let start = format!("{worker} --ledger {} --register {register}", ledger.display());
    let arguments = ["agent", "--ws-listen", "127.0.0.1:0", "--start", &start, "--samples", &samples];
    is_right(&[&arguments[..], &["--effects", &register]].concat());
}
