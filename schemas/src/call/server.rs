//! What the methods of MCP servers take and answer.

use serde::{Deserialize, Serialize};

use crate::{AgentName, ServerSpec, ServerView};

/// `server/add`: connects to a server, makes an agent of it, and keeps it over restarts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ServerAdd {
    /// How it is reached. A server of the same name that was added before is replaced.
    pub server: ServerSpec,
    /// The content of the file that the refusal names, for a server that is a command: who can read that file may start
    /// commands as the gateway's user anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// Names one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ServerRef {
    /// Which.
    pub name: AgentName,
}

/// The answer to `server/list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Servers {
    /// In the order of their names.
    pub servers: Vec<ServerView>,
}

/// What goes with the refusal of a command: which file proves that its sender may start commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofWanted {
    /// The file, on the gateway's machine.
    pub proof_file: String,
}
