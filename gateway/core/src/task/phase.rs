//! Where a task is in its life, with what belongs to that phase inside.

use reach_schemas::{AgentId, CapabilityName, Failure, PhaseName, RawJson, Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::event::Offered;

/// Where a task is in its life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It waits for an agent.
    Submitted {
        /// It is not looked at before.
        not_before: Timestamp,
        /// Who may claim it, and for what. Empty: nobody; the dispatcher routes it.
        offered: Vec<Offered>,
    },
    /// No agent could do it: it waits for a person, or one has it. Which queue, and who: the task's `human`.
    Human {
        /// Until when it is the person's who took it last. None: nobody has it.
        lease_until: Option<Timestamp>,
    },
    /// An agent is chosen; the work is on its way.
    Routed(Hold),
    /// It arrived at the agent.
    Delivered(Hold),
    /// The agent said "I have it".
    Accepted(Hold),
    /// Done.
    Completed {
        /// The result, as the agent wrote it.
        result: RawJson,
    },
    /// The agent answered that it cannot be done.
    Failed(Failure),
    /// Called off.
    Cancelled,
    /// The deadline passed.
    Expired(Failure),
    /// Given up on.
    DeadLettered(Failure),
}

/// How long an attempt holds its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// It has failed if there is no sign of progress until then.
    pub run_until: Timestamp,
    /// It has been lost if its lease is not renewed until then. None: it has no lease.
    pub lease_until: Option<Timestamp>,
    /// How much one renewal gives.
    pub lease_for: Option<Span>,
}

impl Hold {
    /// When the attempt is taken back.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        self.lease_until.map_or(self.run_until, |lease| lease.min(self.run_until))
    }
}

impl Phase {
    /// Its name on the wire.
    #[must_use]
    pub fn name(&self) -> PhaseName {
        match self {
            Self::Submitted { .. } | Self::Human { lease_until: None } => PhaseName::Submitted,
            Self::Human { lease_until: Some(_) } => PhaseName::Accepted,
            Self::Routed(_) => PhaseName::Routed,
            Self::Delivered(_) => PhaseName::Delivered,
            Self::Accepted(_) => PhaseName::Accepted,
            Self::Completed { .. } => PhaseName::Completed,
            Self::Failed(_) => PhaseName::Failed,
            Self::Cancelled => PhaseName::Cancelled,
            Self::Expired(_) => PhaseName::Expired,
            Self::DeadLettered(_) => PhaseName::DeadLettered,
        }
    }

    /// Whether an attempt is under way.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.hold().is_some()
    }

    /// The hold of the attempt that is under way.
    #[must_use]
    pub fn hold(&self) -> Option<&Hold> {
        match self {
            Self::Routed(hold) | Self::Delivered(hold) | Self::Accepted(hold) => Some(hold),
            Self::Submitted { .. }
            | Self::Human { .. }
            | Self::Completed { .. }
            | Self::Failed(_)
            | Self::Cancelled
            | Self::Expired(_)
            | Self::DeadLettered(_) => None,
        }
    }

    /// Until when a person has it; within, none: nobody has it. None: it is not before people.
    #[must_use]
    pub fn human_lease(&self) -> Option<Option<Timestamp>> {
        match self {
            Self::Human { lease_until } => Some(*lease_until),
            Self::Submitted { .. }
            | Self::Routed(_)
            | Self::Delivered(_)
            | Self::Accepted(_)
            | Self::Completed { .. }
            | Self::Failed(_)
            | Self::Cancelled
            | Self::Expired(_)
            | Self::DeadLettered(_) => None,
        }
    }

    /// When the attempt that is under way is taken back.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        self.hold().map(Hold::until)
    }

    /// When somebody must look at it again, given the task's deadline. None: it is final.
    #[must_use]
    pub fn due_at(&self, deadline_at: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Submitted { not_before, offered } if offered.is_empty() => Some((*not_before).min(deadline_at)),
            Self::Submitted { .. } => Some(deadline_at),
            Self::Human { lease_until } => Some(lease_until.map_or(deadline_at, |until| until.min(deadline_at))),
            Self::Routed(hold) | Self::Delivered(hold) | Self::Accepted(hold) => Some(hold.until().min(deadline_at)),
            Self::Completed { .. } | Self::Failed(_) | Self::Cancelled | Self::Expired(_) | Self::DeadLettered(_) => {
                None
            }
        }
    }

    /// The failure that a task in this phase ended with.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) | Self::Expired(failure) | Self::DeadLettered(failure) => Some(failure),
            Self::Submitted { .. }
            | Self::Human { .. }
            | Self::Routed(_)
            | Self::Delivered(_)
            | Self::Accepted(_)
            | Self::Completed { .. }
            | Self::Cancelled => None,
        }
    }

    /// What it was completed with.
    #[must_use]
    pub fn result(&self) -> Option<&RawJson> {
        match self {
            Self::Completed { result } => Some(result),
            Self::Submitted { .. }
            | Self::Human { .. }
            | Self::Routed(_)
            | Self::Delivered(_)
            | Self::Accepted(_)
            | Self::Failed(_)
            | Self::Cancelled
            | Self::Expired(_)
            | Self::DeadLettered(_) => None,
        }
    }

    /// Who may claim it, and for what.
    #[must_use]
    pub fn offered(&self) -> &[Offered] {
        match self {
            Self::Submitted { offered, .. } => offered,
            Self::Human { .. }
            | Self::Routed(_)
            | Self::Delivered(_)
            | Self::Accepted(_)
            | Self::Completed { .. }
            | Self::Failed(_)
            | Self::Cancelled
            | Self::Expired(_)
            | Self::DeadLettered(_) => &[],
        }
    }

    /// What the agent may claim, if it was offered.
    #[must_use]
    pub fn offered_to(&self, agent: &AgentId) -> Option<&CapabilityName> {
        self.offered().iter().find(|offer| &offer.agent_id == agent).map(|offer| &offer.capability)
    }
}
