//! Tasks, commands and stores for the tests.

use std::path::Path;
use std::sync::Arc;

use reach_core::task::{Attempt, Birth, Phase, Task};
use reach_gateway::store::memory::MemoryStore;
use reach_gateway::store::sqlite::{SqliteConfig, SqliteStore};
use reach_gateway::store::{AgentRow, Command, Key, Outcome, Store};
use reach_schemas::{ErrorCode, Failure, FencingToken, PhaseName, Protocol, RawJson, Span, Submit, TaskId, Timestamp};
use tempfile::TempDir;

/// A store with the directory that it needs for as long as it lives.
pub(crate) struct Kept {
    pub(crate) store: Arc<dyn Store>,
    _directory: Option<TempDir>,
}

pub(crate) fn memory() -> Kept {
    Kept { store: Arc::new(MemoryStore::new()), _directory: None }
}

pub(crate) fn sqlite() -> Kept {
    let directory = directory();
    Kept { store: Arc::new(open(&directory.path().join("reach.db"))), _directory: Some(directory) }
}

/// In memory where there is such a place: these tests are about what is read back, not about the disk.
pub(crate) fn directory() -> TempDir {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }.unwrap()
}

pub(crate) fn config(path: &Path) -> SqliteConfig {
    SqliteConfig { path: path.to_owned(), bytes_max: None }
}

pub(crate) fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(config(path)).unwrap()
}

pub(crate) fn at(ms: u64) -> Timestamp {
    Timestamp::from_ms(ms)
}

pub(crate) fn id(n: u64) -> TaskId {
    TaskId::from_parts(n, u128::from(n))
}

/// Task `n`: born at `n`, submitted, due at `n`.
pub(crate) fn task(n: u64) -> Task {
    let params = RawJson::parse(r#"{"z":1.10,"a":123456789012345678901234567890,"deep":[[{"é":"\u00e9"}]]}"#).unwrap();
    let submit = Submit { intent: Some(format!("job {n}")), params: Some(params), ..Submit::default() };
    let birth = Birth { id: id(n), scope: "alice".to_owned(), has_scoped_key: true, submit, created_at: at(n) };
    Task::new(birth, Span::from_ms(1000))
}

pub(crate) fn scoped(scope: &str, mut task: Task) -> Task {
    let birth = Birth { scope: scope.to_owned(), ..(*task.birth).clone() };
    task.birth = Arc::new(birth);
    task
}

/// The task as an agent asks for it.
pub(crate) fn asked_by(agent: &str, mut task: Task) -> Task {
    let submit = Submit { from_agent: Some(agent.parse().unwrap()), ..task.birth.submit.clone() };
    task.birth = Arc::new(Birth { submit, ..(*task.birth).clone() });
    task
}

/// The task, if it ended badly, with this reason.
pub(crate) fn failing(mut task: Task, reason: ErrorCode) -> Task {
    if let Phase::Failed(failure) | Phase::Expired(failure) | Phase::DeadLettered(failure) = &mut task.state.phase {
        failure.code = reason;
    }
    task
}

/// The task one version on, in a phase that it enters at `now`.
pub(crate) fn stepped(task: &Task, phase: PhaseName, now: u64) -> Task {
    let mut next = task.clone();
    next.version += 1;
    next.state.finished_at = phase.is_final().then(|| at(now));
    next.state.phase = phase_at(phase, now);
    next
}

pub(crate) fn phase_at(phase: PhaseName, now: u64) -> Phase {
    let until = at(now + 10);
    let hold = reach_core::task::phase::Hold { run_until: until, lease_until: None, lease_for: None };
    let failure = || Failure::new(ErrorCode::Timeout, "too late");
    match phase {
        PhaseName::Submitted => Phase::Submitted { not_before: at(now), offered: Vec::new() },
        PhaseName::Routed => Phase::Routed(hold),
        PhaseName::Delivered => Phase::Delivered(hold),
        PhaseName::Accepted => Phase::Accepted(hold),
        PhaseName::Completed => Phase::Completed { result: RawJson::parse("[1.0]").unwrap() },
        PhaseName::Failed => Phase::Failed(failure()),
        PhaseName::Cancelled => Phase::Cancelled,
        PhaseName::Expired => Phase::Expired(failure()),
        PhaseName::DeadLettered => Phase::DeadLettered(failure()),
    }
}

/// The task with an attempt on an agent.
pub(crate) fn tried(mut task: Task, agent: &str) -> Task {
    task.state.attempts.push(Attempt {
        token: FencingToken(1),
        agent_id: agent.parse().unwrap(),
        capability: "do".parse().unwrap(),
        protocol: Protocol::Http,
        started_at: task.birth.created_at,
        delivered_at: None,
        accepted_at: None,
        ended_at: None,
        failure: None,
    });
    task
}

pub(crate) fn key(name: &str, fingerprint: u8) -> Key {
    let key = name.parse().unwrap();
    Key { scope: "alice".to_owned(), key, fingerprint: [fingerprint; 32], expires_at: None }
}

pub(crate) fn insert(task: Task) -> Command {
    Command::Insert { task, key: None, now: at(0), outbox: Vec::new() }
}

pub(crate) fn insert_keyed(task: Task, key: Key, now: u64) -> Command {
    Command::Insert { task, key: Some(key), now: at(now), outbox: Vec::new() }
}

pub(crate) fn commit(task: Task) -> Command {
    Command::Commit { task, was_final: false, key_expires_at: None, outbox: Vec::new() }
}

pub(crate) fn finish(task: Task, key_expires_at: u64) -> Command {
    Command::Commit { task, was_final: false, key_expires_at: Some(at(key_expires_at)), outbox: Vec::new() }
}

pub(crate) fn redrive(task: Task) -> Command {
    Command::Commit { task, was_final: true, key_expires_at: None, outbox: Vec::new() }
}

pub(crate) fn purge(finished_before: u64, keys_before: u64, limit: u32) -> Command {
    Command::Purge { finished_before: at(finished_before), keys_before: at(keys_before), limit }
}

pub(crate) fn agent(id: &str, generation: u64) -> AgentRow {
    let card = serde_json::from_value(serde_json::json!({
        "agent_id": id,
        "description": "does it",
        "capabilities": [{ "name": "do", "input_schema": { "type": "object" } }],
    }));
    AgentRow {
        card: card.unwrap(),
        generation,
        registered_at: at(1),
        changed_at: at(1),
        draining: false,
        configured: false,
        server: None,
    }
}

/// Applies one command.
pub(crate) async fn tell(store: &dyn Store, command: Command) -> Outcome {
    tell_all(store, vec![command]).await.remove(0)
}

pub(crate) async fn tell_all(store: &dyn Store, batch: Vec<Command>) -> Vec<Outcome> {
    store.apply(batch).await.unwrap()
}
