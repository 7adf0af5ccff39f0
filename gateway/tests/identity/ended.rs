//! Tokens that end while something is under way: what it would still bring is not brought.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use reach_gateway::rpc::methods::{Context, dispatch};
use reach_gateway::rpc::{self, Limits};
use reach_schemas::ErrorCode;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::attacks::parts;
use super::world::{Agent, OPERATOR_KEY, Said, World, pass};

/// By what a token ends, and what its holder is told then.
pub(crate) const ENDS: [(&str, &str); 3] =
    [("supersede", "superseded"), ("revoke", "token_revoked"), ("jti", "token_revoked")];

/// Has an agent's token end; by another copy, whose token is given.
pub(crate) async fn end(world: &World, agent: &Agent, how: &str) -> Option<String> {
    let params = match how {
        "revoke" => json!({ "agent_id": agent.id }),
        "jti" => json!({ "agent_id": agent.id, "jti": parts(&agent.token).1["jti"] }),
        _ => return Some(key_shown(world, agent).await),
    };
    world.call(Some(OPERATOR_KEY), "token/revoke", params).await.result();
    None
}

async fn key_shown(world: &World, agent: &Agent) -> String {
    agent.shows_key(world, None).await.result()["token"].as_str().unwrap().to_owned()
}

/// The agent with a token that it has now, if need be for its key.
async fn renewed(world: &World, agent: Agent, newer: Option<String>) -> Agent {
    let token = match newer {
        Some(token) => token,
        None => key_shown(world, &agent).await,
    };
    Agent { token, ..agent }
}

/// A call as a transport has it, with what it found out of who it is by.
fn context(world: &World, token: &str) -> Context {
    let headers = HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {token}").parse().unwrap())]);
    Context {
        gateway: Arc::clone(&world.gateway),
        pass: world.gateway.authenticate(&headers).unwrap(),
        host: None,
        connection: None,
        traceparent: None,
        gone: CancellationToken::new(),
        transport: "http",
        from: None,
    }
}

async fn dispatched(context: Context, method: &str, params: Value) -> Value {
    let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let answer = rpc::answer(frame.as_bytes(), &Limits::default(), |call| dispatch(&context, call)).await;
    serde_json::from_slice(&answer.unwrap()).unwrap()
}

pub(crate) async fn submitted(world: &World, asker: &Agent, worker: &Agent) -> String {
    let params = json!({ "to_agent": worker.id, "capability": "work", "params": { "iban": "SECRET" } });
    asker.call(world, "task/submit", params).await.result()["task_id"].as_str().unwrap().to_owned()
}

async fn claimed(world: &World, worker: &Agent, lease: &str) -> Value {
    let claimed = worker.call(world, "task/claim", json!({ "agent_id": worker.id, "lease": lease })).await;
    claimed.result()["tasks"][0].clone()
}

/// A heartbeat that is under way while something happens: an agent whose token is to be renewed has a lease to be renewed
/// first, for which a commit is waited for.
async fn beat_while(how: Option<&str>) -> (World, Agent, Option<String>, Result<Option<String>, ErrorCode>) {
    let world = World::new().await;
    let (asker, worker) = (world.agent("desk@media").await, world.agent("news@media").await);
    pass(Duration::from_secs(8 * 3600)).await;
    for agent in [&asker, &worker] {
        assert!(agent.beat(&world).await.result()["token"].is_object(), "it is time for the next token");
    }
    submitted(&world, &asker, &worker).await;
    let task = claimed(&world, &worker, "60s").await;
    pass(Duration::from_secs(40)).await;
    let context = context(&world, &worker.token);
    let beat = json!({ "agent_id": worker.id, "working_on": [{ "task_id": task["task_id"], "token": task["token"] }] });
    let mut beating = Box::pin(context.heartbeat(serde_json::from_value(beat).unwrap()));
    assert!((&mut beating).now_or_never().is_none(), "it waits for a commit");
    let newer = match how {
        Some(how) => end(&world, &worker, how).await,
        None => None,
    };
    let answer = beating.await;
    let answer = answer.map(|answer| answer.token.map(|token| token.token.reveal().to_owned()));
    (world, worker, newer, answer.map_err(|failure| failure.code))
}

#[tokio::test]
async fn a_heartbeat_brings_a_token_of_the_generation_of_the_one_that_asked() {
    let (world, worker, _, answer) = beat_while(None).await;
    let next = answer.unwrap().unwrap();
    let (old, new) = (parts(&worker.token).1, parts(&next).1);
    assert_eq!((&new["gen"], &new["rot"]), (&old["gen"], &json!(1)));
    world.call(Some(&next), "agent/list", json!({})).await.result();
}

#[tokio::test]
async fn a_heartbeat_under_way_when_its_token_ends_brings_no_other() {
    for (how, code) in ENDS {
        let (world, worker, newer, answer) = beat_while(Some(how)).await;
        assert_eq!(answer.map_err(ErrorCode::name), Err(code), "{how}");
        worker.beat(&world).await.refused(code);
        // Nor is the newer token taken for one that has a successor.
        let newer = renewed(&world, worker, newer).await;
        pass(Duration::from_secs(900)).await;
        assert_eq!(newer.call(&world, "agent/list", json!({})).await.status, 200, "{how}");
    }
}

