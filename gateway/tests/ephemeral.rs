//! A `read` without a key that is waited for touches no disk on its way, and everything else does before it is delivered
//! or its id is given out: over a real gateway process, a real agent, and the database as another process sees it.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod victim;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_reach_sdk::schemas::FallbackStep;
use agent_reach_sdk::schemas::call::TaskList;
use agent_reach_sdk::{
    Agent, AgentHandle, Capability, Client, Context, Effect, ErrorCode, HandlerError, PhaseName, RetryPolicy, Task,
    TaskId, TaskRequest, TaskView, capability,
};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use tokio::sync::watch;
use victim::{Victim, lively, patient};

const PATIENCE: Duration = Duration::from_secs(30);
const EVERYTHING: TaskList = TaskList { phase: None, agent_id: None, before: None, limit: None };

/// The gateway's database.
#[derive(Clone)]
struct Disk(PathBuf);

impl Disk {
    fn open(&self) -> Connection {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(&self.0, flags).unwrap()
    }

    fn has(&self, id: TaskId) -> bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM task WHERE id = ?1)";
        self.open().query_row(sql, [id.as_bytes()], |row| row.get(0)).unwrap()
    }

    /// Keeps everybody else from writing for as long as the connection lives.
    fn blocked(&self) -> Connection {
        let connection = self.open();
        connection.busy_timeout(PATIENCE).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        connection
    }
}

/// What an agent saw when it was given work.
#[derive(Debug, Clone)]
struct Seen {
    id: TaskId,
    does: String,
    is_on_disk: bool,
}

/// A gateway, and an agent that looks into the gateway's database before it does anything, and goes on once it is let to.
struct World {
    _folder: tempfile::TempDir,
    victim: Victim,
    _agent: AgentHandle,
    client: Client,
    disk: Disk,
    held: watch::Sender<bool>,
    seen: watch::Receiver<Vec<Seen>>,
}

fn offer(does: &str, effect: Effect, fallback: Option<&str>) -> Capability {
    let fallback = fallback.map(|name| FallbackStep::Capability(name.parse().unwrap()));
    Capability { effect, fallback: fallback.into_iter().collect(), ..capability(does).unwrap() }
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let victim = Victim::start(folder.path(), "").await;
        let disk = Disk(victim.database());
        let (held, is_held) = watch::channel(false);
        let (noted, seen) = watch::channel(Vec::<Seen>::new());
        let (noted, looks) = (Arc::new(Mutex::new(noted)), disk.clone());
        let work = move |task: Task, context: Context| {
            let (noted, looks, mut is_held) = (noted.clone(), looks.clone(), is_held.clone());
            async move {
                let does = task.capability().to_string();
                let saw = Seen { id: task.id(), does: does.clone(), is_on_disk: looks.has(task.id()) };
                noted.lock().unwrap().send_modify(|seen| seen.push(saw));
                let _ = is_held.wait_for(|is_held| !is_held).await;
                match does.as_str() {
                    "look_again" if context.attempt() == 1 => Err(HandlerError::retryable("not at the first time")),
                    "look_or_note" | "look_badly" => Err(HandlerError::retryable("never")),
                    _ => Ok(task.id()),
                }
            }
        };
        let connection = Client::builder().url(victim.url()).retry(patient());
        let agent = Agent::builder(lively("desk@light"))
            .connection(connection)
            .capability(offer("look", Effect::Read, None), work.clone())
            .capability(offer("look_again", Effect::Read, None), work.clone())
            .capability(offer("look_badly", Effect::Read, None), work.clone())
            .capability(offer("look_or_note", Effect::Read, Some("note")), work.clone())
            .capability(offer("note", Effect::Write, None), work);
        let agent = agent.start().await.unwrap();
        let client = victim.client().await;
        Self { _folder: folder, victim, _agent: agent, client, disk, held, seen }
    }

    fn ask(&self, does: &str) -> TaskRequest {
        self.client.task(does).without_key()
    }

    /// What the agent saw of each thing that it was given.
    fn saw(&self) -> Vec<(String, bool)> {
        self.seen.borrow().iter().map(|seen| (seen.does.clone(), seen.is_on_disk)).collect()
    }

    /// Asks for a `look` that is held at the agent; its id, as the agent knows it, and its end.
    async fn hold_a_look(&mut self) -> (TaskId, tokio::task::JoinHandle<agent_reach_sdk::Result<TaskId>>) {
        self.held.send_replace(true);
        let request = self.ask("look");
        let end = tokio::spawn(async move { request.reach().await.map(|done| done.id()) });
        let seen = self.seen.wait_for(|seen| !seen.is_empty()).await.unwrap().clone();
        (seen[0].id, end)
    }
}

fn is_on_disk(does: &str) -> (String, bool) {
    (does.to_owned(), true)
}

