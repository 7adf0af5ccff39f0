//! Calls that wait when their caller's token ends, over every road: each has its answer, under its own id and before its stream
//! or connection is closed, and its row in the audit log, in the caller's name. And whoever names another's session.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::ended::{ENDS, ROADS, ask, end, submitted};
use super::matrix::json_of;
use super::world::{Agent, OPERATOR_KEY, World, pass};

const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");
const PATIENCE: Duration = Duration::from_secs(20);

/// Has the token end once so many tasks are waited for.
async fn ends_once_waited_for(world: &World, tasks: usize, agent: &Agent, how: &str) {
    while world.gateway.waits() < tasks {
        tokio::task::yield_now().await;
    }
    end(world, agent, how).await;
}

async fn pair(world: &World) -> (Agent, Agent) {
    (world.agent("desk@media").await, world.agent("news@media").await)
}

fn row(actor: &Agent, what: &str, code: &str, count: u64) -> (String, String, String, u64) {
    (actor.id.clone(), what.to_owned(), code.to_owned(), count)
}

#[tokio::test]
async fn a_call_that_ends_with_its_token_has_one_row_in_its_callers_name() {
    for (number, road) in ROADS.iter().enumerate() {
        let world = World::new().await;
        let (asker, worker) = pair(&world).await;
        let session = world.mcp(Some(&asker.token)).await.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let task = submitted(&world, &asker, &worker).await;
        let (how, code) = ENDS[number % ENDS.len()];
        let waits = ask(&world, road, (&asker, &session), &worker, &task);
        let (said, ()) = tokio::join!(waits, ends_once_waited_for(&world, 1, &asker, how));
        said.refused(code);
        let what = match *road {
            "GET /tasks/{id}/result" => "/tasks/{id}/result",
            "POST /reach" => "/reach",
            "POST /agent/{id}/invoke" => "/agent/{id}/invoke",
            tool if tool.starts_with("tools/call") => "/mcp",
            method => method,
        };
        assert_eq!(world.refusals().await, [row(&asker, what, code, 1)], "{road}");
    }
}

