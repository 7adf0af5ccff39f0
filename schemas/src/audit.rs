//! The audit log on the wire: what it holds, the signed checkpoints that pin it, and what a verification finds.

use serde::{Deserialize, Serialize};

use crate::{TaskId, Timestamp};

macro_rules! kinds {
    ($( $variant:ident = $name:literal, $doc:literal; )*) => {
        /// What an audit row tells.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
        pub enum AuditKind { $( #[doc = $doc] #[serde(rename = $name)] $variant, )* }

        impl AuditKind {
            /// Every kind, in the order of the table.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )*];

            /// The word on the wire and in the log. It never changes.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $name, )* }
            }
        }
    };
}

kinds! {
    GatewayStarted = "gateway.started", "The gateway began to serve.";
    GatewayStopped = "gateway.stopped", "The gateway stopped in order.";
    AgentRegistered = "agent.registered", "An agent registered, or registered another card than before.";
    AgentDrained = "agent.drained", "An agent is sent no new work.";
    AgentDeregistered = "agent.deregistered", "An agent was forgotten.";
    AccessChanged = "access.changed", "Whom an agent may call, or who may call it, is not what it was.";
    CallRefused = "call.refused", "A call was refused; nothing was done.";
    ReachFailed = "reach.failed", "A task ended without a result: failed, expired, or given up on.";
    TaskRedriven = "task.redriven", "A task that had ended was sent again.";
    HumanTook = "human.took", "A person took a task.";
    HumanAnswered = "human.answered", "A person answered a task.";
    HumanRefused = "human.refused", "A person refused a task.";
    HumanReturned = "human.returned", "A person put a task back.";
    JoinCreated = "join.created", "A token was made by which one agent can join.";
    AgentAdmitted = "agent.admitted", "An agent showed its key, and was given a token and a new generation.";
    KeyTrusted = "key.trusted", "An agent was made known by its public key.";
    OperatorCreated = "operator.created", "A token was made for an operator.";
    TokenRevoked = "token.revoked", "Tokens of an agent or an operator were ended.";
    KeysRotated = "keys.rotated", "Another key signs agents' tokens.";
    ConfigReloaded = "config.reloaded", "The configuration was read again and taken on.";
    ServerAdded = "server.added", "The operator added an MCP server.";
    ServerRemoved = "server.removed", "The operator removed an MCP server.";
    PolicyChanged = "policy.changed", "The policy over who may do what with whom was replaced.";
    WebhooksRetried = "webhooks.retried", "The operator had webhooks sent again.";
    AuditDoubted = "audit.doubted", "The gateway started over an audit log that is not as it signed it, and signs it no more.";
    AuditAccepted = "audit.accepted", "An administrator had such an audit log signed again from here on; what is before this row is vouched for by nobody.";
}

/// One row of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AuditRow {
    /// Its number: 1 for the first, and none is left out.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What it tells: a word of `AuditKind`, or one of a newer gateway.
    pub kind: String,
    /// Who did it: an agent's id, `operator`, `configuration`, or `gateway` for what it did of its own accord.
    pub actor: String,
    /// On whom or what: an agent's id, a method, a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// `OK`, or the outcome word of the error, such as `REJECT_ACL`.
    pub outcome: String,
    /// The error's name, if it did not go well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// More, in words of the gateway; never a payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The task that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// SHA-256 of what was sent with it, in 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// How often it happened: more than 1 where many alike are one row.
    pub count: u64,
    /// The hash that chains it to the row before, in 64 hexadecimal digits.
    pub hash: String,
}

/// A place in the audit log: up to and with this row, which has this hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AuditMark {
    /// The row's number. 0: before the first.
    pub seq: u64,
    /// Its hash, in 64 hexadecimal digits.
    #[cfg_attr(feature = "json-schema", schemars(length(min = 64, max = 64)))]
    pub hash: String,
}

/// A place in the audit log, signed by the gateway. Kept elsewhere, it shows later whether anything up to it was changed
/// or cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AuditCheckpoint {
    /// The last row that it covers.
    pub seq: u64,
    /// The hash of that row, in 64 hexadecimal digits.
    #[cfg_attr(feature = "json-schema", schemars(length(min = 64, max = 64)))]
    pub hash: String,
    /// When it was signed.
    pub at: Timestamp,
    /// The public key that it is signed with: Ed25519, in base64.
    #[cfg_attr(feature = "json-schema", schemars(length(max = 44)))]
    pub key: String,
    /// The signature, in base64.
    #[cfg_attr(feature = "json-schema", schemars(length(max = 88)))]
    pub signature: String,
}

/// How a row of the audit log is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AuditFlaw {
    /// The row is not what was written, or its hash is not.
    Changed,
    /// The row is not there, and later ones are.
    Missing,
    /// Another row stands in its place; `other` says where the right one stands.
    Swapped,
    /// The row was there once, and nothing comes after it: the end was cut off.
    TailCut,
    /// The chain is whole, and not the one that was signed: from this row on or later it was written anew, at the latest at
    /// the row `other`.
    Rewritten,
    /// The file cannot be read from this row on.
    Unreadable,
    /// A checkpoint that pins the log carries a signature that does not hold, or is of another key than signs this log.
    Forged,
    /// Nothing is known to be wrong, but the rows from this one to `other` should have been signed by now, and are not.
    Unsigned,
    /// Nothing tells where this log was signed last, and something should: its rows up to `other` may have been written anew.
    Unvouched,
    /// The database has a trigger, a view, an index or a table over the gateway's that the gateway did not make, or lacks one:
    /// rows may be lost or hidden unseen.
    Altered,
}

impl AuditFlaw {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Swapped => "swapped",
            Self::TailCut => "tail_cut",
            Self::Rewritten => "rewritten",
            Self::Unreadable => "unreadable",
            Self::Forged => "forged",
            Self::Unsigned => "unsigned",
            Self::Unvouched => "unvouched",
            Self::Altered => "altered",
        }
    }
}

/// The first bad row of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AuditFinding {
    /// Which. 0: it is about none in particular.
    pub seq: u64,
    /// How it is bad.
    pub flaw: AuditFlaw,
    /// Another row that has to do with it: the last that is missing or was cut off, the one that stands in its place, or
    /// the one whose hash was signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<u64>,
    /// The same for people.
    pub message: String,
}
