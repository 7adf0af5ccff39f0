//! The example agents meet every requirement of the conformance runner: it starts their programs, and is their gateway.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

use std::io::{BufRead, BufReader};
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

/// The example agents, each with the test that runs it. Those on the Python SDK are in another folder, and not among them.
const AGENTS: [(&str, &str); 4] = [
    ("src/bin/reach-example-mcp.rs", "here"),
    ("src/bin/reach-example-summarizer.rs", "here"),
    ("src/bin/reach-example-worker.rs", "here"),
    ("agents/log_report.py", "conformance/tests/good_agents.rs"),
];

#[test]
fn every_example_agent_has_its_run() {
    let root = env!("CARGO_MANIFEST_DIR");
    let files = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(format!("{root}/{folder}")).unwrap();
        entries.map(|entry| format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap())).collect()
    };
    let is_agent = |path: &String| path.starts_with("agents/") || path.contains("/reach-example-");
    let mut found: Vec<String> = [files("src/bin"), files("agents")].concat().into_iter().filter(is_agent).collect();
    found.sort();
    let mut listed = AGENTS.map(|(path, _)| path.to_owned());
    listed.sort();
    assert_eq!(found, listed, "a new example agent needs a run here, or where its row says");
    for (path, place) in AGENTS {
        let text = std::fs::read_to_string(if place == "here" {
            format!("{root}/tests/conformance.rs")
        } else {
            format!("{root}/../{place}")
        });
        let name = Path::new(path).file_stem().unwrap().to_str().unwrap();
        let starts = |line: &str| line.contains(name) && (line.contains("CARGO_BIN_EXE") || line.contains("python3"));
        assert!(text.unwrap().lines().any(starts), "{place} starts {name}");
    }
}

#[test]
fn the_mcp_server_meets_every_must() {
    let mut server = std::process::Command::new(env!("CARGO_BIN_EXE_reach-example-mcp"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut url).unwrap();
    is_right(&["agent", "--mcp", url.trim(), "--level", "must"]);
    // It ends with its input.
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}

#[test]
fn the_summarizer_over_http_meets_every_requirement() {
    let folder = tempfile::tempdir().unwrap();
    let samples = documents(folder.path());
    let ledger = folder.path().join("ledger");
    let start = format!("{} --ledger {}", env!("CARGO_BIN_EXE_reach-example-summarizer"), ledger.display());
    is_right(&["agent", "--http", "--listen", "127.0.0.1:0", "--start", &start, "--samples", &samples]);
}

/// Checks the worker with these flags. `register`: the file in which it stamps.
fn the_worker_is_right(folder: &Path, register: &str, flags: &[&str]) {
    let (samples, ledger) = (documents(folder), folder.join("ledger"));
    let worker = env!("CARGO_BIN_EXE_reach-example-worker");
    let start = format!("{worker} --ledger {} --register {register}", ledger.display());
    let arguments = ["agent", "--ws-listen", "127.0.0.1:0", "--start", &start, "--samples", &samples];
    is_right(&[&arguments[..], flags].concat());
}

#[test]
fn the_worker_that_is_asked_for_a_token_meets_every_requirement() {
    let folder = tempfile::tempdir().unwrap();
    let register = folder.path().join("register").display().to_string();
    the_worker_is_right(folder.path(), &register, &["--tokens", "--only", "identity,registers"]);
}

#[test]
fn the_worker_over_a_web_socket_meets_every_requirement_and_stamps_once() {
    let folder = tempfile::tempdir().unwrap();
    let register = folder.path().join("register").display().to_string();
    the_worker_is_right(folder.path(), &register, &["--effects", &register]);
}