fn call(id: u64, method: &str, mut params: Value) -> Value {
    if !method.starts_with("task/") && method != "reach" {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// What waits on a connection, how many tasks are waited for by it, and how often which method.
fn frames(path: &str, (asker, worker, task): (&Agent, &Agent, &str)) -> (Vec<Value>, usize, Vec<(&'static str, u64)>) {
    let mut frames = Vec::new();
    let mut add = |method: &str, params: Value| frames.push(call(frames.len() as u64, method, params));
    if path == "/rpc/ws" {
        add("task/claim", json!({ "agent_id": asker.id, "wait": "30s" }));
        for _ in 0..8 {
            add("task/wait", json!({ "task_id": task, "wait": "30s" }));
            add("reach", json!({ "to_agent": worker.id, "capability": "work", "wait": "30s" }));
        }
        return (frames, 9, vec![("task/claim", 1), ("task/wait", 8), ("reach", 8)]);
    }
    add("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    for _ in 0..8 {
        add("tools/call", json!({ "name": "work", "arguments": {} }));
    }
    (frames, 8, vec![("subscriptions/listen", 1), ("tools/call", 8)])
}

#[tokio::test]
async fn what_waits_on_a_connection_has_its_answers_before_that_is_closed() {
    for path in ["/rpc/ws", "/mcp/ws"] {
        for (how, code) in ENDS {
            let world = World::new().await;
            let (asker, worker) = pair(&world).await;
            let task = submitted(&world, &asker, &worker).await;
            let mut socket = world.socket(path, Some(&asker.token)).await.unwrap();
            let (frames, tasks, methods) = frames(path, (&asker, &worker, &task));
            for frame in &frames {
                socket.send(Message::text(frame.to_string())).await.unwrap();
            }
            let reads = async {
                let mut answered = Vec::new();
                loop {
                    match socket.next().await.unwrap().unwrap() {
                        Message::Text(text) => {
                            let said: Value = serde_json::from_str(&text).unwrap();
                            if let Some(id) = said["id"].as_u64() {
                                assert_eq!(said["error"]["data"]["code"], code, "{path} {how}: {said}");
                                answered.push(id);
                            }
                        }
                        Message::Close(close) => return (answered, u16::from(close.unwrap().code)),
                        Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
                    }
                }
            };
            let reads = tokio::time::timeout(PATIENCE, reads);
            let (read, ()) = tokio::join!(reads, ends_once_waited_for(&world, tasks, &asker, how));
            let (mut answered, closed) = read.unwrap_or_else(|_| panic!("{path} {how}: it goes on"));
            answered.sort_unstable();
            assert_eq!(answered, (0..frames.len() as u64).collect::<Vec<_>>(), "{path} {how}");
            assert_eq!(closed, if code == "superseded" { 4409 } else { 4401 }, "{path} {how}");
            // Those alike are counted together, under no method if there were several.
            let rows = world.refusals().await;
            assert!(rows.iter().all(|row| row.0 == asker.id && row.2 == code), "{path} {how}: {rows:?}");
            let counted: u64 = rows.iter().map(|row| row.3).sum();
            assert_eq!(counted, methods.iter().map(|(_, count)| count).sum::<u64>(), "{path} {how}: {rows:?}");
            assert!(methods.iter().any(|(method, _)| rows[0].1 == *method || rows.iter().any(|row| row.1 == *method)));
        }
    }
}

/// How a client waits for the answer to a call on a stream of events.
const STREAMS: [&str; 3] = ["alone", "in a session", "taken up again"];

async fn stream(world: &World, kind: &str, asker: &Agent) -> reqwest::Response {
    let token = Some(asker.token.as_str());
    let session = world.mcp(token).await.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let params = json!({ "name": "work", "arguments": {} });
    let alone = call(7, "tools/call", params.clone());
    let within = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let own = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "work")];
    let session = ("mcp-session-id", session.as_str());
    let request = if kind == "alone" {
        world.request("POST", "/mcp", token, &[ACCEPT, own[0], own[1], own[2]], Some(&alone))
    } else {
        world.request("POST", "/mcp", token, &[ACCEPT, session], Some(&within))
    };
    let holds = async {
        while world.gateway.waits() == 0 {
            tokio::task::yield_now().await;
        }
        // A stream is begun once an answer has taken so long.
        pass(Duration::from_secs(3)).await;
    };
    let (response, ()) = tokio::join!(request.send(), holds);
    let mut response = response.unwrap();
    if kind != "taken up again" {
        return response;
    }
    let first = String::from_utf8(response.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    let last = first.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    drop(response);
    world.request("GET", "/mcp", token, &[ACCEPT, session, ("last-event-id", &last)], None).send().await.unwrap()
}

#[tokio::test]
async fn a_call_whose_stream_has_begun_is_answered_on_it_under_its_id() {
    for (kind, (how, code)) in STREAMS.into_iter().zip(ENDS) {
        let world = World::new().await;
        let asker = world.agent("desk@media").await;
        let response = stream(&world, kind, &asker).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        let reads = tokio::time::timeout(PATIENCE, response.text());
        let (text, _) = tokio::join!(reads, end(&world, &asker, how));
        let text = text.unwrap_or_else(|_| panic!("{kind}: it goes on")).unwrap();
        let last = json_of(&text);
        assert_eq!((&last["id"], &last["error"]["data"]["code"]), (&json!(7), &json!(code)), "{kind}: {text}");
        assert_eq!(world.refusals().await, [row(&asker, "/mcp", code, 1)], "{kind}");
    }
}

#[tokio::test]
async fn a_call_that_is_answered_on_its_stream_is_not_refused_as_well() {
    let world = World::new().await;
    let asker = world.agent("desk@media").await;
    let response = stream(&world, "alone", &asker).await;
    let claimed = asker.call(&world, "task/claim", json!({ "agent_id": asker.id })).await;
    let work = &claimed.result()["tasks"][0];
    let done = json!({ "task_id": work["task_id"], "token": work["token"], "result": "done" });
    asker.call(&world, "task/complete", done).await.result();
    let text = response.text().await.unwrap();
    end(&world, &asker, "revoke").await;
    assert!(json_of(&text)["result"].is_object(), "{text}");
    assert_eq!(world.refusals().await, []);
}

#[tokio::test]
async fn whoever_names_anothers_session_is_refused_and_written_down() {
    let world = World::new().await;
    let (own, other) = (world.agent("desk@media").await, world.agent("spy@other").await);
    let session = world.mcp(Some(&own.token)).await.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let frame = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let viewer = world.operator("eve", "viewer").await;
    for token in [&other.token, &viewer] {
        for verb in ["POST", "GET", "DELETE"] {
            let body = (verb == "POST").then_some(&frame);
            let headers = [ACCEPT, ("mcp-session-id", session.as_str())];
            let said = world.http(verb, "/mcp", Some(token), &headers, body).await;
            assert_eq!(said.status, 404, "{verb}: {said:?}");
        }
    }
    let rows = world.refusals().await;
    for actor in [other.id.as_str(), "operator:eve"] {
        let of: Vec<_> = rows.iter().filter(|row| row.0 == actor).collect();
        assert_eq!((of[0].1.as_str(), of[0].2.as_str()), ("/mcp", "invalid_request"), "{rows:?}");
        assert_eq!(of.iter().map(|row| row.3).sum::<u64>(), 3, "{rows:?}");
    }
}

#[tokio::test]
async fn a_token_that_was_good_once_is_refused_in_the_name_of_whoever_had_it() {
    let world = World::new().await;
    let agent = world.agent("desk@media").await;
    end(&world, &agent, "revoke").await;
    agent.beat(&world).await.refused("token_revoked");
    world.http("GET", "/agents", Some("nonsense"), &[], None).await.refused("unauthenticated");
    let mut rows = world.refusals().await;
    rows.sort();
    let nobody = ("nobody".to_owned(), "/agents".to_owned(), "unauthenticated".to_owned(), 1);
    assert_eq!(rows, [row(&agent, "/rpc", "token_revoked", 1), nobody]);
    world.call(Some(OPERATOR_KEY), "agent/list", json!({})).await.result();
}
