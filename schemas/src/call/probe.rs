//! What passes in a probe, and what is shown of the last one.

use serde::{Deserialize, Serialize};

use crate::{Span, Timestamp};

/// What an agent says of its health when it is probed: the answer to `agent/probe`, the body of `GET /healthz`, the
/// standard output of `probe.command`. Every field may be left out; what is not known here is passed over.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HealthReport {
    /// How many tasks wait within the agent. Counts in the score as a heartbeat's does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// The share of tasks that failed in the last ten minutes, 0 to 1. Weighs the agent down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_rate_10m: Option<f64>,
    /// When a task last succeeded. Long ago while there is work in hand: the work stands still, and weighs it down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success_at: Option<Timestamp>,
    /// How long the last task took, in ms. Shown, and not weighed: the gateway measures for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_task_ms: Option<u64>,
}

/// The last probe of an agent, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct LastProbe {
    /// When its answer was there, or was given up.
    pub at: Timestamp,
    /// How long that took.
    pub took: Span,
    /// What the agent said, if it answered that it is well; `{}` if it said no more than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<HealthReport>,
    /// Why the probe failed. None: it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many have failed in a row; a slow one ends the row.
    pub failed_in_row: u32,
    /// How many were slow, with none quick between.
    pub slow_in_row: u32,
}
