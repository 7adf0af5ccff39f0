//! Urgent work that finds its only agent busy, over a real gateway process and real sockets: work that can be stopped makes
//! way, is seen to be stopped by its agent, and is done once later; all other work is never disturbed.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod victim;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_reach_sdk::schemas::AttemptView;
use agent_reach_sdk::{
    Agent, AgentCard, AgentHandle, Capability, Client, Context, Effect, ErrorCode, HandlerError, PhaseName, Task,
    TaskId, TaskView, capability,
};
use serde_json::json;
use tokio::sync::{Notify, watch};
use victim::{Victim, lively, patient};

/// The longest that anything here is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the agent saw of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Saw {
    Begun,
    Stopped,
    Done,
}

/// What the agent saw, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<(TaskId, Saw)>>>, Arc<Notify>);

impl Diary {
    fn note(&self, task: TaskId, saw: Saw) {
        self.0.lock().unwrap().push((task, saw));
        self.1.notify_waiters();
    }

    fn read(&self) -> Vec<(TaskId, Saw)> {
        self.0.lock().unwrap().clone()
    }

    /// Waits until the agent has seen this of a task so many times.
    async fn until(&self, task: TaskId, saw: Saw, times: usize) {
        let seen = async {
            loop {
                let more = self.1.notified();
                tokio::pin!(more);
                more.as_mut().enable();
                if self.read().iter().filter(|entry| **entry == (task, saw)).count() >= times {
                    return;
                }
                more.await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, seen).await;
        waited.unwrap_or_else(|_| panic!("{task} was to be {saw:?} {times} times: {:?}", self.read()));
    }
}

/// An agent of one seat whose slow work goes on until the gate opens.
struct Digger {
    diary: Diary,
    gate: watch::Sender<bool>,
    handle: AgentHandle,
}

impl Digger {
    async fn start(url: &str, is_http: bool, offer: Capability) -> Self {
        let (diary, (gate, opened)) = (Diary::default(), watch::channel(false));
        let own = diary.clone();
        let dig = move |task: Task, context: Context| {
            let (diary, mut opened) = (own.clone(), opened.clone());
            async move {
                diary.note(task.id(), Saw::Begun);
                let is_slow = task.params::<serde_json::Value>().unwrap()["slow"] == true;
                if is_slow {
                    tokio::select! {
                        () = context.cancelled() => {
                            diary.note(task.id(), Saw::Stopped);
                            // Said too late: the attempt is no longer this agent's.
                            return Ok("half a hole");
                        }
                        open = opened.wait_for(|is_open| *is_open) => drop(open),
                    }
                }
                diary.note(task.id(), Saw::Done);
                Ok::<_, HandlerError>("a hole")
            }
        };
        let card = AgentCard { max_concurrency: 1, ..lively("digger@yard") };
        let connection = Client::builder().url(url).retry(patient());
        let agent = Agent::builder(card).connection(connection).capability(offer, dig);
        let agent = if is_http { agent.http("127.0.0.1:0".parse().unwrap()) } else { agent };
        Self { diary, gate, handle: agent.start().await.unwrap() }
    }
}

async fn submit(client: &Client, priority: u8, is_slow: bool) -> TaskId {
    let params = json!({ "capability": "dig", "params": { "slow": is_slow }, "priority": priority, "deadline": "60s" });
    client.call::<TaskView>("task/submit", &params).await.unwrap().task_id
}

async fn ended(client: &Client, id: TaskId) -> TaskView {
    let view = client.wait_for_end(id, PATIENCE).await.unwrap();
    assert_eq!(view.phase, PhaseName::Completed, "{view:?}");
    assert_eq!(view.result.as_ref().unwrap().get(), r#""a hole""#);
    view
}

/// One story: slow work of priority 1 is in hand when work of priority 9 comes. Whether the slow work was stopped for it.
async fn is_stopped(is_http: bool, offer: Capability) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(folder.path(), "").await;
    let client = victim.client().await;
    let digger = Digger::start(&victim.url(), is_http, offer).await;
    let low = submit(&client, 1, true).await;
    digger.diary.until(low, Saw::Begun, 1).await;
    let high = submit(&client, 9, false).await;
    // A submit that had work make way returns after that was committed: what makes way has done so by now.
    let in_hand = client.call::<TaskView>("task/get", &json!({ "task_id": low })).await.unwrap();
    let made_way = in_hand.attempts[0].failure.clone();
    if made_way.is_some() {
        digger.diary.until(low, Saw::Stopped, 1).await;
        ended(&client, high).await;
        digger.diary.until(low, Saw::Begun, 2).await;
    }
    digger.gate.send_replace(true);
    let (low_view, high_view) = (ended(&client, low).await, ended(&client, high).await);
    let diary = digger.diary.read();
    let of = |task: TaskId| diary.iter().filter(|entry| entry.0 == task).map(|entry| entry.1).collect::<Vec<_>>();
    assert_eq!(of(high), [Saw::Begun, Saw::Done], "{diary:?}");
    // Over HTTP the word to stop may come after the urgent work: then the agent is still full, which counts as no try.
    let is_unbegun =
        |attempt: &AttemptView| attempt.failure.as_ref().is_some_and(|it| it.code == ErrorCode::Overloaded);
    for view in [&low_view, &high_view] {
        let (last, before) = view.attempts.split_last().unwrap();
        assert!(last.failure.is_none() && before.iter().all(is_unbegun), "{view:?}");
    }
    match &made_way {
        Some(failure) => {
            assert!(failure.code == ErrorCode::Overloaded && failure.message.contains("priority 9"), "{failure:?}");
            assert_eq!(of(low), [Saw::Begun, Saw::Stopped, Saw::Begun, Saw::Done], "{diary:?}");
            assert_eq!(low_view.attempts.len(), 2, "it is stopped once");
            let place = |task, saw| diary.iter().position(|entry| *entry == (task, saw)).unwrap();
            assert!(place(low, Saw::Stopped) < place(high, Saw::Begun), "{diary:?}");
            assert!(place(high, Saw::Done) < place(low, Saw::Done), "{diary:?}");
        }
        None => {
            let all = [(low, Saw::Begun), (low, Saw::Done), (high, Saw::Begun), (high, Saw::Done)];
            assert_eq!((diary.as_slice(), low_view.attempts.len()), (&all[..], 1));
        }
    }
    digger.handle.drain(Duration::from_secs(2)).await;
    made_way.is_some()
}

fn offer(effect: Effect, cancellable: bool) -> Capability {
    Capability { effect, cancellable, ..capability("dig").unwrap() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_over_a_web_socket_that_can_be_stopped_makes_way_and_is_done_once_later() {
    assert!(is_stopped(false, offer(Effect::Read, true)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_over_http_that_can_be_stopped_makes_way_and_is_done_once_later() {
    assert!(is_stopped(true, offer(Effect::IdempotentWrite, true)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_its_agent_did_not_declare_to_be_stoppable_is_never_disturbed() {
    for is_http in [false, true] {
        assert!(!is_stopped(is_http, offer(Effect::Read, false)).await, "over HTTP: {is_http}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_could_be_stopped_and_not_repeated_is_never_disturbed() {
    for is_http in [false, true] {
        assert!(!is_stopped(is_http, offer(Effect::Write, true)).await, "over HTTP: {is_http}");
    }
}
