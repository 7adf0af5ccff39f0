//! Where tasks, idempotency keys, agents, identities and the outbox are kept. The store is the truth, and it is dumb: it compares versions
//! and moves rows; what becomes of a task is decided in the core.

pub mod audit;
pub mod command;
pub mod committer;
pub mod error;
mod identity;
pub mod memory;
pub mod outbox;
pub mod sqlite;

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use reach_core::task::Task;
use reach_schemas::{
    AgentCard, AgentId, CapabilityName, ErrorCode, IdempotencyKey, Namespace, PhaseName, ServerSpec, TaskId, Timestamp,
    WebhookId,
};
use serde::{Deserialize, Serialize};

pub use audit::{Altered, AuditLog, AuditQuery};
pub use command::{Command, Document, Key, Outcome};
pub use committer::Committer;
pub use error::Error;
pub use identity::IdentityRow;
pub use outbox::{Message, OutboxAsk, OutboxCounts, OutboxDue, OutboxQuery, OutboxRow, Sending, Stage};

/// What a store answers, once it does.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// SHA-256 of what a caller asked for, to tell a repeat from another request under the same key.
pub type Fingerprint = [u8; 32];

/// The truth about tasks, keys, agents and the outbox, and the audit log of what was done.
///
/// Every method may fail with [`Error`]; then nothing of what was asked has happened. A future that is dropped after
/// its first poll takes nothing back.
pub trait Store: AuditLog + Send + Sync {
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

    /// How many tasks fit the query: of those before its limit is reached.
    fn count(&self, query: Query) -> Answer<'_, u64>;

    /// Every agent, in the order of their ids.
    fn agents(&self) -> Answer<'_, Vec<AgentRow>>;

    /// A document of the operator's.
    fn document<'a>(&'a self, name: &'a str) -> Answer<'a, Option<Document>>;

    /// Everybody who is known, in the order of their kinds and names.
    fn identities(&self) -> Answer<'_, Vec<IdentityRow>>;

    /// Messages of the outbox that are to be sent, and when to ask again.
    fn outbox_due(&self, ask: OutboxAsk) -> Answer<'_, OutboxDue>;

    /// One message of the outbox.
    fn outbox_row(&self, id: WebhookId) -> Answer<'_, Option<OutboxRow>>;

    /// Messages of the outbox that fit the query, the newest first.
    fn outbox_list(&self, query: OutboxQuery) -> Answer<'_, Vec<OutboxRow>>;

    /// How many messages of the outbox have not reached their receivers.
    fn outbox_counts(&self) -> Answer<'_, OutboxCounts>;

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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_false(value: &bool) -> bool {
    !*value
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
    /// Whether it is an agent of the configuration: one that is taken out of it is forgotten.
    #[serde(default, skip_serializing_if = "is_false")]
    pub configured: bool,
    /// The MCP server that it was made of, if that is kept here and nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerSpec>,
}

/// Which tasks a list holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// Only those in one of these phases. Empty: any.
    pub phases: Vec<PhaseName>,
    /// Only those that this agent has or had last; before the first attempt, those that name it.
    pub agent: Option<AgentId>,
    /// Only those that were last tried as this capability; before the first attempt, those that name it.
    pub capability: Option<CapabilityName>,
    /// Only those that ended for this reason.
    pub code: Option<ErrorCode>,
    /// Only those of this caller.
    pub scope: Option<String>,
    /// Only those that this agent asked for.
    pub from_agent: Option<AgentId>,
    /// Only those that an agent of this namespace asked for.
    pub from_namespace: Option<Namespace>,
    /// Only those that ended at this time or later.
    pub ended_after: Option<Timestamp>,
    /// Only those that ended before this time.
    pub ended_before: Option<Timestamp>,
    /// Only those with a smaller id: older ones.
    pub before: Option<TaskId>,
    /// At most so many.
    pub limit: u32,
}

impl Query {
    /// Whether a task fits, wherever it stands in the list.
    #[must_use]
    pub fn fits(&self, task: &Task) -> bool {
        let (ended_at, from) = (finished_at(task), task.birth.submit.from_agent.as_ref());
        self.before.is_none_or(|before| task.id() < before)
            && (self.phases.is_empty() || self.phases.contains(&task.state.phase.name()))
            && self.agent.as_ref().is_none_or(|agent| agent_of(task) == Some(agent))
            && self.capability.as_ref().is_none_or(|capability| capability_of(task) == Some(capability))
            && self.code.is_none_or(|code| task.state.phase.failure().is_some_and(|failure| failure.code == code))
            && self.scope.as_ref().is_none_or(|scope| &task.birth.scope == scope)
            && self.from_agent.as_ref().is_none_or(|agent| from == Some(agent))
            && self.from_namespace.as_ref().is_none_or(|own| from.is_some_and(|agent| agent.namespace() == *own))
            && self.ended_after.is_none_or(|after| ended_at.is_some_and(|at| at >= after))
            && self.ended_before.is_none_or(|before| ended_at.is_some_and(|at| at < before))
    }

    /// Whether only finished tasks can fit.
    fn is_of_ended(&self) -> bool {
        self.code.is_some() || self.ended_after.is_some() || self.ended_before.is_some()
    }
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

/// As what a task is listed: what it was last tried as, else what it asks for.
fn capability_of(task: &Task) -> Option<&CapabilityName> {
    task.state.attempts.last().map(|attempt| &attempt.capability).or(task.state.target.capability.as_ref())
}

/// Since when a task is finished. None: it is open.
fn finished_at(task: &Task) -> Option<Timestamp> {
    let state = &task.state;
    state.phase.name().is_final().then(|| state.finished_at.unwrap_or(state.deadline_at))
}