#[tokio::test]
async fn a_claim_that_waits_is_given_nothing_once_its_token_has_ended() {
    for (how, code) in ENDS {
        let world = World::new().await;
        let (asker, worker) = (world.agent("desk@media").await, world.agent("news@media").await);
        let params = json!({ "agent_id": worker.id, "wait": "30s" });
        let mut claim = Box::pin(dispatched(context(&world, &worker.token), "task/claim", params));
        assert!((&mut claim).now_or_never().is_none(), "there is nothing to claim");
        let newer = end(&world, &worker, how).await;
        let task = submitted(&world, &asker, &worker).await;
        let answer = tokio::time::timeout(Duration::from_secs(10), claim).await.unwrap();
        assert_eq!(answer["error"]["data"]["code"], code, "{how}: {answer}");
        let newer = renewed(&world, worker, newer).await;
        assert_eq!(claimed(&world, &newer, "10s").await["task_id"], *task, "{how}");
    }
}

#[tokio::test]
async fn work_that_was_taken_while_the_token_ended_goes_back() {
    for (how, code) in ENDS {
        let world = World::new().await;
        let (asker, worker) = (world.agent("desk@media").await, world.agent("news@media").await);
        let task = submitted(&world, &asker, &worker).await;
        let params = json!({ "agent_id": worker.id, "wait": "30s" });
        let mut claim = Box::pin(dispatched(context(&world, &worker.token), "task/claim", params));
        assert!((&mut claim).now_or_never().is_none(), "it waits for a commit");
        let newer = end(&world, &worker, how).await;
        let answer = tokio::time::timeout(Duration::from_secs(10), claim).await.unwrap();
        assert_eq!(answer["error"]["data"]["code"], code, "{how}: {answer}");
        let newer = renewed(&world, worker, newer).await;
        assert_eq!(claimed(&world, &newer, "10s").await["task_id"], *task, "{how}");
    }
}

/// The roads over which a caller waits.
pub(crate) const ROADS: [&str; 7] = [
    "task/wait",
    "reach",
    "GET /tasks/{id}/result",
    "POST /reach",
    "POST /agent/{id}/invoke",
    "tools/call reach_wait",
    "tools/call reach_submit",
];

pub(crate) async fn ask(
    world: &World,
    road: &str,
    (asker, session): (&Agent, &str),
    worker: &Agent,
    task: &str,
) -> Said {
    let token = Some(asker.token.as_str());
    let submit = json!({ "to_agent": worker.id, "capability": "work", "params": {}, "wait": "30s" });
    let tool = async |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let headers = [("accept", "application/json, text/event-stream"), ("mcp-session-id", session)];
        world.http("POST", "/mcp", token, &headers, Some(&frame)).await
    };
    match road {
        "task/wait" => asker.call(world, road, json!({ "task_id": task, "wait": "30s" })).await,
        "reach" => asker.call(world, road, submit).await,
        "GET /tasks/{id}/result" => {
            world.http("GET", &format!("/tasks/{task}/result?wait=30s"), token, &[], None).await
        }
        "POST /reach" => world.http("POST", "/reach", token, &[], Some(&submit)).await,
        "POST /agent/{id}/invoke" => {
            world.http("POST", &format!("/agent/{}/invoke", worker.id), token, &[], Some(&submit)).await
        }
        "tools/call reach_wait" => tool("reach_wait", json!({ "task_id": task, "wait_seconds": 30 })).await,
        _ => {
            let arguments = json!({ "agent": worker.id, "capability": "work", "wait_seconds": 30 });
            tool("reach_submit", arguments).await
        }
    }
}

/// What matters of a refusal: the status, what is said, and how one is told to get a token.
fn told(said: &Said) -> (u16, Value, String) {
    let body = if said.json["error"].is_object() { said.json["error"].clone() } else { said.json.clone() };
    (said.status, body, said.headers["www-authenticate"].to_str().unwrap().to_owned())
}

#[tokio::test]
async fn who_waits_is_told_at_once_what_the_next_call_is_told_and_the_task_goes_on() {
    for (number, road) in ROADS.iter().enumerate() {
        let world = World::new().await;
        let (asker, worker) = (world.agent("desk@media").await, world.agent("news@media").await);
        let session = world.mcp(Some(&asker.token)).await.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let task = submitted(&world, &asker, &worker).await;
        let (how, code) = ENDS[number % 2];
        let ends = async {
            while world.gateway.waits() == 0 {
                tokio::task::yield_now().await;
            }
            // What it waits for is no answer to anybody then.
            end(&world, &asker, how).await;
        };
        let waits =
            tokio::time::timeout(Duration::from_secs(10), ask(&world, road, (&asker, &session), &worker, &task));
        let (said, ()) = tokio::join!(waits, ends);
        let said = said.unwrap_or_else(|_| panic!("{road} goes on"));
        said.refused(code);
        let next = ask(&world, road, (&asker, &session), &worker, &task).await;
        assert_eq!(told(&said), told(&next), "{road}");
        let is_new = !road.contains("wait") && !road.contains("result");
        for _ in 0..1 + u32::from(is_new) {
            let work = claimed(&world, &worker, "10s").await;
            let done = json!({ "task_id": work["task_id"], "token": work["token"], "result": "done" });
            assert_eq!(worker.call(&world, "task/complete", done).await.result()["phase"], "completed", "{road}");
        }
    }
}

#[tokio::test]
async fn a_caller_that_ends_its_own_token_has_its_answer() {
    let world = World::new().await;
    let agent = world.agent("news@media").await;
    let card = json!({ "card": agent.card(), "proof": agent.proof(&world) });
    let again = agent.call(&world, "agent/register", card).await;
    let token = again.result()["token"]["token"].as_str().unwrap();
    agent.beat(&world).await.refused("superseded");
    let ended = world.form("/oauth/revoke", Some(token), &[("token", token)]).await;
    assert_eq!(ended.status, 200, "{ended:?}");
    world.call(Some(token), "agent/list", json!({})).await.refused("token_revoked");
}
