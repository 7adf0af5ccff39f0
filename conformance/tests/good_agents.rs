//! Agents that are meant to be right: those of this project, and those that were written from the documentation alone.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod common;

use std::net::TcpListener;

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

/// The listing in the documentation, as its reader would save it, on a port that is free.
#[tokio::test(flavor = "multi_thread")]
async fn the_agent_in_the_documentation_meets_every_must() {
    let folder = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(project("docs/write-an-agent.md")).unwrap();
    let listing = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let port = port().to_string();
    let listing = listing
        .replace("9000", &port)
        .replace("GATEWAY = \"http://127.0.0.1:7340\"", "import os\nGATEWAY = os.environ[\"AGENT_REACH_URL\"]");
    let script = folder.path().join("agent.py");
    std::fs::write(&script, listing).unwrap();
    let start = format!("python3 {}", script.display());
    let samples = file(folder.path(), "samples.json", &json!({ "count_words": { "params": "one two" } }));
    let arguments = [
        "agent",
        "--http",
        "--listen",
        "127.0.0.1:0",
        "--start",
        &start,
        "--samples",
        samples.to_str().unwrap(),
        "--level",
        "must",
    ];
    is_right("the listing in the documentation", &run(&arguments).done().await);
}
