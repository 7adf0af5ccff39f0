//! What can happen to a task.

use reach_schemas::{AgentId, CapabilityName, Decision, Failure, FencingToken, Protocol, RawJson, Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::Plan;

/// An agent that may claim a task, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    /// Who.
    pub agent_id: AgentId,
    /// For what.
    pub capability: CapabilityName,
}

/// An agent that was chosen for a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// Who.
    pub agent_id: AgentId,
    /// For what.
    pub capability: CapabilityName,
    /// How it is reached.
    pub protocol: Protocol,
    /// What its capability says.
    pub plan: Plan,
}

/// What a task waits for that nobody can take now.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// For what, most likely.
    pub capability: CapabilityName,
    /// What that capability says.
    pub plan: Plan,
    /// Whether none of those that offer it is well and there; else they are busy.
    pub is_out: bool,
}

/// Something that happened to a task, or that somebody wants to happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The router chose an agent.
    Assign {
        /// Whom.
        assignment: Assignment,
        /// How the choice was made.
        decision: Decision,
    },
    /// The router found who may claim it.
    Offer {
        /// Who.
        to: Vec<Offered>,
        /// What the best of their capabilities says.
        plan: Plan,
        /// How they were found.
        decision: Decision,
    },
    /// The router found nobody who can take it now.
    Defer {
        /// When to look again.
        until: Timestamp,
        /// What is waited for. None: that is not known.
        wanted: Option<Wanted>,
        /// Why nobody can.
        decision: Decision,
    },
    /// The router found that nobody ever will.
    GiveUp {
        /// Why.
        failure: Failure,
        /// The same, as a decision.
        decision: Decision,
    },
    /// An agent pulls it.
    Claim {
        /// Who.
        agent_id: AgentId,
        /// How long its lease is.
        lease: Span,
    },
    /// It arrived at the agent.
    Delivered {
        /// Of which attempt.
        token: FencingToken,
    },
    /// The agent said "I have it".
    Accept {
        /// Of which attempt.
        token: FencingToken,
    },
    /// The agent is still at it.
    Progress {
        /// Of which attempt.
        token: FencingToken,
        /// What it says.
        progress: Option<RawJson>,
    },
    /// The agent's heartbeat says that it still holds it.
    Renew {
        /// Of which attempt.
        token: FencingToken,
    },
    /// The agent is done.
    Complete {
        /// Of which attempt.
        token: FencingToken,
        /// The result.
        result: RawJson,
        /// How many tokens of a language model the attempt took. None: not known.
        token_count: Option<u64>,
    },
    /// The agent failed, or could not be reached, or was lost.
    Fail {
        /// Of which attempt.
        token: FencingToken,
        /// Why.
        failure: Failure,
        /// What is known of the work.
        trace: Trace,
    },
    /// The agent gives it back, not begun.
    Release {
        /// Of which attempt.
        token: FencingToken,
    },
    /// The agent says that it breaks whoever takes it.
    Poison {
        /// Of which attempt.
        token: FencingToken,
        /// Why.
        failure: Failure,
    },
    /// Its agent's seat is needed for work of a higher priority.
    Preempt {
        /// Of which attempt.
        token: FencingToken,
        /// The priority of that work.
        priority: u8,
    },
    /// A person takes it out of its queue, or goes on having it.
    Take {
        /// Who, by the name that they give.
        by: String,
        /// How long their lease is.
        lease: Span,
    },
    /// The person who took it says something.
    Person {
        /// Of which take.
        token: FencingToken,
        /// What.
        word: Word,
    },
    /// The caller calls it off.
    Cancel,
    /// Its `due_at` has come.
    Due,
    /// An operator, or a caller with `on_failed: retry`, sends it again.
    Redrive {
        /// It is not looked at before.
        not_before: Timestamp,
        /// The new deadline.
        deadline_at: Timestamp,
    },
}

impl Event {
    /// What it is, in a word.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Assign { .. } => "assign",
            Self::Offer { .. } => "offer",
            Self::Defer { .. } => "defer",
            Self::GiveUp { .. } => "give_up",
            Self::Claim { .. } => "claim",
            Self::Delivered { .. } => "delivered",
            Self::Accept { .. } => "accept",
            Self::Progress { .. } => "progress",
            Self::Renew { .. } => "renew",
            Self::Complete { .. } => "complete",
            Self::Fail { .. } => "fail",
            Self::Release { .. } => "release",
            Self::Poison { .. } => "poison",
            Self::Preempt { .. } => "preempt",
            Self::Take { .. } => "take",
            Self::Person { .. } => "person",
            Self::Cancel => "cancel",
            Self::Due => "due",
            Self::Redrive { .. } => "redrive",
        }
    }
}

/// What a person says of a task that they took.
#[derive(Debug, Clone, PartialEq)]
pub enum Word {
    /// This is its result.
    Answer {
        /// The result.
        result: RawJson,
    },
    /// It cannot or shall not be done.
    Refuse {
        /// Why.
        failure: Failure,
        /// Whether the person has looked, and the writes that were unsure did not happen.
        nothing_happened: bool,
    },
    /// Somebody else shall have it.
    Return,
}

/// What is known of the work of an attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// It certainly did not begin: another try is safe.
    NotStarted,
    /// The same, and the agent has no part in it: it never left the gateway.
    NeverSent,
    /// The agent says that it failed and that another try may help.
    FailedRetryable,
    /// The agent says that it failed for good.
    FailedForGood,
    /// Nobody can tell whether it happened.
    Unknown,
}
