//! What a store can be told, and what it says to it.

use reach_core::audit::{Checkpoint, Event};
use reach_core::task::Task;
use reach_schemas::{AgentId, IdempotencyKey, TaskId, Timestamp, WebhookId};

use super::{AgentRow, Fingerprint, IdentityRow, OutboxRow, Sending};

/// One change. Commands of one batch see what those before them did.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly every command is about a task: a box for each would cost more")]
pub enum Command {
    /// Takes a new task on, and its key with it: both or neither.
    ///
    /// [`Outcome::Inserted`]; or [`Outcome::KeyTaken`] if a key that is not free stands; or [`Outcome::Conflict`] if a
    /// task of this id stands. A key whose `expires_at` is `now` or earlier is free and goes to the new task.
    Insert {
        /// The task, in whatever phase it is born into.
        task: Task,
        /// The caller's key.
        key: Option<Key>,
        /// To tell whether a key has expired.
        now: Timestamp,
        /// What is to be told of a task that is born finished: with it, or not at all.
        outbox: Vec<OutboxRow>,
    },
    /// Puts a task's next state in the place of its last one; what it was born with stays as it was inserted.
    ///
    /// [`Outcome::Committed`] if the stored version is one less than the task's, and its being final is as `was_final`
    /// says; else [`Outcome::Conflict`]. The task's key, where it still has one, keeps up: an open task's key never
    /// expires, a finished one's does at `key_expires_at`.
    Commit {
        /// The task with its new state and its new version.
        task: Task,
        /// Whether the last state was final: true for a redrive.
        was_final: bool,
        /// When its key is free again. It counts only if the new state is final; then None means never.
        key_expires_at: Option<Timestamp>,
        /// What is to be told of this step: with it, or not at all.
        outbox: Vec<OutboxRow>,
    },
    /// Notes how the sending of a message goes; of two notes the later one stands. [`Outcome::Done`], also if there is no
    /// such message any more.
    NoteSending {
        /// Which message.
        id: WebhookId,
        /// How it goes.
        sending: Sending,
    },
    /// Keeps an agent, in the place of what was kept of it. [`Outcome::Done`].
    PutAgent(AgentRow),
    /// Forgets an agent, if it is known. [`Outcome::Done`].
    RemoveAgent(AgentId),
    /// Puts a document of the operator's in the place of the one of that name. [`Outcome::Committed`] if the version that
    /// stands is one less than the document's, 0 if there is none; else [`Outcome::Conflict`].
    PutDocument(Document),
    /// Keeps who somebody is, in the place of what was kept of them. [`Outcome::Done`].
    PutIdentity(IdentityRow),
    /// Forgets somebody, or a token that lets somebody in; what is kept is found by its key, whatever else the row says.
    /// [`Outcome::Done`], or [`Outcome::Conflict`] if it was not known: of two who want the same, one gets it.
    TakeIdentity(IdentityRow),
    /// Forgets a task, and its key, if it is known. [`Outcome::Done`].
    Forget(TaskId),
    /// Forgets what is old: first keys, then finished tasks that no key names any more, oldest first, so that a key
    /// that stands always leads to its task; and messages whose sending has ended. [`Outcome::Purged`].
    Purge {
        /// Tasks that were finished before this time, and messages whose sending ended before.
        finished_before: Timestamp,
        /// Keys that expired before this time.
        keys_before: Timestamp,
        /// At most so many tasks, so many keys and so many messages. If as many were purged, there may be more.
        limit: u32,
    },
    /// Does what the change says and adds rows to the audit log, both or neither. What the change comes to.
    ///
    /// Rows are added if it came to something: [`Outcome::Inserted`], [`Outcome::Committed`], or [`Outcome::Done`] where
    /// there was something to be done it to.
    Audited {
        /// The change.
        change: Box<Command>,
        /// What is to be written down of it.
        events: Vec<Event>,
    },
    /// Adds rows to the audit log, of what changed nothing here. [`Outcome::Done`].
    Audit(Vec<Event>),
    /// Keeps a checkpoint of the audit log, unless one is kept that covers as much. [`Outcome::Done`].
    PinAudit(Checkpoint),
}

impl Command {
    /// The change with what is to be written down of it; as it is, if that is nothing.
    #[must_use]
    pub fn audited(self, events: Vec<Event>) -> Self {
        if events.is_empty() { self } else { Self::Audited { change: Box::new(self), events } }
    }
}

/// A document of the operator's that is kept whole, such as the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Which.
    pub name: String,
    /// Grows by one with each change; the first one's is 1.
    pub version: u64,
    /// What it says.
    pub content: String,
}

/// An idempotency key as it comes with a new task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Whose keys it is among.
    pub scope: String,
    /// The caller's name for its intention.
    pub key: IdempotencyKey,
    /// Of the request.
    pub fingerprint: Fingerprint,
    /// When it is free again. None while the task is open; a task that is born finished says when.
    pub expires_at: Option<Timestamp>,
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The task is taken on.
    Inserted,
    /// The key names another task; nothing was changed.
    KeyTaken {
        /// Which.
        task_id: TaskId,
        /// Of the request that the key came with.
        fingerprint: Fingerprint,
    },
    /// The new state stands.
    Committed,
    /// Another commit was first; nothing was changed.
    Conflict {
        /// The version that stands. None: there is no such task.
        current: Option<u64>,
    },
    /// It is so.
    Done,
    /// What was old is forgotten.
    Purged {
        /// How many tasks.
        tasks: u32,
        /// How many keys.
        keys: u32,
        /// How many messages.
        messages: u32,
    },
}
