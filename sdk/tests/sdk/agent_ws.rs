//! An agent that is pushed its work over a WebSocket: accept, run, report, stop, drain.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agent_reach_sdk::{Agent, AgentHandle, Context, Handler, HandlerError, Span, Task, capability, card};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::soon;
use crate::view::{AGENT, TASK, delivery, noted};
use crate::ws_gateway::{Peer, WsGateway};

pub(crate) const OTHER: &str = "01890a5d-ac96-774b-bcce-b302099a8058";

/// Starts an agent with one handler and answers its registration.
pub(crate) async fn start(gateway: &WsGateway, handler: impl Handler, heartbeat: Span) -> (AgentHandle, Peer) {
    let mut card = card(AGENT).unwrap();
    card.heartbeat_interval = heartbeat;
    let agent = Agent::builder(card).capability(capability("work").unwrap(), handler).url(gateway.url()).start();
    let welcome = async {
        let mut peer = gateway.accept().await;
        peer.welcome().await;
        peer
    };
    let (agent, peer) = tokio::join!(agent, welcome);
    (agent.unwrap(), peer)
}

pub(crate) const CALM: Span = Span::from_mins(10);

/// Answers with its parameters.
pub(crate) async fn echo(task: Task, _: Context) -> Result<Value, HandlerError> {
    task.params()
}

/// Delivers and reads the accept.
pub(crate) async fn deliver(peer: &mut Peer, task_id: &str, token: u64) {
    let id = peer.request("task/deliver", delivery(task_id, token, &json!({ "n": token }))).await;
    let accept = peer.read().await;
    assert_eq!(accept["id"], id, "{accept}");
    assert!(accept.get("error").is_none(), "{accept}");
}

#[tokio::test]
async fn work_is_accepted_before_it_begins_and_its_result_comes_with_its_token() {
    let gateway = WsGateway::start().await;
    let handler = async |task: Task, context: Context| {
        context.progress(&json!({ "at": 1 })).await.unwrap();
        assert_eq!((context.attempt(), context.idempotency_key()), (3, "k1"));
        task.params::<Value>()
    };
    let handler = move |task: Task, context: Context| handler(task, context);
    let (agent, mut peer) = start(&gateway, handler, CALM).await;
    let id = peer.request("task/deliver", delivery(TASK, 3, &json!({ "n": 1 }))).await;
    assert_eq!(peer.read().await["id"], id);
    let progress = peer.expect("task/progress").await;
    assert_eq!(progress["params"], json!({ "task_id": TASK, "token": 3, "progress": { "at": 1 } }));
    assert_eq!(agent.load(), 1);
    peer.answer(&progress, noted()).await;
    let complete = peer.expect("task/complete").await;
    assert_eq!(complete["params"], json!({ "task_id": TASK, "token": 3, "result": { "n": 1 } }));
    peer.answer(&complete, noted()).await;
    assert_eq!(agent.registered().capabilities[0].as_str(), "work");
}

#[tokio::test]
async fn a_delivery_that_comes_twice_runs_once() {
    let gateway = WsGateway::start().await;
    let runs = Arc::new(AtomicU32::new(0));
    let go = Arc::new(Notify::new());
    let (counted, gate) = (runs.clone(), go.clone());
    let handler = move |_: Task, _: Context| {
        counted.fetch_add(1, Ordering::SeqCst);
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok("done")
        }
    };
    let (_agent, mut peer) = start(&gateway, handler, CALM).await;
    deliver(&mut peer, TASK, 1).await;
    deliver(&mut peer, TASK, 1).await;
    go.notify_one();
    let complete = peer.expect("task/complete").await;
    peer.answer(&complete, noted()).await;
    // Once more after the end: the answer may have been lost, so the result comes again.
    deliver(&mut peer, TASK, 1).await;
    assert_eq!(peer.expect("task/complete").await["params"], complete["params"]);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// Tells the test when it begins and when it is called off, and never ends by itself.
