//! Once only for calls of tools, who gives up a call, and what becomes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent_reach_sdk::{AgentHandle, Context, HandlerError, Task};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::{Semaphore, watch};

use super::world::{Host, agent, alone, capability};
use crate::common::{Running, start};

const PATIENCE: Duration = Duration::from_secs(20);
/// How often the agent tells of its progress, word after word.
const STEPS: u32 = 40;

/// An agent that counts what it begins, and ends it when it is let to.
pub(super) struct Doer {
    _agent: AgentHandle,
    pub(super) begun: watch::Receiver<usize>,
    pub(super) cancelled: watch::Receiver<usize>,
    pub(super) gate: Arc<Semaphore>,
}

impl Doer {
    pub(super) async fn start(running: &Running) -> Self {
        let (begun, begun_seen) = watch::channel(0);
        let (cancelled, cancelled_seen) = watch::channel(0);
        let gate = Arc::new(Semaphore::new(0));
        let held = Arc::clone(&gate);
        let work = move |task: Task, context: Context| {
            let (begun, cancelled, gate) = (begun.clone(), cancelled.clone(), Arc::clone(&held));
            async move {
                begun.send_modify(|count| *count += 1);
                tokio::select! {
                    permit = gate.acquire() => permit.unwrap().forget(),
                    () = context.cancelled() => {
                        cancelled.send_modify(|count| *count += 1);
                        return Err(HandlerError::failed("stopped"));
                    }
                }
                for step in 1..=STEPS {
                    let word = json!({ "progress": step, "total": STEPS });
                    context.progress(&word).await.map_err(HandlerError::failed)?;
                }
                Ok(json!({ "done": task.params::<Value>()? }))
            }
        };
        let offer = capability(&json!({ "name": "pay", "effect": "write", "cancellable": true }));
        let agent = agent(&running.url(""), "doer@x").capability(offer, work).start().await.unwrap();
        Self { _agent: agent, begun: begun_seen, cancelled: cancelled_seen, gate }
    }

    pub(super) async fn has_begun(&mut self, count: usize) {
        tokio::time::timeout(PATIENCE, self.begun.wait_for(|begun| *begun >= count)).await.unwrap().unwrap();
    }

    pub(super) async fn was_cancelled(&mut self) {
        tokio::time::timeout(PATIENCE, self.cancelled.wait_for(|count| *count > 0)).await.unwrap().unwrap();
    }
}

pub(super) fn pay(key: Option<&str>, amount: u32) -> Value {
    let mut params = json!({ "name": "pay", "arguments": { "amount": amount } });
    if let Some(key) = key {
        params["idempotencyKey"] = json!(key);
    }
    params
}

