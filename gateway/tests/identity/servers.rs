//! Sessions with MCP servers, of callers who are not let in any more.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::matrix::json_of;
use crate::world::{Agent, OPERATOR_KEY, World, pass};

/// How long a process may take.
const PATIENCE: Duration = Duration::from_secs(30);
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

/// A server that is a process; its folder has what it was asked.
fn put(world: &World) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().display().to_string();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/peer.py");
    let spec = json!({ "name": "p", "namespace": "desk", "command": "python3", "args": [script, "stdio", state] });
    world.gateway.upstreams().put(serde_json::from_value(spec).unwrap(), true);
    folder
}

/// The session that an agent opens with it.
async fn session(world: &World, agent: &Agent) -> String {
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let said = world.http("POST", "/servers/p/mcp", Some(&agent.token), &ACCEPT, Some(&frame)).await;
    said.headers["mcp-session-id"].to_str().unwrap().to_owned()
}

fn hang() -> Value {
    let params = json!({ "name": "hang", "arguments": {} });
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })
}

#[tokio::test]
async fn whoever_names_anothers_session_with_a_server_is_refused_and_written_down() {
    let world = World::new().await;
    let _folder = put(&world);
    let (own, other) = (world.agent("a@desk").await, world.agent("b@desk").await);
    let session = session(&world, &own).await;
    for verb in ["POST", "GET", "DELETE"] {
        let headers = [ACCEPT[0], ("mcp-session-id", session.as_str())];
        let body = (verb == "POST").then(hang);
        let said = world.http(verb, "/servers/p/mcp", Some(&other.token), &headers, body.as_ref()).await;
        assert_eq!(said.status, 404, "{verb}: {said:?}");
    }
    let rows = world.refusals().await;
    let is_own = |row: &(String, String, String, u64)| row.0 == other.id && row.2 == "invalid_request";
    assert!(rows.iter().all(is_own) && rows[0].1 == "/servers/{name}/mcp", "{rows:?}");
    assert_eq!(rows.iter().map(|row| row.3).sum::<u64>(), 3, "{rows:?}");
}

#[tokio::test]
async fn a_call_that_waits_on_the_stream_of_a_server_is_answered_when_its_token_ends() {
    let world = World::new().await;
    let folder = put(&world);
    let agent = world.agent("a@desk").await;
    let session = session(&world, &agent).await;
    let headers = [ACCEPT[0], ("mcp-session-id", session.as_str())];
    let request = world.request("POST", "/servers/p/mcp", Some(&agent.token), &headers, Some(&hang()));
    let holds = async {
        let began = Instant::now();
        while !std::fs::read_to_string(folder.path().join("requests")).unwrap_or_default().contains("hang") {
            assert!(began.elapsed() < PATIENCE, "the server is not asked");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // A stream is begun once an answer has taken so long.
        pass(Duration::from_secs(3)).await;
    };
    let (response, ()) = tokio::join!(request.send(), holds);
    let reads = tokio::time::timeout(PATIENCE, response.unwrap().text());
    let revoke = world.call(Some(OPERATOR_KEY), "token/revoke", json!({ "agent_id": agent.id }));
    let (text, _) = tokio::join!(reads, revoke);
    let text = text.expect("the stream goes on").unwrap();
    let last = json_of(&text);
    assert_eq!((&last["id"], &last["error"]["data"]["code"]), (&json!(7), &json!("token_revoked")), "{text}");
    let row = (agent.id, "/servers/{name}/mcp".to_owned(), "token_revoked".to_owned(), 1);
    assert_eq!(world.refusals().await, [row]);
}
