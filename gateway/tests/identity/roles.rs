//! What each may do: agents only as themselves, operators by their roles.

use reach_core::access::{is_for_agents, least_role};
use reach_schemas::{Method, Permission, Role};
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
async fn every_method_is_open_to_whom_the_table_says_and_to_nobody_else() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let mut callers = vec![(None, agent.token.clone()), (Some(Role::Admin), OPERATOR_KEY.to_owned())];
    for role in Role::ALL {
        callers.push((Some(role), world.operator(role.as_str(), role.as_str()).await));
    }
    for method in Method::ALL {
        let permission = method.permission();
        for (role, token) in &callers {
            let may = role.map_or(is_for_agents(permission), |role| role >= least_role(permission));
            // What is asked for makes no sense, so that whoever may ask is told that and changes nothing.
            let said = world.call(Some(token), method.name(), json!({ "no_such_field": 1 })).await;
            let is_forbidden = said.json["error"]["data"]["code"] == "forbidden";
            // Params are read before the role is looked at in some methods; both are refusals, and one of both it must be.
            let is_refused = said.json["error"].is_object();
            assert!(is_refused, "{method:?} {role:?}: {said:?}");
            assert!(!(may && is_forbidden), "{method:?} {role:?}: {said:?}");
            if permission != Permission::Enrol {
                let said = world.call(Some(token), method.name(), sensible(*method)).await;
                let is_forbidden = said.json["error"]["data"]["code"] == "forbidden";
                assert_eq!(is_forbidden, !may, "{method:?} {role:?}: {said:?}");
            }
        }
    }
}

/// Params that are read, and about nothing that is there.
fn sensible(method: Method) -> serde_json::Value {
    let task = "01890a5d-ac96-774b-bcce-b302099a8057";
    match method {
        Method::AgentRegister => json!({ "agent_id": "news@media", "heartbeat_interval": "1h", "capabilities": [{
            "name": "work", "description": "Does the work.", "input_schema": { "type": "object" },
        }] }),
        Method::AgentHeartbeat | Method::AgentGet | Method::TaskClaim => json!({ "agent_id": "news@media" }),
        // The agent is asked for by those who may drain it, so another one is named.
        Method::AgentDrain | Method::AgentDeregister => json!({ "agent_id": "news@media" }),
        Method::Reach | Method::Resolve | Method::TaskSubmit => json!({ "capability": "no_such" }),
        Method::TaskWait
        | Method::TaskGet
        | Method::TaskCancel
        | Method::TaskExplain
        | Method::TaskSubscribe
        | Method::DeadLetterGet => json!({ "task_id": task }),
        Method::TaskAccept | Method::TaskComplete | Method::TaskProgress | Method::TaskRelease => {
            json!({ "task_id": task, "token": 1 })
        }
        Method::TaskFail => json!({ "task_id": task, "token": 1, "message": "x" }),
        Method::HumanTake => json!({ "task_id": task, "by": "me" }),
        Method::HumanAnswer => json!({ "task_id": task, "token": 1, "result": 1 }),
        Method::HumanRefuse => json!({ "task_id": task, "token": 1, "reason": "x" }),
        Method::HumanReturn => json!({ "task_id": task, "token": 1 }),
        Method::DeadLetterRedrive => json!({ "task_ids": [task] }),
        Method::WebhookGet => json!({ "webhook_id": "msg_01980c5e7a007c3a9b1e5f2d4c6a8e01" }),
        Method::WebhookRetry => json!({ "webhook_ids": ["msg_01980c5e7a007c3a9b1e5f2d4c6a8e01"] }),
        Method::ServerAdd => json!({ "server": { "name": "x", "namespace": "n" } }),
        Method::ServerRemove => json!({ "name": "x" }),
        Method::TokenCreateJoin => json!({ "agents": "*@n" }),
        Method::TokenCreateOperator => json!({ "name": "someone", "role": "viewer" }),
        Method::TokenTrustKey => json!({ "agent_id": "someone@n", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }),
        Method::TokenRevoke => json!({ "agent_id": "no@such" }),
        Method::ConfigShow
        | Method::ConfigReload
        | Method::PolicyGet
        | Method::PolicyPut
        | Method::PolicyTest
        | Method::AuditTail
        | Method::AuditSearch
        | Method::AuditVerify
        | Method::AuditExport
        | Method::AuditCheckpoint
        | Method::AgentList
        | Method::CapabilityFind
        | Method::TaskList
        | Method::MetricsOverview
        | Method::HumanList
        | Method::DeadLetterList
        | Method::WebhookList
        | Method::ServerList
        | Method::TokenIssue
        | Method::TokenList => json!({}),
    }
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
    world.call(Some(&bob), "token/list", json!({})).await.refused("unauthenticated");
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
