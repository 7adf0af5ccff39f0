//! One key, one task, one execution: over a real gateway process, real sockets and an agent that keeps a ledger.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod victim;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_reach_sdk::schemas::call::{OnFailed, OnInFlight};
use agent_reach_sdk::{
    Agent, AgentHandle, Client, Context, Effect, Error, ErrorCode, HandlerError, PhaseName, Task, TaskRequest,
    capability,
};
use serde_json::json;
use victim::{Ledger, Victim, lively, patient};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway, and an agent that does what it is told once it is let to.
struct World {
    _folder: tempfile::TempDir,
    _victim: Victim,
    _agent: AgentHandle,
    client: Client,
    ledger: Ledger,
    /// While it holds, the agent works on.
    is_held: Arc<AtomicBool>,
}

impl World {
    async fn new(configuration: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let victim = Victim::start(folder.path(), configuration).await;
        let ledger = Ledger::at(folder.path().join("ledger"));
        let is_held = Arc::new(AtomicBool::new(false));
        let (lines, held) = (ledger.clone(), is_held.clone());
        let work = move |task: Task, _: Context| {
            let (lines, held) = (lines.clone(), held.clone());
            async move {
                lines.add(task.id());
                while held.load(Ordering::Relaxed) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let asked: serde_json::Value = task.params()?;
                if asked["fail"] == true { Err(HandlerError::failed("told to fail")) } else { Ok(asked) }
            }
        };
        let offer = agent_reach_sdk::Capability { effect: Effect::Write, ..capability("do_it").unwrap() };
        let connection = Client::builder().url(victim.url()).retry(patient());
        let agent = Agent::builder(lively("doer@once")).connection(connection).capability(offer, work);
        let agent = agent.start().await.unwrap();
        let client = victim.client().await;
        Self { _folder: folder, _victim: victim, _agent: agent, client, ledger, is_held }
    }

    fn ask(&self, key: &str, params: serde_json::Value) -> TaskRequest {
        self.client.task("do_it").params(&params).idempotency_key(key)
    }

    fn executions(&self) -> usize {
        self.ledger.counts().values().sum()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_callers_with_one_key_get_one_task_and_one_execution() {
    let world = World::new("").await;
    let callers: Vec<_> = (0..32)
        .map(|_| {
            let request = world.ask("one", json!({ "amount": 1.10 }));
            tokio::spawn(async move {
                let task = request.submit().await.unwrap();
                let done = task.wait_for(PATIENCE).await.unwrap();
                (task.id(), task.is_replayed(), done.raw().get().to_owned())
            })
        })
        .collect();
    let mut answers = Vec::new();
    for caller in callers {
        answers.push(caller.await.unwrap());
    }
    assert_eq!(answers.iter().filter(|answer| answer.1).count(), 31, "31 replays");
    assert!(answers.iter().all(|answer| answer.0 == answers[0].0 && answer.2 == r#"{"amount":1.1}"#), "{answers:?}");
    assert_eq!(world.executions(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_request_under_a_used_key_is_refused_and_shown_nothing() {
    let world = World::new("").await;
    let first = world.ask("key", json!({ "secret": "first" })).submit().await.unwrap();
    first.wait_for(PATIENCE).await.unwrap();
    let refused = world.ask("key", json!({ "secret": "second" })).submit().await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::IdempotencyKeyReused));
    let said = format!("{refused} {refused:?}");
    assert!(!said.contains("first") && !said.contains(&first.id().to_string()), "{said}");
    assert_eq!(world.executions(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn white_space_and_member_order_do_not_make_another_request() {
    let world = World::new("").await;
    let first = world.ask("key", json!({ "a": 1, "b": 2 })).submit().await.unwrap();
    let params = agent_reach_sdk::RawJson::parse(r#"{ "b": 2,  "a": 1 }"#).unwrap();
    let again = world.client.task("do_it").raw_params(params).idempotency_key("key").submit().await.unwrap();
    assert!(again.is_replayed() && again.id() == first.id());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_in_flight_is_joined_or_refused_as_asked() {
    let world = World::new("").await;
    world.is_held.store(true, Ordering::Relaxed);
    let first = world.ask("key", json!({})).submit().await.unwrap();
    let refused = world.ask("key", json!({})).on_in_flight(OnInFlight::Reject).submit().await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::IdempotencyInFlight));
    let joined = world.ask("key", json!({})).submit().await.unwrap();
    assert!(joined.is_replayed() && joined.id() == first.id());
    world.is_held.store(false, Ordering::Relaxed);
    let done = joined.wait_for(PATIENCE).await.unwrap();
    assert_eq!((done.view().phase, world.executions()), (PhaseName::Completed, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_is_replayed_and_only_sent_again_when_asked() {
    let world = World::new("").await;
    let first = world.ask("key", json!({ "fail": true })).submit().await.unwrap();
    let failed = first.wait_for(PATIENCE).await.unwrap_err();
    assert!(matches!(failed, Error::TaskFailed { .. }), "{failed:?}");
    let replay = world.ask("key", json!({ "fail": true })).submit().await.unwrap();
    assert!(replay.is_replayed() && replay.id() == first.id());
    assert_eq!((replay.view().phase, world.executions()), (PhaseName::Failed, 1));
    let again = world.ask("key", json!({ "fail": true })).on_failed(OnFailed::Retry).submit().await.unwrap();
    assert_eq!(again.id(), first.id());
    again.wait_for(PATIENCE).await.unwrap_err();
    assert_eq!(world.executions(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_free_again_once_it_has_expired_and_never_while_its_task_is_open() {
    let world = World::new("keep_keys = \"300ms\"").await;
    world.is_held.store(true, Ordering::Relaxed);
    let first = world.ask("key", json!({})).submit().await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let joined = world.ask("key", json!({})).submit().await.unwrap();
    assert!(joined.is_replayed(), "the key of an open task does not expire");
    world.is_held.store(false, Ordering::Relaxed);
    first.wait_for(PATIENCE).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let second = world.ask("key", json!({})).submit().await.unwrap();
    assert!(!second.is_replayed() && second.id() != first.id());
    second.wait_for(PATIENCE).await.unwrap();
    assert_eq!(world.executions(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_was_refused_does_not_use_its_key_up() {
    let world = World::new("").await;
    let nobody = world.client.task("no_such_thing").idempotency_key("key").submit().await.unwrap_err();
    assert_eq!(nobody.code(), Some(ErrorCode::NoCandidate));
    let task = world.ask("key", json!({})).submit().await.unwrap();
    assert!(!task.is_replayed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_callers_do_not_share_their_keys() {
    let world = World::new("").await;
    let first = world.ask("key", json!({})).submit().await.unwrap();
    let other = world.ask("key", json!({})).from_agent("caller@once").submit().await.unwrap();
    assert!(!other.is_replayed() && other.id() != first.id());
}
