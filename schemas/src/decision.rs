//! The record of one routing decision: who was looked at, what each score was made of, who lost and why, and
//! which stage decided. It is bounded: at most [`CANDIDATES_MAX`] candidates are kept, the rest are counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AgentId, CapabilityName, QueueName, Timestamp};

/// How many candidates a record keeps; the others are only counted.
pub const CANDIDATES_MAX: usize = 16;
/// How many suggestions a refusal carries.
pub const SUGGESTIONS_MAX: usize = 5;

/// One routing decision, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// When it was taken.
    pub at: Timestamp,
    /// Which attempt it was for, counted from 1.
    pub attempt: u32,
    /// Which stage had the say.
    pub stage: Stage,
    /// Who was chosen. None: nobody, and `suggestions` says what was near.
    pub chosen: Option<Chosen>,
    /// How many capabilities of agents were looked at.
    pub considered: u32,
    /// The best of them, chosen one first, then by score, then those that fell out.
    pub candidates: Vec<Candidate>,
    /// How many fell out, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected: BTreeMap<String, u32>,
    /// How the intent stage saw it. None: it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<IntentTrace>,
    /// The rule that matched. None: no rule did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What was near, if nobody was chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<Suggestion>,
    /// The queue where it waits for a person from then on. None: no person was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueName>,
    /// How long choosing took, in microseconds. None: nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_us: Option<u64>,
}

/// The stages of routing, in the order in which they are asked; the first that decides wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The caller named the agent or the capability.
    Exact,
    /// An operator's rule.
    Rule,
    /// The words of the intent.
    Intent,
    /// The end of the fallback chain: no agent is asked any more, a person is.
    Human,
}

/// Who was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Chosen {
    /// The agent.
    pub agent_id: AgentId,
    /// What it was asked for.
    pub capability: CapabilityName,
}

/// One capability of one agent that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Candidate {
    /// The agent.
    pub agent_id: AgentId,
    /// Its capability.
    pub capability: CapabilityName,
    /// What became of it.
    pub verdict: Verdict,
    /// Why it fell out or lost, one entry a reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<Lack>,
    /// The terms of its score. None: it fell out before scoring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
}

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It got the work.
    Chosen,
    /// It was as good, and load and chance decided for the other.
    Drawn,
    /// It fits, but others scored higher.
    Outscored,
    /// It fell out before scoring.
    Rejected,
}

/// The terms of a reach score; each part is 0 to 1, the total is their weighted sum.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Score {
    /// The sum that candidates are ordered by.
    pub total: f64,
    /// 0.6 times the weight as it was learned, plus 0.4 times similarity.
    pub fit: f64,
    /// The capability's own routing weight, 0 to 1.
    pub weight: f64,
    /// What outcomes of the last 24 h make of the weight, beside those of the others in question: it is multiplied by this,
    /// 0.5 to 1.5, and is at most 1 then. 1: nothing.
    #[serde(default = "all_of_it")]
    pub learned: f64,
    /// How near the intent's words are, 0 to 1; 1 when the caller named it.
    pub similarity: f64,
    /// How free the agent is now.
    pub availability: f64,
    /// Its load, 0 (idle) to 1 (full).
    pub load: f64,
    /// 1 unless a dependency is down or degraded.
    pub dependencies: f64,
    /// 1 unless it reported more than it can take.
    pub overload: f64,
    /// 0.1 to 1 while the agent is new or just back.
    pub slow_start: f64,
    /// What the failures that it reports, and work that stands still, leave of it: 0.1 to 1.
    #[serde(default = "all_of_it")]
    pub soundness: f64,
    /// How it has done lately.
    pub history: f64,
    /// Success rate over the last 24 h.
    pub success_rate: f64,
    /// Its usual time for this, in ms, failures counted as slow.
    pub latency_ms: f64,
}

impl Score {
    /// The weight as outcomes have moved it, 0 to 1.
    #[must_use]
    pub fn learned_weight(&self) -> f64 {
        (self.weight * self.learned).clamp(0.0, 1.0)
    }
}

