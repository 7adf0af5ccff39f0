//! Agents that are meant to be right: those of this project, and those that were written from the documentation alone.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod common;

use std::net::TcpListener;
use std::path::Path;

use common::built::{project, python};
use common::{Done, file, run};
use serde_json::json;

#[track_caller]
fn is_right(name: &str, done: &Done) {
    println!("{name}: {} in {:?}; skipped {:?}", done.report["badge"], done.took, done.with("skipped"));
    assert_eq!(done.failures(), "", "{name}");
    assert_eq!(done.code, 0, "{name}: idle {}", done.report["idle_profiles"]);
    assert!(done.took.as_secs() < 30, "{name}: it took {:?}", done.took);
}

/// A port that is free just now.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_among_the_examples_meets_every_requirement() {
    let folder = tempfile::tempdir().unwrap();
    let log = project("examples/data/shop.log");
    let card = file(
        folder.path(),
        "card.json",
        &json!({
            "agent_id": "log_desk@demo",
            "endpoints": [{ "protocol": "process", "address": "python3 log_report.py" }],
            "capabilities": [{
                "name": "report_on_log", "description": "Reports on a log file.", "effect": "read",
                "input_schema": { "type": "object", "required": ["path"], "properties": { "path": { "type": "string" } }, "examples": [{ "path": log }] },
                "output_schema": { "type": "object", "required": ["lines"] },
            }],
        }),
    );
    let command = format!("python3 {}", project("examples/agents/log_report.py"));
    let arguments = ["agent", "--process", &command, "--card", card.to_str().unwrap()];
    is_right("log_report", &run(&arguments).done().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fastapi_agent_that_was_written_from_the_documentation_meets_every_requirement() {
    let python = python::with("fastapi", &["fastapi", "uvicorn", "httpx"]);
    let start = format!("{} {} --port {}", python.display(), project("examples/python/fastapi_agent.py"), port());
    let arguments = ["agent", "--http", "--listen", "127.0.0.1:0", "--start", &start];
    is_right("FastAPI", &run(&arguments).done().await);
}

/// The listings in Python on the page that tells how to write an agent.
fn listings() -> Vec<String> {
    let page = std::fs::read_to_string(project("docs/write-an-agent.md")).unwrap();
    page.split("```python\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// A listing, as its reader would save it, and parameters that make sense to it.
fn saved(folder: &Path, listing: &str) -> (String, String) {
    let script = folder.join("agent.py");
    std::fs::write(&script, listing).unwrap();
    let samples = file(folder, "samples.json", &json!({ "count_words": { "params": "one two" } }));
    (format!("python3 {}", script.display()), samples.display().to_string())
}

/// On a port that is free.
#[tokio::test(flavor = "multi_thread")]
async fn the_http_agent_in_the_documentation_meets_every_requirement() {
    let folder = tempfile::tempdir().unwrap();
    let (start, samples) = saved(folder.path(), &listings()[0].replace("9000", &port().to_string()));
    let arguments = ["agent", "--http", "--listen", "127.0.0.1:0", "--start", &start, "--samples", &samples];
    is_right("the HTTP agent in the documentation", &run(&arguments).done().await);
}

/// With what it says that it takes from the one before: the first lines, and `tell`.
#[tokio::test(flavor = "multi_thread")]
async fn the_pulling_agent_in_the_documentation_meets_every_requirement() {
    let folder = tempfile::tempdir().unwrap();
    let listings = listings();
    let paragraphs: Vec<&str> = listings[0].split("\n\n").collect();
    let head: Vec<&str> = listings[0].lines().take_while(|line| !line.starts_with("CARD")).collect();
    let tell = paragraphs.iter().find(|paragraph| paragraph.starts_with("def tell")).unwrap();
    let (start, samples) = saved(folder.path(), &[&head.join("\n"), *tell, &listings[1]].join("\n\n"));
    let arguments = ["agent", "--ws-listen", "127.0.0.1:0", "--start", &start, "--samples", &samples];
    is_right("the pulling agent in the documentation", &run(&arguments).done().await);
}
