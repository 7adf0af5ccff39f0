//! An agent whose gateway does not know it any more: another copy has taken its place.

use std::sync::Arc;
use std::time::Duration;

use agent_reach_sdk::{Agent, AgentBuilder, AgentHandle, Context, Error, ErrorCode, Task, capability, card};
use serde_json::json;
use tokio::sync::Notify;

use crate::http_gateway::{HttpGateway, Step};
use crate::soon;
use crate::view::{AGENT, TASK, delivery, error, noted, registered};

/// Takes heartbeats until it has handed out work, or until it has been asked so often.
async fn gateway_that_knows_another() -> HttpGateway {
    HttpGateway::start(|nth, asked| match asked.method.as_str() {
        "agent/register" => Step::Answer(registered()),
        "task/claim" if nth == 1 => Step::Answer(json!({ "tasks": [delivery(TASK, 4, &json!("x"))] })),
        "task/claim" => Step::Silence,
        "agent/heartbeat" => Step::Error(error(ErrorCode::Superseded, None)),
        _ => Step::Answer(noted()),
    })
    .await
}

/// Starts an agent that works until it is told to stop, and hears both ends of its work.
async fn start(
    gateway: &HttpGateway,
    way: impl FnOnce(AgentBuilder) -> AgentBuilder,
) -> (AgentHandle, Arc<[Notify; 2]>) {
    let mut card = card(AGENT).unwrap();
    card.heartbeat_interval = Duration::from_millis(400).into();
    let heard = Arc::new([Notify::new(), Notify::new()]);
    let told = heard.clone();
    let work = move |_: Task, context: Context| {
        let told = told.clone();
        async move {
            told[0].notify_one();
            context.cancelled().await;
            told[1].notify_one();
            Ok("late")
        }
    };
    let agent = Agent::builder(card).capability(capability("work").unwrap(), work).url(gateway.url());
    (way(agent).start().await.unwrap(), heard)
}

/// It ends with the reason, its work is stopped, and from then on it asks nothing, not even with the result.
async fn is_over(gateway: &HttpGateway, agent: &AgentHandle, stopped: &Notify) {
    assert_eq!(soon(agent.ended()).await.code(), Some(ErrorCode::Superseded));
    soon(stopped.notified()).await;
    let asked = gateway.asked().len();
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(gateway.asked().len(), asked, "{:?}", gateway.asked());
    assert_eq!(gateway.asked().iter().filter(|asked| asked.method == "agent/heartbeat").count(), 1);
}

#[tokio::test]
async fn a_puller_stops_with_the_heartbeat_that_says_so() {
    let gateway = gateway_that_knows_another().await;
    let (agent, heard) = start(&gateway, AgentBuilder::pull).await;
    soon(heard[0].notified()).await;
    is_over(&gateway, &agent, &heard[1]).await;
}

#[tokio::test]
async fn an_agent_over_http_stops_and_takes_nothing_on_any_more() {
    let gateway = gateway_that_knows_another().await;
    let mounted = |agent: AgentBuilder| agent.public_url("http://127.0.0.1:9/").answer_within(Duration::ZERO);
    let (agent, heard) = start(&gateway, mounted).await;
    let work = |token| delivery(TASK, token, &json!("x")).to_string();
    assert_eq!(agent.answer_http("POST", "/", work(1).as_bytes()).await.status, 202);
    soon(heard[0].notified()).await;
    is_over(&gateway, &agent, &heard[1]).await;
    assert_eq!(agent.answer_http("POST", "/", work(2).as_bytes()).await.status, 503);
}

#[tokio::test]
async fn one_that_listens_itself_listens_no_more() {
    let gateway = gateway_that_knows_another().await;
    let (agent, _) = start(&gateway, |agent| agent.http("127.0.0.1:0".parse().unwrap())).await;
    let address = gateway.asked()[0].params["endpoints"][0]["address"].as_str().unwrap().to_owned();
    assert!(matches!(soon(agent.run_until_signal()).await, Err(Error::Unauthenticated(_))));
    let is_closed = async {
        while reqwest::get(&address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(is_closed).await;
}
