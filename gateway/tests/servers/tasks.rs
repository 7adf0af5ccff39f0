//! Tasks that servers do.

use std::path::Path;

use serde_json::json;

use crate::world::{Gateway, Peer, heard, script, state, until};

fn calls_of(state: &str, tool: &str) -> usize {
    heard(state)
        .lines()
        .filter(|line| line.contains("tools/call") && line.contains(&format!("\"name\":\"{tool}\"")))
        .count()
}

#[test]
fn a_session_that_is_lost_is_no_failure_of_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let mut peer = Peer::start(state(folder.path(), "peer"), &[]);
    let gateway = Gateway::start(folder.path(), "");
    gateway.ok(&["add", "mcp", "peer", &peer.url()]);
    for _ in 0..3 {
        peer.restart();
        let told =
            gateway.ok(&["--json", "submit", "--to", "peer@mcp", "--capability", "count", "--params", "{}", "--wait"]);
        let task: serde_json::Value = serde_json::from_str(&told).unwrap();
        let attempts = task["attempts"].as_array().map_or(0, Vec::len);
        assert!(task["phase"] == "completed" && attempts == 1, "{task:#}");
    }
    let ran = std::fs::read_to_string(Path::new(&peer.state).join("count")).unwrap_or_default();
    assert_eq!(ran.lines().count(), 3, "each call ran once, at the server that knew the session");
    assert_eq!(calls_of(&peer.state, "count"), 6, "what a server did not know was refused before");
    gateway.ok(&["remove", "mcp", "peer"]);
    until("the session is closed", || heard(&peer.state).contains("deleted s").then_some(()));
}

#[test]
fn progress_is_shown_with_the_task() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path(), "");
    let peer = Peer::start(state(folder.path(), "h"), &[]);
    let state = state(folder.path(), "p");
    gateway.ok(&["add", "mcp", "p", "--", "python3", &script(), "stdio", &state]);
    gateway.ok(&["add", "mcp", "h", &peer.url()]);
    for (agent, state) in [("p@mcp", &state), ("h@mcp", &peer.state)] {
        let task = gateway.call("task/submit", &json!({ "to_agent": agent, "capability": "progress", "params": {} }));
        let id = &task["task_id"];
        let task = until("progress", || {
            let task = gateway.call("task/get", &json!({ "task_id": id }));
            (!task["progress"].is_null()).then_some(task)
        });
        assert_eq!((&task["progress"]["progress"], &task["progress"]["total"]), (&json!(2), &json!(2)), "{task}");
        std::fs::write(std::path::Path::new(state).join("go"), "").unwrap();
        let task = gateway.call("task/wait", &json!({ "task_id": id, "wait": "20s" }));
        assert_eq!(task["phase"], "completed", "{task}");
    }
}

#[test]
fn a_call_with_a_key_runs_once_and_a_servers_no_is_the_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(folder.path(), "");
    let state = state(folder.path(), "p");
    gateway.ok(&["add", "mcp", "p", "--", "python3", &script(), "stdio", &state]);
    let submit = json!({ "to_agent": "p@mcp", "capability": "count", "params": {}, "idempotency_key": "order 17" });
    let (first, second) = (gateway.call("reach", &submit), gateway.call("reach", &submit));
    assert_eq!(first["result"], second["result"]);
    assert_eq!(std::fs::read_to_string(std::path::Path::new(&state).join("count")).unwrap(), "\"operator/order 17\"\n");
    let failed = gateway.call("reach", &json!({ "to_agent": "p@mcp", "capability": "fail", "params": {} }));
    assert_eq!((&failed["phase"], &failed["failure"]["message"]), (&json!("failed"), &json!("no such thing")));
    assert_eq!(failed["failure"]["data"]["vendor"], 7, "the result as the server wrote it");
    let wrong = gateway.run(&["reach", "--to", "p@mcp", "--capability", "count", "--params", "[]"]);
    assert!(wrong.err.contains("params_mismatch"), "its schema is held to before it is asked: {}", wrong.err);
}

/// `count` is a `write`, and counts before it refuses.
#[test]
fn a_write_that_its_server_calls_wrong_is_not_sent_again() {
    for (status, code, runs) in [
        ("400", "agent_failed", 1),
        ("422", "agent_failed", 1),
        ("500", "outcome_unknown", 1),
        ("302", "outcome_unknown", 1),
        ("401", "unreachable", 3),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let gateway = Gateway::start(folder.path(), "");
        let peer = Peer::start(state(folder.path(), "h"), &["--then", status]);
        gateway.ok(&["add", "mcp", "h", &peer.url()]);
        let failed = gateway.call("reach", &json!({ "to_agent": "h@mcp", "capability": "count", "params": {} }));
        assert_eq!(failed["failure"]["code"], code, "{status} {failed}");
        let count = std::fs::read_to_string(std::path::Path::new(&peer.state).join("count")).unwrap();
        assert_eq!(count.lines().count(), runs, "{status} {failed}");
    }
}
