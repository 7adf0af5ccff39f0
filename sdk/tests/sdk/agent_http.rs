//! An agent that is reached over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agent_reach_sdk::{Agent, AgentHandle, Context, Handler, HandlerError, Task, capability, card};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::http_gateway::{HttpGateway, Step};
use crate::soon;
use crate::view::{AGENT, TASK, delivery, noted, registered};

async fn gateway() -> HttpGateway {
    HttpGateway::start(|_, asked| match asked.method.as_str() {
        "agent/register" => Step::Answer(registered()),
        _ => Step::Answer(noted()),
    })
    .await
}

/// An agent on a free port, and its address as the gateway learned it.
async fn start(gateway: &HttpGateway, handler: impl Handler, answer_within: Duration) -> (AgentHandle, String) {
    let agent = Agent::builder(card(AGENT).unwrap())
        .capability(capability("work").unwrap(), handler)
        .url(gateway.url())
        .http("127.0.0.1:0".parse().unwrap())
        .answer_within(answer_within)
        .start()
        .await
        .unwrap();
    let endpoint = gateway.asked()[0].params["endpoints"][0].clone();
    assert_eq!(endpoint["protocol"], "http");
    (agent, endpoint["address"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_agent_asks_others_in_its_own_name() {
    let gateway = gateway().await;
    let (agent, _) = start(&gateway, crate::agent_ws::echo, Duration::ZERO).await;
    let _answer_does_not_fit = agent.client().task("other").submit().await;
    assert_eq!(gateway.asked().last().unwrap().params["from_agent"], AGENT);
}

async fn post(url: &str, body: &Value) -> (u16, Value) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let response = client.post(url).body(body.to_string()).send().await.unwrap();
    (response.status().as_u16(), serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

async fn reported(gateway: &HttpGateway, method: &str) -> Value {
    let heard = async {
        loop {
            if let Some(asked) = gateway.asked().into_iter().find(|asked| asked.method == method) {
                return asked.params;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    soon(heard).await
}

#[tokio::test]
async fn quick_work_is_answered_with_its_result_and_once_more_without_running_again() {
    let gateway = gateway().await;
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let handler = move |task: Task, _: Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { task.params::<Value>() }
    };
    let (_agent, url) = start(&gateway, handler, Duration::from_secs(20)).await;
    let work = delivery(TASK, 1, &json!({ "n": 1 }));
    for _ in 0..2 {
        assert_eq!(post(&url, &work).await, (200, json!({ "n": 1 })));
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let (status, health) = {
        let response = reqwest::get(format!("{url}healthz")).await.unwrap();
        (response.status().as_u16(), serde_json::from_str::<Value>(&response.text().await.unwrap()).unwrap())
    };
    assert_eq!((status, &health["failure_rate_10m"]), (200, &json!(0.0)));
    assert!(health["last_success_at"].is_string());
}

#[tokio::test]
async fn slow_work_is_accepted_and_reported_when_it_is_done() {
    let gateway = gateway().await;
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let handler = move |_: Task, _: Context| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok(9)
        }
    };
    let (_agent, url) = start(&gateway, handler, Duration::from_millis(5)).await;
    assert_eq!(post(&url, &delivery(TASK, 7, &json!(null))).await.0, 202);
    assert_eq!(post(&url, &delivery(TASK, 7, &json!(null))).await.0, 202);
    go.notify_one();
    assert_eq!(reported(&gateway, "task/complete").await, json!({ "task_id": TASK, "token": 7, "result": 9 }));
}

#[tokio::test]
async fn a_failure_is_reported_in_full() {
    let gateway = gateway().await;
    let handler =
        |_: Task, _: Context| async { Err::<(), _>(HandlerError::retryable("no luck").data(&json!({ "dice": 1 }))) };
    let (_agent, url) = start(&gateway, handler, Duration::from_secs(20)).await;
    assert_eq!(post(&url, &delivery(TASK, 1, &json!(null))).await.0, 202);
    let fail = reported(&gateway, "task/fail").await;
    assert_eq!((&fail["message"], &fail["data"]), (&json!("no luck"), &json!({ "dice": 1 })));
}

#[tokio::test]
async fn work_is_stopped_by_a_request() {
    let gateway = gateway().await;
    let stopped = Arc::new(Notify::new());
    let told = stopped.clone();
    let handler = move |_: Task, context: Context| {
        let told = told.clone();
        async move {
            context.cancelled().await;
            told.notify_one();
            Ok(())
        }
    };
    let (_agent, url) = start(&gateway, handler, Duration::ZERO).await;
    assert_eq!(post(&url, &delivery(TASK, 1, &json!(null))).await.0, 202);
    for token in [2, 1] {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let stopped = client.delete(format!("{url}{TASK}?x=1&token={token}")).send().await.unwrap();
        assert_eq!(stopped.status().as_u16(), 200);
    }
    soon(stopped.notified()).await;
}

#[tokio::test]
async fn what_cannot_be_taken_is_refused_by_status() {
    let gateway = gateway().await;
    let (_agent, url) = start(&gateway, crate::agent_ws::echo, Duration::ZERO).await;
    let mut unknown = delivery(TASK, 1, &json!(null));
    unknown["capability"] = json!("fly");
    let (status, body) = post(&url, &unknown).await;
    assert_eq!((status, &body["code"], &body["started"]), (503, &json!("agent_refused"), &json!(false)));
    assert_eq!(post(&url, &json!({ "no": "delivery" })).await.0, 422);
    assert_eq!(post(&format!("{url}nowhere"), &json!({})).await.0, 404);
}

#[tokio::test]
async fn tokens_that_the_work_counted_go_with_its_result_whichever_way_it_goes() {
    let work = |_: Task, context: Context| async move {
        context.count_tokens(40);
        context.count_tokens(2);
        Ok::<_, HandlerError>(json!("done"))
    };
    let quick = gateway().await;
    let (_agent, url) = start(&quick, work, Duration::from_secs(20)).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client.post(&url).body(delivery(TASK, 1, &json!({})).to_string()).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["agent-reach-token-count"]), (200, &"42".parse().unwrap()));

    let (slow, gate) = (gateway().await, Arc::new(Notify::new()));
    let opened = gate.clone();
    let late = move |task: Task, context: Context| {
        let opened = opened.clone();
        async move {
            opened.notified().await;
            work(task, context).await
        }
    };
    let (_agent, url) = start(&slow, late, Duration::ZERO).await;
    assert_eq!(post(&url, &delivery(TASK, 1, &json!({}))).await.0, 202);
    gate.notify_one();
    assert_eq!(reported(&slow, "task/complete").await["token_count"], 42);
}
