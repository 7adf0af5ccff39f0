//! Tasks that wait for a person: the last step down a fallback chain.

use serde::{Deserialize, Serialize};

use crate::{CapabilityName, FencingToken, QueueName, Timestamp};

/// How a task fares that was put before people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct HumanView {
    /// Where it waits, or waited.
    pub queue: QueueName,
    /// Since when.
    pub since: Timestamp,
    /// Until when the person of the last take has it. None: nobody has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    /// Writes of it that may or may not have happened: look before you do them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<CapabilityName>,
    /// Who took it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes: Vec<Take>,
}

/// One time that a person had a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Take {
    /// Its fencing token.
    pub token: FencingToken,
    /// Who, by the name that they gave.
    pub by: String,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// When that was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it was over. None: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<TakeEnding>,
}

/// How it was over that a person had a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TakeEnding {
    /// The person answered it.
    Answered,
    /// The person refused it.
    Refused,
    /// The person put it back.
    Returned,
    /// The lease ran out.
    Forgotten,
    /// The task ended otherwise: it was called off, or its deadline passed.
    TaskEnded,
}

impl TakeEnding {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Returned => "returned",
            Self::Forgotten => "forgotten",
            Self::TaskEnded => "task_ended",
        }
    }
}
