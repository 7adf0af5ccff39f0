//! An agent that pulls its work.

use std::time::Duration;

use agent_reach_sdk::{Agent, AgentHandle, ErrorCode, capability, card};
use serde_json::json;

use crate::agent_ws::echo;
use crate::http_gateway::{Asked, HttpGateway, Step};
use crate::soon;
use crate::view::{AGENT, TASK, delivery, error, noted, registered};

async fn start(gateway: &HttpGateway) -> AgentHandle {
    let mut card = card(AGENT).unwrap();
    card.max_concurrency = 2;
    let agent = Agent::builder(card).capability(capability("work").unwrap(), echo).url(gateway.url()).pull();
    agent.start().await.unwrap()
}

/// Waits until the gateway has been asked this, and answers all that it was asked until then.
async fn until(gateway: &HttpGateway, method: &str) -> Vec<Asked> {
    let heard = async {
        loop {
            let asked = gateway.asked();
            if asked.iter().any(|asked| asked.method == method) {
                return asked;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    soon(heard).await
}

#[tokio::test]
async fn work_is_claimed_for_as_much_as_there_is_room_accepted_and_done() {
    let gateway = HttpGateway::start(|nth, asked| match asked.method.as_str() {
        "agent/register" => Step::Answer(registered()),
        "task/claim" if nth == 1 => Step::Answer(json!({ "tasks": [delivery(TASK, 4, &json!("x"))] })),
        "task/claim" => Step::Silence,
        _ => Step::Answer(noted()),
    })
    .await;
    let _agent = start(&gateway).await;
    let asked = until(&gateway, "task/complete").await;
    assert_eq!(asked[0].params["endpoints"][0]["protocol"], "queue");
    assert_eq!(asked[1].params, json!({ "agent_id": AGENT, "limit": 2, "wait": "30s" }));
    let accepted = asked.iter().position(|asked| asked.method == "task/accept").unwrap();
    let completed = asked.iter().position(|asked| asked.method == "task/complete").unwrap();
    assert!(accepted < completed);
    assert_eq!(asked[completed].params, json!({ "task_id": TASK, "token": 4, "result": "x" }));
}

#[tokio::test]
async fn a_claim_asks_for_no_more_than_the_work_that_came_leaves_room_for() {
    let gateway = HttpGateway::start(|nth, asked| match asked.method.as_str() {
        "agent/register" => Step::Answer(registered()),
        "task/claim" if nth == 1 => Step::Answer(json!({ "tasks": [delivery(TASK, 4, &json!("x"))] })),
        _ => Step::Silence,
    })
    .await;
    let _agent = start(&gateway).await;
    until(&gateway, "task/accept").await;
    let claims = async {
        loop {
            let limits: Vec<_> = gateway.asked().iter().map(|asked| asked.params["limit"].clone()).collect();
            match limits.iter().filter(|limit| !limit.is_null()).cloned().collect::<Vec<_>>() {
                limits if limits.len() > 1 => return limits,
                _ => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    };
    assert_eq!(soon(claims).await, [json!(2), json!(1)]);
}

#[tokio::test]
async fn work_that_cannot_be_accepted_is_not_begun() {
    let gateway = HttpGateway::start(|nth, asked| match asked.method.as_str() {
        "agent/register" => Step::Answer(registered()),
        "task/claim" if nth == 1 => Step::Answer(json!({ "tasks": [delivery(TASK, 4, &json!("x"))] })),
        "task/claim" => Step::Silence,
        "task/accept" => Step::Error(error(ErrorCode::StaleToken, None)),
        _ => Step::Answer(noted()),
    })
    .await;
    let agent = start(&gateway).await;
    until(&gateway, "task/accept").await;
    agent.drain(Duration::from_secs(20)).await;
    assert!(gateway.asked().iter().all(|asked| asked.method != "task/complete"));
}

#[tokio::test]
async fn a_gateway_that_forgot_the_agent_or_broke_is_pulled_from_again() {
    let gateway = HttpGateway::start(|nth, asked| match (nth, asked.method.as_str()) {
        (_, "agent/register") => Step::Answer(registered()),
        (1, "task/claim") => Step::Error(error(ErrorCode::AgentNotFound, None)),
        (3, "task/claim") => Step::Reset,
        (4, "task/claim") => Step::Answer(json!({ "tasks": [delivery(TASK, 1, &json!(1))] })),
        (_, "task/claim") => Step::Silence,
        _ => Step::Answer(noted()),
    })
    .await;
    let _agent = start(&gateway).await;
    let methods: Vec<String> = until(&gateway, "task/accept").await.into_iter().map(|asked| asked.method).collect();
    assert_eq!(methods[..4], ["agent/register", "task/claim", "agent/register", "task/claim"]);
}
