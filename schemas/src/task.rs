//! A task as callers and agents see it on the wire.

use serde::{Deserialize, Serialize};

use crate::error::Retry;
use crate::{
    AgentId, CapabilityName, Decision, Effect, ErrorCode, HumanView, IdempotencyKey, RawJson, Span, Suggestion, TaskId,
    Timestamp,
};

/// Where a task is in its life. Delivered is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PhaseName {
    /// Taken on and durable, waiting for an agent.
    Submitted,
    /// An agent is chosen; the work is on its way.
    Routed,
    /// It arrived at the agent.
    Delivered,
    /// The agent said "I have it", before it works.
    Accepted,
    /// Done, with a result.
    Completed,
    /// The agent answered that it cannot be done.
    Failed,
    /// Called off.
    Cancelled,
    /// The deadline passed.
    Expired,
    /// Given up on, kept with its history; it can be sent again.
    DeadLettered,
}

impl PhaseName {
    /// Every phase.
    pub const ALL: [Self; 9] = [
        Self::Submitted,
        Self::Routed,
        Self::Delivered,
        Self::Accepted,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
        Self::DeadLettered,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Routed => "routed",
            Self::Delivered => "delivered",
            Self::Accepted => "accepted",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::DeadLettered => "dead_lettered",
        }
    }

    /// The error that a task in this phase stands for, if it says no more of itself.
    #[must_use]
    pub const fn error_code(self) -> ErrorCode {
        match self {
            Self::Cancelled => ErrorCode::Cancelled,
            Self::Expired => ErrorCode::Expired,
            Self::Submitted
            | Self::Routed
            | Self::Delivered
            | Self::Accepted
            | Self::Completed
            | Self::Failed
            | Self::DeadLettered => ErrorCode::AgentFailed,
        }
    }

    /// Whether nothing more happens to the task by itself.
    #[must_use]
    pub const fn is_final(self) -> bool {
        match self {
            Self::Submitted | Self::Routed | Self::Delivered | Self::Accepted => false,
            Self::Completed | Self::Failed | Self::Cancelled | Self::Expired | Self::DeadLettered => true,
        }
    }
}

/// How a task finds its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The gateway chooses one agent and calls it.
    #[default]
    Direct,
    /// It waits until one of the agents that fit pulls it.
    Queue,
    /// It is offered to all agents that fit; exactly one claim wins.
    Broadcast,
}

/// A fencing token: it grows with each attempt of a task, and an older one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct FencingToken(pub u64);

/// A failure as it leaves a process: what, whose fault, whether to try again, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// Which error of the table.
    pub code: ErrorCode,
    /// What is wrong, where, and what to do.
    pub message: String,
    /// What the agent sent with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
    /// When to try again, at the earliest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Span>,
    /// What was near, if nobody fitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<Suggestion>,
}

impl Failure {
    /// A failure of which there is no more to say than its message.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, retry_after: None, suggestions: Vec::new() }
    }

    /// Whether sending the same request again can help.
    #[must_use]
    pub const fn retry(&self) -> Retry {
        self.code.retry_of(self.retry_after.is_some())
    }
}

/// A task as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct TaskView {
    /// Its id, also its `reach_id`.
    pub task_id: TaskId,
    /// Where it is in its life.
    pub phase: PhaseName,
    /// How it ended: `REACH_OK`, `REACH_FALLBACK`, or the outcome word of the error code. None: not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// True if this answer is for an earlier request with the same idempotency key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// The result, as the agent wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RawJson>,
    /// Why it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_agent: Option<AgentId>,
    /// Who has it, or had it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_agent: Option<AgentId>,
    /// What that agent was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<CapabilityName>,
    /// The capability that was asked first, if a fallback answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_from: Option<CapabilityName>,
    /// The words of the intent, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// How it finds its agent.
    pub mode: Mode,
    /// 0 to 9, 9 first.
    pub priority: u8,
    /// The caller's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    /// The newest fencing token; 0 before the first attempt.
    pub token: FencingToken,
    /// What was tried, oldest first.
    #[serde(default)]
    pub attempts: Vec<AttemptView>,
    /// The queue of people that it was put into, when no agent could do it. None: it was put into none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human: Option<HumanView>,
    /// What the agent last said about its progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<RawJson>,
    /// When it was taken on.
    pub created_at: Timestamp,
    /// Final by.
    pub deadline_at: Timestamp,
    /// When it became final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How long it took from being taken on, or last sent again, to its end, in ms. None: not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// How many tokens of a language model its last attempt took. None: its agent did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u64>,
}

/// A task that has ended in a few words, under the names by which records of agents' calls are kept and compared. The
/// line `task ended` of the gateway's log has the same fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct TaskRecord {
    /// The task's id.
    pub reach_id: TaskId,
    /// Who asked.
    pub from_agent: Option<AgentId>,
    /// Who had it last.
    pub to_agent: Option<AgentId>,
    /// What that agent was asked for: its capability.
    pub method: Option<CapabilityName>,
    /// How it ended: `REACH_OK`, `REACH_FALLBACK`, or the outcome word of the error code.
    pub status_code: String,
    /// How long it took from being taken on, or last sent again, to its end.
    pub latency_ms: u64,
    /// How many tokens of a language model its last attempt took, if its agent said so.
    pub token_count: Option<u64>,
    /// Why it did not end well.
    pub error_message: Option<String>,
    /// The capability that was asked first, if it went down its fallback chain.
    pub fallback_from: Option<CapabilityName>,
}

/// One try of a task on one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AttemptView {
    /// Its fencing token.
    pub token: FencingToken,
    /// Who was asked.
    pub agent_id: AgentId,
    /// For what.
    pub capability: CapabilityName,
    /// When it was given out.
    pub started_at: Timestamp,
    /// When it arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
    /// When the agent said "I have it".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Why it failed. None: it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Work as an agent gets it: pushed over HTTP or WebSocket, put on a subprocess's standard input, or claimed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Delivery {
    /// The task.
    pub task_id: TaskId,
    /// This attempt's fencing token; it goes back with accept, progress, complete and fail.
    pub token: FencingToken,
    /// Which attempt this is, counted from 1.
    pub attempt: u32,
    /// Who is asked.
    pub agent_id: AgentId,
    /// For what.
    pub capability: CapabilityName,
    /// What it does to the world.
    pub effect: Effect,
    /// The parameters, as the caller wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<RawJson>,
    /// The words of the intent, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_agent: Option<AgentId>,
    /// What the work is to be done once for: the same over all attempts of the task, and never that of another caller.
    /// `CALLER/KEY`, of who asked (an agent's id, `operator` or `operator:NAME`) and the key that it sent; `CALLER#` and 64
    /// hexadecimal digits where that is longer than 255 characters; the task's id if the caller sent none.
    pub idempotency_key: String,
    /// When this attempt is taken back unless the agent renews it by accept or progress.
    pub attempt_until: Timestamp,
    /// When the whole task is over.
    pub deadline_at: Timestamp,
    /// W3C `traceparent`: the trace that the task belongs to, and the span of this attempt. It is the same however often the
    /// attempt is delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<crate::Traceparent>,
}

/// A task and every decision that was taken for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The task.
    pub task: TaskView,
    /// The decisions, oldest first.
    pub decisions: Vec<Decision>,
    /// How it ended, in a few words. None: it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<TaskRecord>,
}
