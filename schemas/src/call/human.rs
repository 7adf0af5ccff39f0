//! What the methods of people take and answer.

use serde::{Deserialize, Serialize};

use crate::{FencingToken, QueueName, RawJson, Span, TaskId, TaskView, Timestamp};

/// How long a person has a task, if they do not say.
pub const HUMAN_LEASE: Span = Span::from_mins(30);
/// The longest lease that a person may ask for.
pub const HUMAN_LEASE_MAX: Span = Span::from_hours(24);
/// The longest name of a person, in bytes.
pub const PERSON_MAX: usize = 256;
/// The longest reason for a refusal, in bytes.
pub const REASON_MAX: usize = 4096;

/// `human/list`: which tasks wait for a person, or are with one. High priority first, then those that came first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct HumanList {
    /// Only those in this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueName>,
    /// At most so many, 1 to 1000. None: 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = super::LIST_MAX)))]
    pub limit: Option<u32>,
}

/// `human/take`: a person takes a task, the named one or the next of a queue, and nobody else has it while the lease
/// lasts. Who takes what they have already renews their lease, under the same token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HumanTake {
    /// This one. None: the next that nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The next of this queue. None: of any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueName>,
    /// Who takes it: a name, 1 to 256 bytes. One name is one person.
    #[cfg_attr(feature = "json-schema", schemars(length(min = 1, max = PERSON_MAX)))]
    pub by: String,
    /// How long the lease is, 100 ms to 24 h. None: 30 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
}

/// The answer to `human/take`: the task, and all that a person needs to answer it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct HumanWork {
    /// The fencing token; it goes back with answer, refuse and return.
    pub token: FencingToken,
    /// Until when it is this person's.
    pub lease_until: Timestamp,
    /// The task with its history; `human` says what is unsure about it.
    pub task: TaskView,
    /// The parameters, as the caller wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<RawJson>,
    /// What the answer must look like: the JSON Schema of the capability that was asked first. None: not known, or any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<RawJson>,
}

/// `human/answer`: the result. It must fit the output schema of the capability that was asked first, if that is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HumanAnswer {
    /// Which task.
    pub task_id: TaskId,
    /// Of which take.
    pub token: FencingToken,
    /// The result.
    pub result: RawJson,
}

/// `human/refuse`: it cannot or shall not be done; the task goes to the dead letters with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HumanRefuse {
    /// Which task.
    pub task_id: TaskId,
    /// Of which take.
    pub token: FencingToken,
    /// Why, for the caller: 1 to 4096 bytes.
    #[cfg_attr(feature = "json-schema", schemars(length(min = 1, max = REASON_MAX)))]
    pub reason: String,
    /// The person has looked, and the writes that were unsure did not happen. Otherwise the dead letter goes on saying
    /// that they may have.
    #[serde(default)]
    pub nothing_happened: bool,
}

/// `human/return`: back into its queue, for somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HumanReturn {
    /// Which task.
    pub task_id: TaskId,
    /// Of which take.
    pub token: FencingToken,
}
