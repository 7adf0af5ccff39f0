//! Agents act only as themselves, and operators within their roles. Which role each method needs, the matrix shows.

use serde_json::json;

use super::world::{OPERATOR_KEY, World};

#[tokio::test]
async fn an_agent_acts_as_itself_and_sees_its_own_tasks() {
    let world = World::new().await;
    let (news, sport) = (world.agent("news@media").await, world.agent("sport@media").await);
    news.call(&world, "agent/heartbeat", json!({ "agent_id": sport.id })).await.refused("forbidden");
    news.call(&world, "agent/drain", json!({ "agent_id": sport.id })).await.refused("forbidden");
    news.call(&world, "task/claim", json!({ "agent_id": sport.id })).await.refused("forbidden");
    news.call(&world, "capability/find", json!({ "from_agent": sport.id })).await.refused("forbidden");
    let submit = json!({ "to_agent": sport.id, "capability": "work", "params": {} });
    let mut as_other = submit.clone();
    as_other["from_agent"] = json!("sport@media");
    news.call(&world, "task/submit", as_other).await.refused("forbidden");
    let task = news.call(&world, "task/submit", submit).await.result()["task_id"].clone();
    let named = json!({ "task_id": task });
    assert_eq!(news.call(&world, "task/get", named.clone()).await.result()["task_id"], task);
    sport.call(&world, "task/get", named.clone()).await.refused("task_not_found");
    sport.call(&world, "task/cancel", named.clone()).await.refused("task_not_found");
    assert_eq!(sport.call(&world, "task/list", json!({})).await.result()["tasks"], json!([]));
    let path = format!("/tasks/{}", task.as_str().unwrap());
    assert_eq!(world.http("GET", &path, Some(&sport.token), &[], None).await.status, 404);
    let claimed = sport.call(&world, "task/claim", json!({ "agent_id": sport.id })).await;
    let token = claimed.result()["tasks"][0]["token"].clone();
    let complete = json!({ "task_id": task, "token": token, "result": 1 });
    news.call(&world, "task/complete", complete.clone()).await.refused("task_not_found");
    assert_eq!(sport.call(&world, "task/complete", complete).await.result()["phase"], "completed");
    let header = [("reach-agent", "sport@media"), ("accept", "application/json, text/event-stream")];
    let frame =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25" } });
    assert_eq!(world.http("POST", "/mcp", Some(&news.token), &header, Some(&frame)).await.status, 403);
}

#[tokio::test]
async fn an_operators_token_ends_when_it_is_revoked_made_anew_or_over() {
    let world = World::new().await;
    let alice = world.operator("alice", "viewer").await;
    assert_eq!(world.call(Some(&alice), "token/list", json!({})).await.result()["operators"][0]["name"], "alice");
    let again = world.operator("alice", "operator").await;
    world.call(Some(&alice), "token/list", json!({})).await.refused("unauthenticated");
    assert_eq!(world.call(Some(&again), "token/list", json!({})).await.status, 200);
    let socket = world.socket("/rpc/ws", Some(&again)).await.unwrap();
    world.call(Some(OPERATOR_KEY), "token/revoke", json!({ "operator": "alice" })).await.result();
    world.call(Some(&again), "token/list", json!({})).await.refused("unauthenticated");
    assert_eq!(super::copies::closed(socket).await, 4401);
    let params = json!({ "name": "bob", "role": "viewer", "expires_in": "1h" });
    let made = world.call(Some(OPERATOR_KEY), "token/create_operator", params).await;
    let bob = made.result()["token"].as_str().unwrap().to_owned();
    assert_eq!(world.call(Some(&bob), "token/list", json!({})).await.status, 200);
    super::world::pass(std::time::Duration::from_secs(3601)).await;
    world.call(Some(&bob), "token/list", json!({})).await.refused("token_expired");
}

#[tokio::test]
async fn a_viewer_speaks_in_nobodys_name_and_an_operator_within_the_walls_of_whom_it_names() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let (viewer, operator) = (world.operator("v", "viewer").await, world.operator("o", "operator").await);
    let named = json!({ "from_agent": agent.id, "intent": "work" });
    world.call(Some(&viewer), "capability/find", named.clone()).await.refused("forbidden");
    let found = world.call(Some(&operator), "capability/find", named).await;
    assert_eq!(found.result()["capabilities"][0]["agent_id"], agent.id);
    let named = json!({ "from_agent": "desk@other", "intent": "work" });
    assert_eq!(world.call(Some(&operator), "capability/find", named).await.result()["capabilities"], json!([]));
}
