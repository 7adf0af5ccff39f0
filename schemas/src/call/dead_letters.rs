//! What `dead_letter/redrive` takes and answers.

use serde::{Deserialize, Serialize};

use crate::{AgentId, CapabilityName, ErrorCode, Failure, Namespace, Span, TaskId, TaskView, Timestamp};

/// How many a second one redrive may send at most.
pub const REDRIVE_RATE_MAX: u32 = 1000;
/// How many a second are sent if more than [`REDRIVE_AT_ONCE_MAX`] are to be, and the caller does not say.
pub const REDRIVE_RATE: u32 = 10;
/// How many are sent all at once if the caller does not say how fast.
pub const REDRIVE_AT_ONCE_MAX: u32 = 100;

/// `dead_letter/redrive`: send them again, under their own ids. Either `task_ids` names them, or the fields from
/// `agent_id` to `ended_before` do, all of which must fit, or `all` is true.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Redrive {
    /// These, at most 1000.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<TaskId>,
    /// Those that this agent had last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Those that were last tried as this capability, or asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<CapabilityName>,
    /// Those that were given up on for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// Those that this agent asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_agent: Option<AgentId>,
    /// Those that an agent of this namespace asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_namespace: Option<Namespace>,
    /// Those that were given up on at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_after: Option<Timestamp>,
    /// Those that were given up on before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_before: Option<Timestamp>,
    /// All that there are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// At most so many in this call, 1 to 1000, the newest first. None: 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = super::LIST_MAX)))]
    pub limit: Option<u32>,
    /// How many a second may go, 1 to 1000. They go one after another behind those of the same agent, capability and
    /// callers that an earlier call has spread. None: all at once, or if more than 100 fit, 10 a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = REDRIVE_RATE_MAX)))]
    pub rate: Option<u32>,
    /// Only say what would be sent, and change nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The new deadline, from when each goes. None: as long as the first was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Span>,
}

/// The answer to `dead_letter/redrive`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Redriven {
    /// Those on their way again. In a dry run: none.
    pub redriven: Vec<TaskId>,
    /// Those that were not sent, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// How many fitted when it was asked.
    pub matched: u64,
    /// How many of them this call has not come to: ask again.
    pub remaining: u64,
    /// How many somebody else had sent again, or that were forgotten, before this call came to them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gone: u64,
    /// How many a second go. None: all at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// When the last of them goes, or would go. None: all go at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_until: Option<Timestamp>,
    /// Only what was given up on before this time was looked at. Given as `ended_before` in the next call, it leaves those
    /// out that are given up on again meanwhile.
    pub as_of: Timestamp,
    /// In a dry run, some of those that would be sent: the newest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sample: Vec<TaskView>,
    /// Why it ended before its limit. None: it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Failure>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One task that was not redriven.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Refused {
    /// Which.
    pub task_id: TaskId,
    /// Why.
    pub failure: Failure,
}