fn endless() -> (impl Handler, mpsc::UnboundedReceiver<(u64, &'static str)>) {
    let (told, words) = mpsc::unbounded_channel();
    let handler = move |_: Task, context: Context| {
        let told = told.clone();
        async move {
            told.send((context.token().0, "begun")).unwrap();
            context.cancelled().await;
            told.send((context.token().0, "cancelled")).unwrap();
            Ok(())
        }
    };
    (handler, words)
}

#[tokio::test]
async fn a_cancel_reaches_the_handler_and_its_result_is_not_reported() {
    let gateway = WsGateway::start().await;
    let (handler, mut words) = endless();
    let (agent, mut peer) = start(&gateway, handler, CALM).await;
    deliver(&mut peer, TASK, 1).await;
    assert_eq!(soon(words.recv()).await, Some((1, "begun")));
    peer.notify("task/stop", json!({ "task_id": TASK, "token": 1 })).await;
    assert_eq!(soon(words.recv()).await, Some((1, "cancelled")));
    // What comes next is the answer to the probe, and no word of the task that was called off.
    let id = peer.request("agent/probe", json!({})).await;
    let health = peer.read().await;
    assert_eq!(health["id"], id);
    assert_eq!(health["result"], json!({ "queue_depth": 0, "failure_rate_10m": 0.0 }));
    assert_eq!(agent.load(), 0);
}

#[tokio::test]
async fn a_newer_attempt_stops_the_older_one() {
    let gateway = WsGateway::start().await;
    let (handler, mut words) = endless();
    let (_agent, mut peer) = start(&gateway, handler, CALM).await;
    deliver(&mut peer, TASK, 1).await;
    assert_eq!(soon(words.recv()).await, Some((1, "begun")));
    deliver(&mut peer, TASK, 2).await;
    let mut next = [soon(words.recv()).await.unwrap(), soon(words.recv()).await.unwrap()];
    next.sort_unstable();
    assert_eq!(next, [(1, "cancelled"), (2, "begun")]);
    let id = peer.request("task/deliver", delivery(TASK, 1, &json!(null))).await;
    let refusal = peer.read().await;
    assert_eq!((&refusal["id"], &refusal["error"]["data"]["code"]), (&id, &json!("stale_token")));
}

#[tokio::test]
async fn a_heartbeat_names_the_work_and_heeds_what_it_is_told_to_stop() {
    let gateway = WsGateway::start().await;
    let (handler, mut words) = endless();
    let (_agent, mut peer) = start(&gateway, handler, Span::from_ms(200)).await;
    deliver(&mut peer, TASK, 1).await;
    assert_eq!(soon(words.recv()).await, Some((1, "begun")));
    let beat = loop {
        let beat = peer.expect("agent/heartbeat").await;
        if beat["params"]["current_load"] == 1 {
            break beat;
        }
        peer.answer(&beat, json!({ "heartbeat_due_at": "2026-11-30T08:00:10Z", "waiting": 0 })).await;
    };
    let mine = json!([{ "task_id": TASK, "token": 1 }]);
    assert_eq!(beat["params"]["working_on"], mine);
    peer.answer(&beat, json!({ "heartbeat_due_at": "2026-11-30T08:00:10Z", "waiting": 0, "stop": mine })).await;
    assert_eq!(soon(words.recv()).await, Some((1, "cancelled")));
}

#[tokio::test]
async fn an_offer_is_claimed_accepted_and_done() {
    let gateway = WsGateway::start().await;
    let (_agent, mut peer) = start(&gateway, echo, CALM).await;
    peer.notify("task/offer", json!({ "task_id": TASK, "capability": "work" })).await;
    let claim = peer.expect("task/claim").await;
    assert_eq!(claim["params"], json!({ "agent_id": AGENT, "task_id": TASK, "limit": 1 }));
    peer.answer(&claim, json!({ "tasks": [delivery(TASK, 1, &json!(5))] })).await;
    let accept = peer.expect("task/accept").await;
    peer.answer(&accept, noted()).await;
    assert_eq!(peer.expect("task/complete").await["params"]["result"], 5);
}

#[tokio::test]
async fn draining_finishes_what_runs_refuses_what_is_new_and_leaves() {
    let gateway = WsGateway::start().await;
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let handler = move |task: Task, _: Context| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            task.params::<Value>()
        }
    };
    let (agent, mut peer) = start(&gateway, handler, CALM).await;
    deliver(&mut peer, TASK, 1).await;
    let draining = tokio::spawn(async move { agent.drain(Duration::from_secs(20)).await });
    let drain = peer.expect("agent/drain").await;
    peer.answer(&drain, json!({ "in_flight": 1 })).await;
    peer.request("task/deliver", delivery(OTHER, 1, &json!(null))).await;
    assert_eq!(peer.read().await["error"]["data"]["code"], "agent_refused");
    go.notify_one();
    let complete = peer.expect("task/complete").await;
    assert_eq!(complete["params"]["result"], json!({ "n": 1 }));
    peer.answer(&complete, noted()).await;
    let leave = peer.expect("agent/deregister").await;
    peer.answer(&leave, json!({ "in_flight": 0 })).await;
    assert_eq!(soon(draining).await.unwrap(), 0, "nothing was cut short");
}

#[tokio::test]
async fn work_that_outlasts_the_grace_is_cut_short_and_said_to_be() {
    let gateway = WsGateway::start().await;
    let handler = |_: Task, context: Context| async move {
        context.cancelled().await;
        Err::<(), _>(HandlerError::retryable("not finished"))
    };
    let (agent, mut peer) = start(&gateway, handler, CALM).await;
    deliver(&mut peer, TASK, 1).await;
    let draining = tokio::spawn(async move { agent.drain(Duration::from_millis(50)).await });
    let drain = peer.expect("agent/drain").await;
    peer.answer(&drain, json!({ "in_flight": 1 })).await;
    let fail = peer.expect("task/fail").await;
    assert_eq!(fail["params"]["retryable"], true);
    peer.answer(&fail, noted()).await;
    let leave = peer.expect("agent/deregister").await;
    peer.answer(&leave, json!({ "in_flight": 0 })).await;
    assert_eq!(soon(draining).await.unwrap(), 1);
}

#[tokio::test]
async fn a_panic_ends_the_attempt_and_not_the_agent() {
    let gateway = WsGateway::start().await;
    let handler = |task: Task, _: Context| async move {
        assert_ne!(task.params::<Value>()?["n"], 1, "the first one goes wrong");
        Ok(())
    };
    let (agent, mut peer) = start(&gateway, handler, CALM).await;
    deliver(&mut peer, TASK, 1).await;
    let fail = peer.expect("task/fail").await;
    assert_eq!((&fail["params"]["retryable"], &fail["params"]["started"]), (&json!(false), &json!(true)));
    peer.answer(&fail, noted()).await;
    deliver(&mut peer, OTHER, 2).await;
    peer.expect("task/complete").await;
    assert!((agent.health().failure_rate_10m - 0.5).abs() < 1e-9);
}
