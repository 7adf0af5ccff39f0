//! What is to be told to the world about tasks that end, or wait for a person. A row is written in the commit in which the task
//! does, so that neither can be there without the other, and leaves when it has long been told.

use std::collections::BTreeSet;

use reach_core::turns::in_turn;
use reach_schemas::{
    AgentId, EventType, Namespace, RawJson, TaskId, Timestamp, WebhookId, WebhookState, WebhookTry, WebhookView,
};
use serde::{Deserialize, Serialize};

/// One message to one receiver, and how its sending goes.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboxRow {
    /// What is sent, and to whom. It never changes.
    pub message: Message,
    /// How the sending goes.
    pub sending: Sending,
}

/// What is sent, and to whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Its id, the same over every try.
    pub id: WebhookId,
    /// What it tells.
    pub kind: EventType,
    /// Of which task.
    pub task_id: TaskId,
    /// The agent whose card names the receiver. None: the task or the configuration does.
    pub agent_id: Option<AgentId>,
    /// The receiver.
    pub url: String,
    /// Whose the receiver is. None: the operator's, or a message of an older gateway.
    #[serde(default)]
    pub owner: Option<Namespace>,
    /// Host and port of the receiver.
    pub host: String,
    /// When what it tells happened.
    pub created_at: Timestamp,
    /// The body, as it is sent.
    pub body: RawJson,
}

/// How the sending of a message goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    /// Where it is.
    pub stage: Stage,
    /// How often it was tried since it was made, or last sent anew by the operator.
    pub tries: u32,
    /// The last try.
    pub last: Option<WebhookTry>,
}

/// Where the sending of a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It is to be sent.
    Waiting {
        /// Not earlier.
        due_at: Timestamp,
    },
    /// The receiver took it.
    Delivered {
        /// When.
        at: Timestamp,
    },
    /// Every try failed.
    Failed {
        /// When the last one did.
        at: Timestamp,
    },
    /// The receiver said that it is gone for good.
    Gone {
        /// When.
        at: Timestamp,
    },
}

impl Message {
    /// What shares a bound and a rest: messages of one owner to one host. No owner's receivers hold up another's.
    #[must_use]
    pub fn lane(&self) -> String {
        match &self.owner {
            Some(owner) => format!("{owner} {}", self.host),
            None => self.host.clone(),
        }
    }
}

/// The owner whose a lane is; empty if it is the operator's.
#[must_use]
pub fn owner_of(lane: &str) -> &str {
    lane.split_once(' ').map_or("", |(owner, _)| owner)
}

/// Of what is due, in the order of its time, so many that no owner's crowd out another's.
pub(super) fn shared_out(due: Vec<(WebhookId, String)>, limit: u32) -> Vec<(WebhookId, String)> {
    let owned = due.into_iter().map(|one| (owner_of(&one.1).to_owned(), one)).collect();
    let mut due = in_turn(owned, |_| 0);
    due.truncate(limit as usize);
    due
}

impl Stage {
    /// Its name on the wire.
    #[must_use]
    pub const fn state(self) -> WebhookState {
        match self {
            Self::Waiting { .. } => WebhookState::Waiting,
            Self::Delivered { .. } => WebhookState::Delivered,
            Self::Failed { .. } => WebhookState::Failed,
            Self::Gone { .. } => WebhookState::Gone,
        }
    }

    /// When it is to be sent. None: it is not.
    #[must_use]
    pub const fn due_at(self) -> Option<Timestamp> {
        match self {
            Self::Waiting { due_at } => Some(due_at),
            Self::Delivered { .. } | Self::Failed { .. } | Self::Gone { .. } => None,
        }
    }

    /// When the sending ended. None: it has not.
    #[must_use]
    pub const fn ended_at(self) -> Option<Timestamp> {
        match self {
            Self::Waiting { .. } => None,
            Self::Delivered { at } | Self::Failed { at } | Self::Gone { at } => Some(at),
        }
    }
}

impl OutboxRow {
    /// A message that is to be sent at once.
    #[must_use]
    pub fn new(message: Message) -> Self {
        let stage = Stage::Waiting { due_at: message.created_at };
        Self { message, sending: Sending { stage, tries: 0, last: None } }
    }

    /// The row as the operator sees it, without the body.
    #[must_use]
    pub fn view(&self) -> WebhookView {
        let Self { message, sending } = self;
        WebhookView {
            webhook_id: message.id,
            state: sending.stage.state(),
            kind: message.kind,
            url: message.url.clone(),
            task_id: message.task_id,
            agent_id: message.agent_id.clone(),
            created_at: message.created_at,
            tries: sending.tries,
            due_at: sending.stage.due_at(),
            ended_at: sending.stage.ended_at(),
            held: None,
            last_try: sending.last.clone(),
            body: None,
        }
    }
}

/// Which messages are to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutboxAsk {
    /// Due at this time or earlier.
    pub by: Timestamp,
    /// Of none of these lanes.
    pub except: BTreeSet<String>,
    /// At most so many of one lane.
    pub per_lane: u32,
    /// At most so many.
    pub limit: u32,
}

/// Messages that are to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutboxDue {
    /// Owners in turn, and of each the earliest first; of those due at one time, the first made first. With their lanes.
    pub due: Vec<(WebhookId, String)>,
    /// When the next one becomes due that is not due yet, whoever it is for.
    pub next_at: Option<Timestamp>,
}

/// How many messages have not reached their receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutboxCounts {
    /// That will be sent, or sent again.
    pub waiting: u64,
    /// Of these, when what the first made one tells happened. None: none waits.
    pub waiting_since: Option<Timestamp>,
    /// Of which every try failed.
    pub failed: u64,
    /// Whose receivers said that they are gone for good.
    pub gone: u64,
}

/// Which messages a list holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutboxQuery {
    /// Only those in this state.
    pub state: Option<WebhookState>,
    /// Only those about this task.
    pub task_id: Option<TaskId>,
    /// Only those with a smaller id: older ones.
    pub before: Option<WebhookId>,
    /// At most so many.
    pub limit: u32,
}