/// Sends a request over a connection of its own, and cuts that once the agent has begun.
async fn send_and_vanish(running: &Running, doer: &mut Doer, params: Value) {
    let begun = *doer.begun.borrow();
    let (headers, body) = alone(1, "tools/call", params);
    let mut head = format!("POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n", running.address);
    head.push_str("accept: application/json, text/event-stream\r\n");
    for (name, value) in &headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    let mut socket = tokio::net::TcpStream::connect(running.address).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    doer.has_begun(begun + 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_answer_is_lost_and_which_is_sent_again_with_its_key_runs_once() {
    let running = start().await;
    let mut doer = Doer::start(&running).await;
    send_and_vanish(&running, &mut doer, pay(Some("k1"), 5)).await;
    let host = Host::of(&running);
    // Joined while it runs, replayed when it is done.
    let (joined, ()) = tokio::join!(host.ask_alone(2, "tools/call", pay(Some("k1"), 5)), async {
        tokio::time::timeout(PATIENCE, async {
            while running.gateway.waits() == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
        doer.gate.add_permits(1);
    });
    let joined = joined.last()["result"].clone();
    assert_eq!(joined["structuredContent"], json!({ "done": { "amount": 5 } }), "{joined}");
    let replayed = host.ask_alone(3, "tools/call", pay(Some("k1"), 5)).await.json()["result"].clone();
    assert_eq!(
        (&replayed["structuredContent"], &replayed["_meta"]["agent-reach/replayed"]),
        (&joined["structuredContent"], &json!(true))
    );
    assert_eq!(replayed["_meta"]["agent-reach/reachId"], joined["_meta"]["agent-reach/reachId"]);
    assert_eq!((*doer.begun.borrow(), *doer.cancelled.borrow()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_at_once_with_one_key_run_once() {
    let running = start().await;
    let doer = Doer::start(&running).await;
    doer.gate.add_permits(1);
    let host = Arc::new(Host::of(&running));
    let replays = Arc::new(AtomicUsize::new(0));
    let calls = (0..32).map(|n| {
        let (host, replays) = (Arc::clone(&host), Arc::clone(&replays));
        tokio::spawn(async move {
            let result = host.ask_alone(n, "tools/call", pay(Some("one"), 1)).await.last()["result"].clone();
            assert_eq!(result["structuredContent"], json!({ "done": { "amount": 1 } }), "{result}");
            replays.fetch_add(usize::from(result["_meta"]["agent-reach/replayed"] == true), Ordering::Relaxed);
            result["_meta"]["agent-reach/reachId"].clone()
        })
    });
    let calls: Vec<_> = calls.collect();
    let mut ids = Vec::new();
    for call in calls {
        ids.push(call.await.unwrap());
    }
    ids.dedup();
    assert_eq!((ids.len(), *doer.begun.borrow(), replays.load(Ordering::Relaxed)), (1, 1, 31));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_may_stand_in_two_places_and_not_say_two_things() {
    let running = start().await;
    let doer = Doer::start(&running).await;
    doer.gate.add_permits(2);
    let host = Host::of(&running).session("2025-06-18").await;
    let mut both = pay(Some("a"), 1);
    both["_meta"] = json!({ "idempotencyKey": "b" });
    assert_eq!(host.ask(1, "tools/call", both.clone()).await.json()["error"]["code"], -32602);
    both["_meta"] = json!({ "idempotencyKey": "a" });
    let first = host.ask(2, "tools/call", both).await.last()["result"].clone();
    let mut in_meta = pay(None, 1);
    in_meta["_meta"] = json!({ "idempotencyKey": "a" });
    let again = host.ask(3, "tools/call", in_meta).await.last()["result"].clone();
    assert_eq!(again["_meta"]["agent-reach/reachId"], first["_meta"]["agent-reach/reachId"]);
    let other = host.ask(4, "tools/call", pay(Some("a"), 2)).await.last()["result"].clone();
    assert_eq!(
        (&other["isError"], &other["_meta"]["agent-reach/error"]["code"]),
        (&json!(true), &json!("idempotency_key_reused"))
    );
    assert_eq!(*doer.begun.borrow(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_key_a_call_whose_caller_vanished_is_called_off_and_not_run_again() {
    let running = start().await;
    let mut doer = Doer::start(&running).await;
    send_and_vanish(&running, &mut doer, pay(None, 5)).await;
    doer.was_cancelled().await;
    assert_eq!(*doer.begun.borrow(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_of_the_handshake_era_calls_a_request_off_and_it_gets_no_answer() {
    let running = start().await;
    let mut doer = Doer::start(&running).await;
    let host = Arc::new(Host::of(&running).session("2025-11-25").await);
    let calling = {
        let host = Arc::clone(&host);
        tokio::spawn(async move { host.ask(7, "tools/call", pay(Some("k"), 1)).await })
    };
    doer.has_begun(1).await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7, "reason": "enough" } });
    assert_eq!(host.post(&[], cancel.to_string()).await.status, 202);
    doer.was_cancelled().await;
    let answer = calling.await.unwrap();
    assert!(!answer.text.contains("\"id\":7"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_progress_comes_under_the_callers_token_before_the_answer() {
    let running = start().await;
    let doer = Doer::start(&running).await;
    doer.gate.add_permits(2);
    let mut params = pay(None, 1);
    params["_meta"] = json!({ "progressToken": "tok/1" });
    let hosts = [Host::of(&running).session("2025-11-25").await, Host::of(&running)];
    for (host, is_alone) in hosts.iter().zip([false, true]) {
        let reply = if is_alone {
            host.ask_alone(1, "tools/call", params.clone()).await
        } else {
            host.ask(1, "tools/call", params.clone()).await
        };
        let events = reply.events();
        let (last, notices) = events.split_last().unwrap();
        assert_eq!(last["result"]["isError"], false, "{events:?}");
        let told: Vec<_> = notices.iter().map(|notice| (notice["method"].clone(), notice["params"].clone())).collect();
        let step = |at| json!({ "progressToken": "tok/1", "progress": at, "total": STEPS });
        let all: Vec<_> = (1..=STEPS).map(|at| (json!("notifications/progress"), step(at))).collect();
        assert_eq!(told, all);
    }
}
