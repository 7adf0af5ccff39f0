//! Sessions with MCP servers, of callers who are not let in any more.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::world::{OPERATOR_KEY, World};

const ACCEPT: [(&str, &str); 1] = [("accept", "application/json, text/event-stream")];

#[tokio::test]
async fn the_processes_of_a_caller_end_when_its_pass_does() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().display().to_string();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/peer.py");
    let spec = json!({ "name": "p", "namespace": "desk", "command": "python3", "args": [script, "stdio", state] });
    world.gateway.upstreams().put(serde_json::from_value(spec).unwrap(), true);
    let (ended, kept) = (world.agent("a@desk").await, world.agent("b@desk").await);
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let pids = || std::fs::read_to_string(folder.path().join("pids")).unwrap_or_default();
    let mut sessions = Vec::new();
    for agent in [&ended, &ended, &kept] {
        let before = pids();
        let said = world.http("POST", "/servers/p/mcp", Some(&agent.token), &ACCEPT, Some(&frame)).await;
        assert_eq!(said.status, 200, "{said:?}");
        let own: Vec<String> = pids()[before.len()..].lines().map(str::to_owned).collect();
        sessions.push((said.headers["mcp-session-id"].to_str().unwrap().to_owned(), own));
    }
    let is_there = |pid: &String| Path::new("/proc").join(pid).exists();
    assert!(sessions.iter().all(|(_, pids)| !pids.is_empty() && pids.iter().any(is_there)), "{sessions:?}");
    world.call(Some(OPERATOR_KEY), "token/revoke", json!({ "agent_id": "a@desk" })).await.result();
    let began = Instant::now();
    // The gateway's own process may have started between two of these, and stays.
    while sessions[..2].iter().flat_map(|(_, pids)| pids).filter(|pid| is_there(pid)).count() > 1 {
        assert!(began.elapsed() < Duration::from_secs(30), "{sessions:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    let headers = [ACCEPT[0], ("mcp-session-id", sessions[2].0.as_str())];
    let said = world.http("POST", "/servers/p/mcp", Some(&kept.token), &headers, Some(&ping)).await;
    assert_eq!(said.status, 200, "another's goes on: {said:?}");
}
