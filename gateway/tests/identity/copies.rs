//! Two copies of one agent, tokens that were lost, and tokens that were stolen.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::world::{Agent, OPERATOR_KEY, World};
use crate::common::peer::Socket;

/// With which code a WebSocket is closed by the gateway.
pub(crate) async fn closed(mut socket: Socket) -> u16 {
    let close = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(Some(close)))) => return u16::from(close.code),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), close).await.expect("the gateway closes it")
}

#[tokio::test]
async fn of_two_copies_the_older_is_put_out_and_its_late_result_is_refused() {
    let world = World::new().await;
    let asker = world.agent("desk@media").await;
    let older = world.agent("news@media").await;
    let (rpc, mcp) = (
        world.socket("/rpc/ws", Some(&older.token)).await.unwrap(),
        world.socket("/mcp/ws", Some(&older.token)).await.unwrap(),
    );
    let submit = json!({ "to_agent": older.id, "capability": "work", "params": {} });
    let task = asker.call(&world, "task/submit", submit).await.result()["task_id"].clone();
    let claimed = older.call(&world, "task/claim", json!({ "agent_id": older.id })).await;
    let fence = claimed.result()["tasks"][0]["token"].clone();
    // The other copy has the same key.
    let shown = older.shows_key(&world, None).await;
    assert_eq!(shown.result()["generation"], 2);
    let newer = Agent {
        id: older.id.clone(),
        token: shown.result()["token"].as_str().unwrap().to_owned(),
        key: super::signer::Signer::new(),
    };
    assert_eq!((closed(rpc).await, closed(mcp).await), (4409, 4409));
    let late = json!({ "task_id": task, "token": fence, "result": "late" });
    older.call(&world, "task/complete", late.clone()).await.refused("superseded");
    older.beat(&world).await.refused("superseded");
    world.mcp(Some(&older.token)).await.refused("superseded");
    assert_eq!(world.socket("/rpc/ws", Some(&older.token)).await.err(), Some(401));
    assert_ne!(asker.call(&world, "task/get", json!({ "task_id": task })).await.result()["phase"], "completed");
    // The newer one is the agent, and may do what the older one had begun.
    assert_eq!(newer.beat(&world).await.status, 200);
    assert_eq!(newer.call(&world, "task/complete", late).await.result()["phase"], "completed");
}

#[tokio::test]
async fn a_lost_token_is_back_by_the_key_in_one_round() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let shown = agent.shows_key(&world, None).await;
    let token = shown.result()["token"].as_str().unwrap();
    assert_eq!(world.call(Some(token), "agent/heartbeat", json!({ "agent_id": agent.id })).await.status, 200);
}

#[tokio::test]
async fn a_stolen_token_is_refused_on_the_next_request_once_it_is_revoked_whatever_the_road() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let stolen = Some(agent.token.as_str());
    let (rpc, mcp) = (world.socket("/rpc/ws", stolen).await.unwrap(), world.socket("/mcp/ws", stolen).await.unwrap());
    assert_eq!(world.mcp(stolen).await.status, 200);
    assert_eq!(world.http("GET", "/agents", stolen, &[], None).await.status, 200);
    let revoked = world.call(Some(OPERATOR_KEY), "token/revoke", json!({ "agent_id": agent.id })).await;
    assert_eq!(revoked.result()["generation"], 1);
    agent.beat(&world).await.refused("token_revoked");
    world.http("GET", "/agents", stolen, &[], None).await.refused("token_revoked");
    world.mcp(stolen).await.refused("token_revoked");
    assert_eq!(world.socket("/rpc/ws", stolen).await.err(), Some(401));
    assert_eq!((closed(rpc).await, closed(mcp).await), (4401, 4401));
    // The thief has no key; the agent has.
    let shown = agent.shows_key(&world, None).await;
    let token = shown.result()["token"].as_str().unwrap();
    assert_eq!(world.call(Some(token), "agent/heartbeat", json!({ "agent_id": agent.id })).await.status, 200);
    agent.beat(&world).await.refused("token_revoked");
}

#[tokio::test]
async fn a_forgotten_key_needs_a_join_token_and_older_tokens_stay_dead() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let params = json!({ "agent_id": agent.id, "forget_key": true });
    world.call(Some(OPERATOR_KEY), "token/revoke", params).await.result();
    agent.shows_key(&world, None).await.refused("unauthenticated");
    let join = world.join("*@media").await;
    assert_eq!(agent.shows_key(&world, Some(&join)).await.result()["generation"], 2);
    agent.beat(&world).await.refused("token_revoked");
}

#[tokio::test]
async fn a_stream_that_a_revoked_token_opened_ends() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let session = world.mcp(Some(&agent.token)).await.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request =
        client.get(world.url("/mcp")).header("accept", "text/event-stream").header("mcp-session-id", &session);
    let stream = request.header("authorization", format!("Bearer {}", agent.token)).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    world.call(Some(OPERATOR_KEY), "token/revoke", json!({ "agent_id": agent.id })).await.result();
    let ended = tokio::time::timeout(Duration::from_secs(30), stream.text()).await;
    assert!(ended.is_ok(), "the stream goes on");
    // The session is another's now, whoever names it.
    let frame = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let headers = [("accept", "application/json, text/event-stream"), ("mcp-session-id", session.as_str())];
    let other = world.agent("sport@media").await;
    assert_eq!(world.http("POST", "/mcp", Some(&other.token), &headers, Some(&frame)).await.status, 404);
}
