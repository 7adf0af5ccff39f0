//! Calls that are given up one at a time: of a batch, and of those who asked for one task under one key.

use std::time::Duration;

use agent_reach_sdk::{AgentHandle, Context, HandlerError, Task};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

use super::once::{Doer, pay};
use super::world::{Host, agent, capability};
use crate::common::{Running, start};

const PATIENCE: Duration = Duration::from_secs(20);

async fn call_off(host: &Host, id: u64) {
    let params = json!({ "requestId": id });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    assert_eq!(host.post(&[], cancel.to_string()).await.status, 202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_batch_is_called_off_alone() {
    let running = start().await;
    let mut doer = Doer::start(&running).await;
    let host = Host::of(&running).session("2025-03-26").await;
    let call =
        |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": pay(None, id as u32 * 10) });
    let batch = json!([call(1), call(2)]).to_string();
    let (answer, ()) = tokio::join!(host.post(&[], batch), async {
        doer.has_begun(2).await;
        call_off(&host, 1).await;
        doer.was_cancelled().await;
        doer.gate.add_permits(1);
    });
    let answers = answer.last();
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(
        (&answers[0]["id"], &answers[0]["result"]["structuredContent"]),
        (&json!(2), &json!({ "done": { "amount": 20 } }))
    );
    // A batch of which nothing is left is answered by nothing.
    let both = json!([call(3), call(4)]).to_string();
    let (answer, ()) = tokio::join!(host.post(&[], both), async {
        doer.has_begun(4).await;
        call_off(&host, 3).await;
        call_off(&host, 4).await;
    });
    assert!(!answer.text.contains("\"id\""), "{answer:?}");
}

/// An agent that tells of progress all the time until it is let to end.
async fn teller(running: &Running) -> (AgentHandle, std::sync::Arc<Semaphore>, watch::Receiver<usize>) {
    let gate = std::sync::Arc::new(Semaphore::new(0));
    let (cancelled, seen) = watch::channel(0);
    let held = std::sync::Arc::clone(&gate);
    let work = move |task: Task, context: Context| {
        let (gate, cancelled) = (std::sync::Arc::clone(&held), cancelled.clone());
        async move {
            for number in 1.. {
                tokio::select! {
                    permit = gate.acquire() => { permit.unwrap().forget(); break }
                    () = context.cancelled() => {
                        cancelled.send_modify(|count| *count += 1);
                        return Err(HandlerError::failed("stopped"));
                    }
                    () = tokio::time::sleep(Duration::from_millis(20)) => {}
                }
                context.progress(&json!({ "progress": number })).await.map_err(HandlerError::failed)?;
            }
            Ok(json!({ "done": task.params::<Value>()? }))
        }
    };
    let offer = capability(&json!({ "name": "pay", "effect": "write", "cancellable": true }));
    let handle = agent(&running.url(""), "doer@x").capability(offer, work).start().await.unwrap();
    (handle, gate, seen)
}

/// Calls, and returns once it is known that the call follows the task: it is told of progress.
async fn following(host: &Host, id: u64, key: &str) -> reqwest::Response {
    let mut params = pay(Some(key), 1);
    params["_meta"] = json!({ "progressToken": id });
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string();
    let usual = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let sent = host.request(reqwest::Method::POST, &usual).body(body).send();
    let mut response = tokio::time::timeout(PATIENCE, sent).await.unwrap().unwrap();
    let mut text = String::new();
    while !text.contains("notifications/progress") {
        text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    response
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_those_who_share_a_key_only_the_last_calls_the_task_off() {
    let running = start().await;
    let (_agent, gate, mut cancelled) = teller(&running).await;
    let host = Host::of(&running).session("2025-11-25").await;
    let first = following(&host, 1, "one").await;
    let second = following(&host, 2, "one").await;
    call_off(&host, 1).await;
    assert!(!first.text().await.unwrap().contains("\"result\""), "what was called off gets no answer");
    gate.add_permits(1);
    let answer = tokio::time::timeout(PATIENCE, second.text()).await.unwrap().unwrap();
    assert!(answer.contains(r#""id":2,"result""#) && answer.contains(r#""amount":1"#), "{answer}");
    assert_eq!(*cancelled.borrow(), 0);

    let first = following(&host, 3, "two").await;
    let second = following(&host, 4, "two").await;
    call_off(&host, 4).await;
    assert!(!second.text().await.unwrap().contains("\"result\""));
    assert_eq!(*cancelled.borrow(), 0);
    call_off(&host, 3).await;
    tokio::time::timeout(PATIENCE, cancelled.wait_for(|count| *count == 1)).await.unwrap().unwrap();
    assert!(!first.text().await.unwrap().contains("\"result\""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_another_may_come_back_for_is_not_called_off() {
    let running = start().await;
    let (_agent, gate, cancelled) = teller(&running).await;
    let host = Host::of(&running).session("2025-11-25").await;
    let first = following(&host, 1, "one").await;
    // Another asks for the same and does not stay: it has the task's id.
    let arguments = json!({ "tool": "pay", "arguments": { "amount": 1 }, "idempotency_key": "one" });
    let task = host.ask(2, "tools/call", json!({ "name": "reach_submit", "arguments": arguments })).await.last();
    let id = task["result"]["structuredContent"]["task_id"].clone();
    assert_eq!(task["result"]["structuredContent"]["replayed"], true, "{task}");
    call_off(&host, 1).await;
    assert!(!first.text().await.unwrap().contains("\"result\""));
    gate.add_permits(1);
    let wait = json!({ "name": "reach_wait", "arguments": { "task_id": id } });
    let done = host.ask(3, "tools/call", wait).await.last()["result"]["structuredContent"].clone();
    assert_eq!((&done["phase"], &done["result"]), (&json!("completed"), &json!({ "done": { "amount": 1 } })), "{done}");
    assert_eq!(*cancelled.borrow(), 0);
}
