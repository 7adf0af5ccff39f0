//! Where tasks, idempotency keys, agents and the outbox are kept. The store is the truth, and it is dumb: it compares versions
//! and moves rows; what becomes of a task is decided in the core.

pub mod command;
pub mod committer;
pub mod error;
pub mod memory;
pub mod outbox;
pub mod sqlite;

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use reach_core::task::Task;
use reach_schemas::{AgentCard, AgentId, IdempotencyKey, PhaseName, TaskId, Timestamp, WebhookId};
use serde::{Deserialize, Serialize};

pub use command::{Command, Key, Outcome};
pub use committer::Committer;
pub use error::Error;
pub use outbox::{Message, OutboxAsk, OutboxDue, OutboxQuery, OutboxRow, Sending, Stage};

/// What a store answers, once it does.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// SHA-256 of what a caller asked for, to tell a repeat from another request under the same key.
pub type Fingerprint = [u8; 32];

/// The truth about tasks, keys, agents and the outbox.
///
/// Every method may fail with [`Error`]; then nothing of what was asked has happened. A future that is dropped after
/// its first poll takes nothing back.
pub trait Store: Send + Sync {
    /// Applies the commands in their order, all in one atomic step that is durable on return; one outcome for each.
    /// A command that finds its key taken or its version passed changes nothing and leaves the others alone; an
    /// error undoes them all.
    fn apply(&self, batch: Vec<Command>) -> Answer<'_, Vec<Outcome>>;

    /// A task, open or finished.
    fn load(&self, id: TaskId) -> Answer<'_, Option<Task>>;

    /// What a key names, even if it has expired and not been purged.
    fn load_by_key<'a>(&'a self, scope: &'a str, key: &'a IdempotencyKey) -> Answer<'a, Option<KeyRow>>;

    /// Open tasks that are due at `by` or earlier, the earliest first.
    fn due(&self, by: Timestamp, limit: u32) -> Answer<'_, Vec<(Timestamp, TaskId)>>;

    /// Open tasks in the order of their ids, from the first one after `after`: a page of all the work there is.
    fn open_after(&self, after: Option<TaskId>, limit: u32) -> Answer<'_, Vec<Task>>;

    /// Tasks that fit the query, open and finished, the newest first.
    fn list(&self, query: Query) -> Answer<'_, Vec<Task>>;

    /// Every agent, in the order of their ids.
    fn agents(&self) -> Answer<'_, Vec<AgentRow>>;

    /// Messages of the outbox that are to be sent, and when to ask again.
    fn outbox_due(&self, ask: OutboxAsk) -> Answer<'_, OutboxDue>;

    /// One message of the outbox.
    fn outbox_row(&self, id: WebhookId) -> Answer<'_, Option<OutboxRow>>;

    /// Messages of the outbox that fit the query, the newest first.
    fn outbox_list(&self, query: OutboxQuery) -> Answer<'_, Vec<OutboxRow>>;

    /// How much there is.
    fn counts(&self) -> Answer<'_, Counts>;

    /// Proves, by writing, that a batch would be taken now.
    fn check(&self) -> Answer<'_, ()>;
}

/// What an idempotency key names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// The task that was submitted with it.
    pub task_id: TaskId,
    /// Of the request that it came with.
    pub fingerprint: Fingerprint,
    /// When it is free again. None: its task is open.
    pub expires_at: Option<Timestamp>,
}

/// An agent as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRow {
    /// Its card.
    pub card: AgentCard,
    /// Grows with each registration that changed the card.
    pub generation: u64,
    /// When it registered first.
    pub registered_at: Timestamp,
    /// When it last registered another card than before. 0: it is not known.
    #[serde(default)]
    pub changed_at: Timestamp,
    /// Whether it takes no new work.
    pub draining: bool,
}

/// Which tasks a list holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// Only those in one of these phases. Empty: any.
    pub phases: Vec<PhaseName>,
    /// Only those that this agent has or had last; before the first attempt, those that name it.
    pub agent: Option<AgentId>,
    /// Only those of this caller.
    pub scope: Option<String>,
    /// Only those with a smaller id: older ones.
    pub before: Option<TaskId>,
    /// At most so many.
    pub limit: u32,
}

/// How much a store holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Tasks that are not finished.
    pub open: u64,
    /// Finished tasks by their phase; a phase without tasks is left out.
    pub done: BTreeMap<PhaseName, u64>,
    /// Idempotency keys, expired ones included until they are purged.
    pub keys: u64,
    /// Bytes in use on the disk. 0: none, or not known.
    pub bytes: u64,
}

/// Under whose name a task is listed: who has it or had it last, else whom it asks for.
fn agent_of(task: &Task) -> Option<&AgentId> {
    task.state.attempts.last().map(|attempt| &attempt.agent_id).or(task.state.target.to_agent.as_ref())
}

/// Since when a task is finished. None: it is open.
fn finished_at(task: &Task) -> Option<Timestamp> {
    let state = &task.state;
    state.phase.name().is_final().then(|| state.finished_at.unwrap_or(state.deadline_at))
}
