//! What the methods of the configuration take and answer.

use serde::{Deserialize, Serialize};

use crate::{RawJson, Timestamp};

/// `config/reload`: reads the configuration file again, and goes by it if all of it is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ConfigReload {
    /// Only tells what would be done, or what is wrong, and changes nothing.
    pub dry_run: bool,
}

/// What a reload did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ConfigReloaded {
    /// The file that was read, on the gateway's machine.
    pub file: String,
    /// Whether nothing was changed because nothing was to be.
    pub dry_run: bool,
    /// Values that are others than before.
    pub changes: Vec<ConfigChange>,
    /// Agents of the file that came and went.
    pub agents: ConfigMoves,
    /// MCP servers of the file that came and went.
    pub mcp_servers: ConfigMoves,
}

/// One value that is another than before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ConfigChange {
    /// Its key, such as `waiting.fast`.
    pub key: String,
    /// What was in force.
    pub was: RawJson,
    /// What the file says.
    pub is: RawJson,
}

/// Who came and went, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ConfigMoves {
    /// Who was not there before.
    pub added: Vec<String>,
    /// Whose entry says something else than before.
    pub changed: Vec<String>,
    /// Who is not there any more: they end what they have, and get nothing new.
    pub removed: Vec<String>,
}

/// `data` of `invalid_config`: why the file was not taken on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ConfigRefused {
    /// All that is wrong with it.
    #[serde(default)]
    pub mistakes: Vec<String>,
    /// What only a restart can change, and the file has otherwise than it is in force.
    #[serde(default)]
    pub needs_restart: Vec<ConfigChange>,
}

/// What is in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ConfigView {
    /// The file that it was read from, on the gateway's machine. None: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Since when it is in force.
    pub since: Timestamp,
    /// Every key, in the order of its name. Secrets are not among the values; addresses are cut off after the host.
    pub keys: Vec<ConfigKey>,
}

/// One key of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ConfigKey {
    /// Its name, such as `waiting.fast`.
    pub key: String,
    /// Its value; of `agents` and `mcp_servers`, their names.
    pub value: RawJson,
    /// Where the value came from.
    pub from: ConfigOrigin,
    /// When a change of it takes effect.
    pub applies: ConfigApplies,
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConfigOrigin {
    /// Nobody said anything.
    Default,
    /// The file.
    File,
    /// The command line or the environment, which go before the file.
    CommandLine,
}

/// When a change of a value takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConfigApplies {
    /// With the next reload.
    Live,
    /// With the next start of the gateway.
    Restart,
}

impl ConfigOrigin {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File => "file",
            Self::CommandLine => "command_line",
        }
    }
}

impl ConfigApplies {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Restart => "restart",
        }
    }
}