/// Records from before there was this term have all of it.
const fn all_of_it() -> f64 {
    1.0
}

/// One thing that a candidate lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Lack {
    /// The reason, by name.
    pub reason: Reason,
    /// The reason in words, with the figures.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// When it may be over. None: not by waiting, or nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Why a candidate fell out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The agent does not offer the capability.
    NotOffered,
    /// The caller's or the agent's access rules say no.
    Acl,
    /// The parameters do not fit the input schema.
    Params,
    /// No protocol in common with what the task asks for.
    Protocol,
    /// The intent's words are too far away.
    Dissimilar,
    /// The intent asks for what the agent says it does not do.
    Excluded,
    /// As near as another that does something else: too close to call.
    Ambiguous,
    /// It missed 4 heartbeats.
    Dead,
    /// It missed 3 heartbeats.
    Suspect,
    /// It failed its probes.
    Ejected,
    /// It said that it is about to stop.
    Draining,
    /// Its circuit breaker is open, or trying.
    BreakerOpen,
    /// All its seats are taken.
    Full,
    /// Outside the hours in which it takes work.
    Hours,
    /// It has no open connection.
    NotConnected,
    /// It has been tried for this task already.
    Tried,
    /// It, or the caller, has had as many retries as may be just now.
    RetryBudget,
}

impl Reason {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotOffered => "not_offered",
            Self::Acl => "acl",
            Self::Params => "params",
            Self::Protocol => "protocol",
            Self::Dissimilar => "dissimilar",
            Self::Excluded => "excluded",
            Self::Ambiguous => "ambiguous",
            Self::Dead => "dead",
            Self::Suspect => "suspect",
            Self::Ejected => "ejected",
            Self::Draining => "draining",
            Self::BreakerOpen => "breaker_open",
            Self::Full => "full",
            Self::Hours => "hours",
            Self::NotConnected => "not_connected",
            Self::Tried => "tried",
            Self::RetryBudget => "retry_budget",
        }
    }

    /// Whether it says that the agent is not well or not there, rather than busy or kept for others.
    #[must_use]
    pub const fn is_out(self) -> bool {
        match self {
            Self::Dead
            | Self::Suspect
            | Self::Ejected
            | Self::Draining
            | Self::BreakerOpen
            | Self::Hours
            | Self::NotConnected => true,
            Self::NotOffered
            | Self::Acl
            | Self::Params
            | Self::Protocol
            | Self::Dissimilar
            | Self::Excluded
            | Self::Ambiguous
            | Self::Full
            | Self::Tried
            | Self::RetryBudget => false,
        }
    }

    /// Whether waiting can help: the same request may find this candidate fit later.
    #[must_use]
    pub const fn may_pass(self) -> bool {
        match self {
            Self::NotOffered
            | Self::Acl
            | Self::Params
            | Self::Protocol
            | Self::Dissimilar
            | Self::Excluded
            | Self::Ambiguous => false,
            Self::Dead
            | Self::Suspect
            | Self::Ejected
            | Self::Draining
            | Self::BreakerOpen
            | Self::Full
            | Self::Hours
            | Self::NotConnected
            | Self::Tried
            | Self::RetryBudget => true,
        }
    }
}

/// How the intent stage saw the words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct IntentTrace {
    /// The method that ranked: `lexical`; embeddings and an adjudicator have their place here.
    pub method: String,
    /// The similarity that was needed.
    pub accept_at: f64,
    /// How far the best must be ahead of the next that does something else.
    pub margin_min: f64,
    /// The best similarity. None: nothing matched at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<f64>,
    /// How far it was ahead of the next that does something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// The words that matched the best one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matched: Vec<String>,
    /// What the adjudicating model said. None: it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjudicator: Option<String>,
}

/// Something near to what was asked, and what it lacked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Suggestion {
    /// The agent.
    pub agent_id: AgentId,
    /// Its capability.
    pub capability: CapabilityName,
    /// What it does, in its own words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How near it is to the intent's words, 0 to 1. None: it was not asked by words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// What it lacked.
    pub lacks: Vec<Lack>,
}
