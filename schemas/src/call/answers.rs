//! What the methods answer. A reader passes over fields that it does not know, so that an older one reads a newer
//! gateway's answers.

use serde::{Deserialize, Serialize};

use super::Working;
use crate::{
    AgentCard, AgentId, Capability, CapabilityName, Delivery, Endpoint, PhaseName, RawJson, Span, Suggestion, TaskId,
    TaskView, Timestamp, WebhookId, WebhookView,
};

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident : $type:ty),* $(,)? })*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
        pub struct $name { $($(#[$field_doc])* pub $field: $type),* }
    )* };
}

answers! {
    /// The answer to `agent/register`.
    Registered {
        /// Who.
        agent_id: AgentId,
        /// Which gateway or cluster answered.
        cluster: String,
        /// Grows with each registration that changed the card.
        generation: u64,
        /// Whether this was already so, and nothing changed.
        unchanged: bool,
        /// What it is sent from now on: the capabilities that were understood.
        capabilities: Vec<CapabilityName>,
        /// How it is reached.
        endpoints: Vec<Endpoint>,
        /// When the next heartbeat is due, at the latest.
        heartbeat_due_at: Timestamp,
        /// What is odd about the card, though it was accepted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
        /// The agent's token, if it showed a join token or its key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<super::AgentToken>,
    }
    /// The answer to `agent/heartbeat`.
    HeartbeatAnswer {
        /// When the next is due, at the latest.
        heartbeat_due_at: Timestamp,
        /// Attempts that it should stop: cancelled, or given to another.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stop: Vec<Working>,
        /// How many tasks wait for it to pull them.
        waiting: u32,
        /// The agent's next token, once the one that it called with has lived for half of its time. From its first use
        /// on, the one before it lives for 10 minutes at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<super::AgentToken>,
    }
    /// An agent as it is now.
    AgentView {
        /// Its card.
        card: AgentCard,
        /// `alive`, `suspect`, `dead`, `ejected`, `overloaded` or `draining`: the first that holds of dead, suspect,
        /// draining, ejected, overloaded.
        state: AgentState,
        /// Grows with each registration that changed the card.
        generation: u64,
        /// When it registered first.
        registered_at: Timestamp,
        /// When it was last heard of.
        seen_at: Timestamp,
        /// How many tasks it has.
        in_flight: u32,
        /// How many it said it has, itself.
        reported_load: u32,
        /// Whether it has an open connection to us.
        connected: bool,
        /// Breakers that are not closed, by capability.
        #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
        breakers: std::collections::BTreeMap<CapabilityName, String>,
        /// The last probe. None: it was not probed yet, or it pulls its work and is known by its heartbeat alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        probe: Option<super::LastProbe>,
    }
    /// The answer to `agent/list`.
    Agents {
        /// In the order of their ids.
        agents: Vec<AgentView>,
    }
    /// The answer to `agent/drain` and `agent/deregister`.
    Drained {
        /// How many tasks it still has.
        in_flight: u32,
    }
    /// The answer to `capability/find`, best first.
    Capabilities {
        /// What was found.
        capabilities: Vec<Found>,
    }
    /// A capability that was found.
    Found {
        /// Whose.
        agent_id: AgentId,
        /// Which, whole.
        capability: Capability,
        /// How near, 0 to 1. None: not asked by words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        similarity: Option<f64>,
        /// Whether it could take work now.
        available: bool,
    }
    /// The answer to `resolve`: where the agent is, for those who go there themselves.
    Resolved {
        /// Who would get it.
        agent_id: AgentId,
        /// For what.
        capability: CapabilityName,
        /// How to reach it, best first.
        endpoints: Vec<Endpoint>,
        /// The decision, as it would be recorded.
        decision: crate::Decision,
    }
    /// The answer to `task/list` and `dead_letter/list`.
    Tasks {
        /// Newest first.
        tasks: Vec<TaskView>,
        /// True if there may be more that were asked for: the results of these were as much as one list holds. Ask again
        /// with `before` the last of them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        more: bool,
    }
    /// The answer to `task/claim`.
    Claimed {
        /// The work, highest priority first; may be empty.
        tasks: Vec<Delivery>,
    }
    /// The answer to accept, progress, complete, fail and release.
    Noted {
        /// Where the task is now.
        phase: PhaseName,
        /// When this attempt is taken back unless renewed. None: it has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt_until: Option<Timestamp>,
    }
    /// How the gateway is: the answer to `GET /healthz`. Where callers are asked who they are, all but `status` is told to
    /// operators only.
    GatewayHealth {
        /// `ok`: it could take a task on.
        status: String,
        /// Its version.
        #[serde(default)]
        version: String,
        /// The name that it answers registrations with.
        #[serde(default)]
        cluster: String,
        /// How long it has been running.
        #[serde(default)]
        up_for: Span,
        /// How many open tasks are in which phase.
        #[serde(default)]
        open: std::collections::BTreeMap<PhaseName, u64>,
        /// How many tasks have ended in which phase since it was started.
        #[serde(default)]
        ended: std::collections::BTreeMap<PhaseName, u64>,
        /// Since when the oldest of those waits that wait for an agent. None: none waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiting_since: Option<Timestamp>,
    }
    /// The answer to `webhook/list`.
    Webhooks {
        /// Newest first.
        webhooks: Vec<WebhookView>,
        /// Where the gateway has the secret from that signs them: a file or an environment variable.
        secret_from: String,
    }
    /// The answer to `webhook/retry`.
    WebhooksRetried {
        /// Those that are sent again now.
        retried: Vec<WebhookId>,
        /// Those that are not known.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        not_found: Vec<WebhookId>,
    }
    /// The `data` of every error object, and the members of every problem body.
    ErrorData {
        /// The error's name.
        code: String,
        /// Who has to change something.
        fault: crate::error::Fault,
        /// Whether to send it again.
        retry: crate::error::Retry,
        /// Not before this time has passed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Span>,
        /// The task that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task_id: Option<TaskId>,
        /// What was near, if nobody fitted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        suggestions: Vec<Suggestion>,
        /// Anything more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<RawJson>,
    }
}

/// How an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// Takes work.
    Alive,
    /// Missed 3 heartbeats: no new work.
    Suspect,
    /// Missed 4 heartbeats: its work is taken back.
    Dead,
    /// Failed its probes: no new work.
    Ejected,
    /// Has more than it can take: less new work.
    Overloaded,
    /// About to stop: no new work.
    Draining,
}

impl AgentState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Alive, Self::Suspect, Self::Dead, Self::Ejected, Self::Overloaded, Self::Draining];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Suspect => "suspect",
            Self::Dead => "dead",
            Self::Ejected => "ejected",
            Self::Overloaded => "overloaded",
            Self::Draining => "draining",
        }
    }
}
