//! How an agent is watched: its probes, and its circuit breakers.

use serde::{Deserialize, Serialize};

use super::Effect;
#[cfg(feature = "json-schema")]
use super::limits::{BREAKER_WINDOW_MAX, TEXT_MAX};
use crate::Span;

/// How an agent is probed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ProbePolicy {
    /// How often, 100 ms to 24 h. While there is doubt about the agent it is asked three times as often, at most every
    /// 250 ms.
    pub interval: Span,
    /// How long an answer may take before the probe counts as failed, at most a minute.
    pub timeout: Span,
    /// A command line that checks an agent with a `process` endpoint: it exits with 0 if all is well, and may print a
    /// health report as JSON. Only the operator's configuration may name commands. None: the agent's own command must
    /// be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = TEXT_MAX)))]
    pub command: Option<String>,
}

impl Default for ProbePolicy {
    fn default() -> Self {
        Self { interval: Span::from_secs(30), timeout: Span::from_secs(5), command: None }
    }
}

/// When the circuit breaker of one capability of one agent opens and closes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BreakerPolicy {
    /// So many failures one after another, all within `in_row_within`, open it. 1 to 1000.
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = BREAKER_WINDOW_MAX)))]
    pub failures_in_row: u32,
    /// See `failures_in_row`. At most 24 h.
    pub in_row_within: Span,
    /// How many of the last calls count for the rate, 1 to 1000.
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = BREAKER_WINDOW_MAX)))]
    pub window: u32,
    /// How many calls there must be before the rate counts, 1 to `window`.
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = BREAKER_WINDOW_MAX)))]
    pub window_min: u32,
    /// A failure rate above this opens it (0 to 1).
    #[cfg_attr(feature = "json-schema", schemars(range(min = 0.0, max = 1.0)))]
    pub open_above: f64,
    /// A trial that passes closes it if the rate is below this (0 to 1).
    #[cfg_attr(feature = "json-schema", schemars(range(min = 0.0, max = 1.0)))]
    pub close_below: f64,
    /// How long it stays open the first time; doubled each time it opens again without having closed. At most
    /// `open_for_max`.
    pub open_for: Span,
    /// The longest that it stays open, at most 24 h.
    pub open_for_max: Span,
}

impl BreakerPolicy {
    /// The defaults: a `write` trips after 2 failures in a row, all else after 3.
    #[must_use]
    pub fn for_effect(effect: Effect) -> Self {
        let failures_in_row = match effect {
            Effect::Read | Effect::IdempotentWrite => 3,
            Effect::Write => 2,
        };
        Self { failures_in_row, ..Self::default() }
    }
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self {
            failures_in_row: 3,
            in_row_within: Span::from_secs(30),
            window: 10,
            window_min: 5,
            open_above: 0.6,
            close_below: 0.2,
            open_for: Span::from_secs(5),
            open_for_max: Span::from_mins(5),
        }
    }
}
