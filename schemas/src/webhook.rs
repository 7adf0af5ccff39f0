//! Webhooks: where the end of a task is told, and that it waits for a person, what is told, and how the telling goes. The form on the wire is that of
//! Standard Webhooks 1.0 (<https://www.standardwebhooks.com>): headers `webhook-id`, `webhook-timestamp` and
//! `webhook-signature`, and a body with `type`, `timestamp` and `data`.

use serde::{Deserialize, Serialize};

#[cfg(feature = "json-schema")]
use crate::card::limits::ADDRESS_MAX;
use crate::{AgentId, PhaseName, RawJson, TaskId, TaskView, Timestamp, WebhookId};

/// The largest body of a webhook, in bytes. What does not fit is left out and named in `left_out`.
pub const BODY_MAX: usize = 20_000;

/// A receiver of the end of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Callback {
    /// Where: an `https://` or `http://` address without user name and password.
    #[cfg_attr(feature = "json-schema", schemars(length(max = ADDRESS_MAX)))]
    pub url: String,
}

/// What happened to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub enum EventType {
    /// It is done, with a result.
    #[serde(rename = "task.completed")]
    Completed,
    /// An agent answered that it cannot be done.
    #[serde(rename = "task.failed")]
    Failed,
    /// It was called off.
    #[serde(rename = "task.cancelled")]
    Cancelled,
    /// Its deadline passed.
    #[serde(rename = "task.expired")]
    Expired,
    /// It was given up on.
    #[serde(rename = "task.dead_lettered")]
    DeadLettered,
    /// No agent could do it, and it waits for a person. This is no end: another message tells that.
    #[serde(rename = "task.awaits_person")]
    AwaitsPerson,
}

impl EventType {
    /// The end that a phase is. None: it is none.
    #[must_use]
    pub const fn of(phase: PhaseName) -> Option<Self> {
        match phase {
            PhaseName::Submitted | PhaseName::Routed | PhaseName::Delivered | PhaseName::Accepted => None,
            PhaseName::Completed => Some(Self::Completed),
            PhaseName::Failed => Some(Self::Failed),
            PhaseName::Cancelled => Some(Self::Cancelled),
            PhaseName::Expired => Some(Self::Expired),
            PhaseName::DeadLettered => Some(Self::DeadLettered),
        }
    }

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "task.completed",
            Self::Failed => "task.failed",
            Self::Cancelled => "task.cancelled",
            Self::Expired => "task.expired",
            Self::DeadLettered => "task.dead_lettered",
            Self::AwaitsPerson => "task.awaits_person",
        }
    }
}

/// The body of a webhook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct WebhookEvent {
    /// What happened.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// When it happened.
    pub timestamp: Timestamp,
    /// The agent that failed the task and whose card names the receiver; then `data` is of this agent's attempts only.
    /// None: the task itself named the receiver, or the gateway's configuration did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The task as it was then.
    pub data: TaskView,
    /// What was left out of `data` because the body would have been too large; `task/get` has all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// How the telling goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WebhookState {
    /// It will be sent, or sent again.
    Waiting,
    /// The receiver took it.
    Delivered,
    /// Every try failed; it is sent again only if the operator says so.
    Failed,
    /// The receiver said that it is gone for good (410), now or before.
    Gone,
}

impl WebhookState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Delivered, Self::Failed, Self::Gone];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Gone => "gone",
        }
    }
}

/// One try to send a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct WebhookTry {
    /// When it ended.
    pub at: Timestamp,
    /// The HTTP status that came back. None: no answer came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What was wrong. None: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A rest that a receiver asked for: nothing that the same namespace has for its host is sent before it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct WebhookHold {
    /// When it is over.
    pub until: Timestamp,
    /// Who asked for it, and how.
    pub reason: String,
    /// The message that was answered so.
    pub webhook_id: WebhookId,
}

/// A webhook as the operator sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct WebhookView {
    /// Its id: the header `webhook-id`.
    pub webhook_id: WebhookId,
    /// How the telling goes.
    pub state: WebhookState,
    /// What it tells.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// Whom it tells.
    pub url: String,
    /// Of which task.
    pub task_id: TaskId,
    /// The agent whose card names the receiver. None: the task or the configuration does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// When what it tells happened.
    pub created_at: Timestamp,
    /// How often it was tried since it was made, or last sent anew by the operator.
    pub tries: u32,
    /// When it is tried next, not earlier. None: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Why it waits so long, or longer, if a receiver asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<WebhookHold>,
    /// When the telling ended. None: it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The last try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_try: Option<WebhookTry>,
    /// The body as it is sent. None in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<RawJson>,
}