fn is_in_memory(does: &str) -> (String, bool) {
    (does.to_owned(), false)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_is_delivered_and_tried_again_without_a_disk_and_nothing_else_is() {
    let world = World::new().await;
    world.ask("look").reach().await.unwrap();
    world.ask("look_again").reach().await.unwrap();
    world.client.task("look").idempotency_key("key").reach().await.unwrap();
    world.client.task("look").submit().await.unwrap().wait_for(PATIENCE).await.unwrap();
    world.ask("look").submit().await.unwrap().wait_for(PATIENCE).await.unwrap();
    world.ask("note").reach().await.unwrap();
    let expected = [
        is_in_memory("look"),
        is_in_memory("look_again"),
        is_in_memory("look_again"),
        is_on_disk("look"),
        is_on_disk("look"),
        is_on_disk("look"),
        is_on_disk("note"),
    ];
    assert_eq!(world.saw(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_is_answered_while_nothing_can_be_written() {
    let world = World::new().await;
    let blocked = world.disk.blocked();
    world.ask("look").reach().await.unwrap();
    world.ask("look_again").reach().await.unwrap();
    let hasty = Client::builder().url(world.victim.url()).retry(RetryPolicy::never()).connect().await.unwrap();
    let refused = [hasty.task("look").idempotency_key("key"), hasty.task("note").without_key()];
    for request in refused {
        let refusal = request.reach().await.unwrap_err();
        assert_eq!(refusal.code(), Some(ErrorCode::StoreUnavailable), "{refusal:?}");
    }
    assert_eq!(world.saw(), ["look", "look_again", "look_again"].map(is_in_memory));
    drop(blocked);
    world.ask("note").reach().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_is_given_out_early_survives_a_kill() {
    let mut world = World::new().await;
    world.held.send_replace(true);
    let early: TaskView = world.client.call("reach", &json!({ "capability": "look", "wait": "200ms" })).await.unwrap();
    assert!(!early.phase.is_final() && early.outcome.as_deref() == Some("REACH_TIMEOUT"), "{early:?}");
    world.victim.kill_and_restart().await;
    world.held.send_replace(false);
    let end = world.client.wait_for_end(early.task_id, PATIENCE).await.unwrap();
    assert_eq!(end.phase, PhaseName::Completed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fallback_to_a_write_is_on_disk_before_it_is_delivered() {
    let world = World::new().await;
    let done = world.ask("look_or_note").tries(1).reach().await.unwrap();
    assert!(done.is_fallback());
    assert_eq!(world.saw(), [is_in_memory("look_or_note"), is_on_disk("note")]);
    assert!(world.disk.has(done.id()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_is_on_disk_before_its_answer() {
    let world = World::new().await;
    let dead = world.ask("look_badly").tries(1).reach().await.unwrap_err().task_id().unwrap();
    assert!(world.disk.has(dead));
    assert_eq!(world.saw(), [is_in_memory("look_badly")]);
    let letters = world.client.dead_letters(&EVERYTHING).await.unwrap();
    assert_eq!(letters.iter().map(|task| task.task_id).collect::<Vec<_>>(), [dead]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_shown_unfinished_work_is_shown_what_is_on_disk() {
    for by_id in [true, false] {
        let mut world = World::new().await;
        let (id, end) = world.hold_a_look().await;
        assert!(!world.disk.has(id));
        let shown = if by_id {
            vec![world.client.get(id).await.unwrap()]
        } else {
            world.client.list(&EVERYTHING).await.unwrap()
        };
        assert!(world.disk.has(id));
        assert_eq!(shown.iter().map(|task| task.task_id).collect::<Vec<_>>(), [id]);
        world.held.send_replace(false);
        assert_eq!(end.await.unwrap().unwrap(), id);
        assert_eq!(world.client.get(id).await.unwrap().phase, PhaseName::Completed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_is_waited_for_can_be_called_off() {
    let mut world = World::new().await;
    let (id, end) = world.hold_a_look().await;
    assert_eq!(world.client.cancel(id).await.unwrap().phase, PhaseName::Cancelled);
    let told = end.await.unwrap().unwrap_err();
    assert_eq!((told.code(), told.task_id()), (Some(ErrorCode::Cancelled), Some(id)), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finished_read_is_found_at_once_and_written_down_in_the_background() {
    let mut world = World::new().await;
    let id = world.ask("look").reach().await.unwrap().id();
    assert_eq!(world.client.explain(id).await.unwrap().decisions.len(), 1);
    assert_eq!(world.client.list(&EVERYTHING).await.unwrap()[0].task_id, id);
    let written = async {
        while !world.disk.has(id) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await.expect("the read is never written down");
    assert_eq!(world.client.list(&EVERYTHING).await.unwrap().len(), 1);
    world.victim.kill_and_restart().await;
    assert_eq!(world.client.explain(id).await.unwrap().decisions.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orderly_stop_writes_down_what_was_in_memory() {
    let mut world = World::new().await;
    let blocked = world.disk.blocked();
    let mut ids = Vec::new();
    // More than are written down at a time.
    for _ in 0..300 {
        ids.push(world.ask("look").reach().await.unwrap().id());
    }
    drop(blocked);
    world.victim.stop_and_restart().await;
    let lost = ids.iter().filter(|id| !world.disk.has(**id)).count();
    assert_eq!(lost, 0, "of {}", ids.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_caller_is_woken_though_accept_and_result_come_together() {
    let world = World::new().await;
    for _ in 0..1000 {
        let began = Instant::now();
        let request = json!({ "capability": "look", "wait": "30s" });
        let done: TaskView = world.client.call("reach", &request).await.unwrap();
        // A wake that was lost is made good when the wait is over, and then only.
        assert!(began.elapsed() < Duration::from_secs(20), "{} was not woken", done.task_id);
        let seen = world.client.get(done.task_id).await.unwrap();
        assert_eq!((done.phase, seen.phase), (PhaseName::Completed, PhaseName::Completed));
    }
}
