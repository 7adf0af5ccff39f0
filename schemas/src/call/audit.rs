//! What the methods of the audit log take and answer.

use serde::{Deserialize, Serialize};

use crate::{AuditCheckpoint, AuditFinding, AuditKind, AuditMark, AuditRow, ErrorCode, TaskId, Timestamp};

/// How many rows one verification looks at if the caller does not say, and at most.
pub const AUDIT_VERIFY_ROWS: u32 = 200_000;
/// How many rows one search looks at, whether they fit or not.
pub const AUDIT_SEARCH_ROWS: u64 = 50_000;

/// `audit/tail`: the newest rows, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AuditTail {
    /// At most so many, 1 to 1000. None: 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = super::LIST_MAX)))]
    pub limit: Option<u32>,
}

/// `audit/search`: rows that fit every field, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AuditSearch {
    /// What they tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<AuditKind>,
    /// Who did it; with a `*` at its end, whoever begins so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = 512)))]
    pub actor: Option<String>,
    /// On whom or what; with a `*` at its end, whatever begins so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = 512)))]
    pub target: Option<String>,
    /// The outcome word: `OK`, `REJECT_ACL` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = 64)))]
    pub outcome: Option<String>,
    /// The error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// The task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// At this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// At most so many, 1 to 1000. None: 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = super::LIST_MAX)))]
    pub limit: Option<u32>,
    /// Go on with rows of smaller numbers: `next` of the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// `audit/export`: all rows in their order, a page at a time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AuditExport {
    /// Go on after this row: `next` of the last answer. None: from the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// At most so many, 1 to 1000. None: 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = super::LIST_MAX)))]
    pub limit: Option<u32>,
}

/// Rows of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AuditRows {
    /// The rows.
    pub rows: Vec<AuditRow>,
    /// Where the log ended when it was asked.
    pub head: AuditMark,
    /// Where to go on. None: there is no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// `audit/verify`: whether the log is what was written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AuditVerify {
    /// A checkpoint that was kept elsewhere: the log must go on from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<AuditCheckpoint>,
    /// Go on from here: `next` of the last answer. None: from the first row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<AuditMark>,
    /// Look at so many rows at most, 1 to 200000. None: 200000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1, max = AUDIT_VERIFY_ROWS)))]
    pub limit: Option<u32>,
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AuditVerified {
    /// Whether all that was looked at is as it was written.
    pub is_whole: bool,
    /// The first bad row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<AuditFinding>,
    /// How many rows were found good.
    pub rows: u64,
    /// How many signed checkpoints were found to hold.
    pub checkpoints: u64,
    /// The last row that was found good.
    pub head: AuditMark,
    /// Where to go on. None: the end was reached, or a bad row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<AuditMark>,
    /// The keys that signed the checkpoints, in base64.
    pub keys: Vec<String>,
    /// The last row by which an administrator accepted a log that was not as it was signed: what is before it is vouched for by
    /// nobody. None: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<u64>,
}
