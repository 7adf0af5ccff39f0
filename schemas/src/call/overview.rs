//! How well tasks reach their agents, in figures: the answer to `metrics/overview`. All rates and times are of the
//! window, the last 15 minutes, unless a field says otherwise; what each rate means is told at [`TaskFigures`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::AgentState;
use crate::{AgentId, CapabilityName, ErrorCode, PhaseName, Span, Tier, Timestamp};

/// The answer to `metrics/overview`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Overview {
    /// When it was taken.
    pub at: Timestamp,
    /// How long the gateway has been running.
    pub up_for: Span,
    /// How far back rates and times look.
    pub window: Span,
    /// Of all tasks.
    pub total: TaskFigures,
    /// How many tasks ended in a second, over the last minute.
    pub ended_per_second: f64,
    /// How many open tasks are in which phase, now.
    pub open: BTreeMap<PhaseName, u64>,
    /// How many of them wait for an agent, by tier.
    pub waiting: Waiting,
    /// How many tasks wait for a person, or are with one, now.
    #[serde(default)]
    pub before_people: u64,
    /// How many circuit breakers are not closed, now.
    pub breakers_open: u64,
    /// Each agent, in the order of their ids.
    pub agents: Vec<AgentFigures>,
    /// Each capability that tasks ended for, in the order of their names.
    pub capabilities: Vec<CapabilityFigures>,
    /// How many requests were refused in the window, by the error's name.
    pub refused: BTreeMap<String, u64>,
    /// The latest of them, newest first.
    pub latest_refusals: Vec<LatestRefusal>,
}

/// How many tasks wait for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Waiting {
    /// Of the tier `fast`.
    pub fast: u64,
    /// Of the tier `normal`.
    pub normal: u64,
    /// Of the tier `long`.
    pub long: u64,
    /// Not routed yet, so that nobody knows their tier.
    pub unrouted: u64,
}

impl Waiting {
    /// The place of a tier; none: not routed yet.
    pub const fn of(&mut self, tier: Option<Tier>) -> &mut u64 {
        match tier {
            Some(Tier::Fast) => &mut self.fast,
            Some(Tier::Normal) => &mut self.normal,
            Some(Tier::Long) => &mut self.long,
            None => &mut self.unrouted,
        }
    }

    /// How many wait in all.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.fast + self.normal + self.long + self.unrouted
    }
}

/// Figures of tasks that ended in the window, and of requests that were refused in it.
///
/// A task that its caller called off counts in no rate, nor does a request that was refused by its caller's own fault.
/// All others are *asked*: tasks that ended, and requests refused for want of an agent, of room, or of a store.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct TaskFigures {
    /// How many were asked.
    pub asked: u64,
    /// How many of the asked were refused.
    pub refused: u64,
    /// How many were called off; they are not among the asked.
    pub cancelled: u64,
    /// Reach success: the share of the asked to which an agent gave the last word, be it a result or that the task
    /// itself cannot be done. A result that breaks its schema is none, nor is a static fallback. None: nothing was asked.
    pub success_rate: Option<f64>,
    /// The share of the asked that completed, fallbacks included.
    pub completion_rate: Option<f64>,
    /// The share of the asked that completed in time: from being taken on (or sent again) to the result it took no
    /// longer than one attempt was promised to take, that is the caller's `attempt_timeout`, else the capability's own
    /// `timeout`, else that of its tier.
    pub timely_rate: Option<f64>,
    /// Routing hits: of the `direct` tasks that had an agent, the share that the agent chosen first answered.
    pub hit_rate: Option<f64>,
    /// How many went down their fallback chain.
    pub fallbacks: u64,
    /// How many attempts were begun that were not their task's first.
    pub retries: u64,
    /// How long the gateway took to choose.
    pub router: Option<Latency>,
    /// How long agents took for an attempt, answered or not.
    pub target: Option<Latency>,
    /// How long tasks took from being taken on, or sent again, to their end.
    pub whole: Option<Latency>,
}

/// How long something took, in ms. Each is true to within 3.2 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// How often it was measured.
    pub count: u64,
    /// Half took no longer.
    pub p50_ms: f64,
    /// 90 of 100 took no longer.
    pub p90_ms: f64,
    /// 95 of 100 took no longer.
    pub p95_ms: f64,
    /// 99 of 100 took no longer.
    pub p99_ms: f64,
}

/// Figures of the tasks of one capability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct CapabilityFigures {
    /// Which was asked first. None: those beyond the number that is told apart, and those of none.
    pub capability: Option<CapabilityName>,
    /// Its figures. Refusals are counted for the whole only.
    #[serde(flatten)]
    pub figures: TaskFigures,
}

/// Figures of attempts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AttemptFigures {
    /// How many the agent answered: with a result, or that the task itself cannot be done.
    pub answered: u64,
    /// How many failed: no answer, none in time, or one that is no result.
    pub failed: u64,
    /// How many were called off, given back, or not taken for want of room. They count in no rate.
    pub given_back: u64,
    /// The share answered of those answered or failed. None: there were none.
    pub success_rate: Option<f64>,
    /// How long they took, answered or failed.
    pub target: Option<Latency>,
}

/// One agent and its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AgentFigures {
    /// Who.
    pub agent_id: AgentId,
    /// How it is now.
    pub state: AgentState,
    /// How many tasks it has.
    pub in_flight: u32,
    /// How many it takes at once.
    pub max_concurrency: u32,
    /// How many tasks lie there for it to claim.
    pub queue: u64,
    /// Over all its capabilities.
    pub total: AttemptFigures,
    /// By capability, where attempts ended in the window.
    pub capabilities: BTreeMap<CapabilityName, AttemptFigures>,
    /// Breakers that are not closed, by capability.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub breakers: BTreeMap<CapabilityName, String>,
}

/// A request that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct LatestRefusal {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub code: ErrorCode,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_agent: Option<AgentId>,
    /// Whom it asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_agent: Option<AgentId>,
    /// For what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<CapabilityName>,
}
