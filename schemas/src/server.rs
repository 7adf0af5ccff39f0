//! MCP servers that the gateway makes agents of: how each is reached, what its owner says beyond what it says itself,
//! and how it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[cfg(feature = "json-schema")]
use crate::card::limits;
use crate::{
    Access, AgentId, AgentName, BreakerPolicy, Effect, FallbackStep, Hours, Namespace, ProbePolicy, Span, Tier,
    Timestamp, TrustLevel,
};

/// How long a server may take to start and to say what it offers, unless it is set.
pub const START_TIMEOUT: Span = Span::from_secs(30);
/// How many environment variables and headers one server may be given of each kind.
pub const SETTINGS_MAX: usize = 64;
/// How many arguments a command may have.
pub const ARGUMENTS_MAX: usize = 256;

/// An MCP server: a command that speaks on its standard input and output, or an address of Streamable HTTP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// What it is called: the agent is `name@namespace`, and the server itself is served at `/servers/{name}/mcp`.
    pub name: AgentName,
    /// The tenant wall that its agent lives behind.
    #[serde(default = "usual_namespace")]
    pub namespace: Namespace,
    /// The program of a server that is started. One of `command` and `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::TEXT_MAX)))]
    pub command: Option<String>,
    /// The program's arguments. No shell is involved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = ARGUMENTS_MAX), inner(length(max = limits::TEXT_MAX))))]
    pub args: Vec<String>,
    /// Environment variables of the program, beside the few that it has of the gateway's. They are shown to operators:
    /// secrets go into `pass_env`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Names of environment variables of the gateway that the program is given, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = SETTINGS_MAX), inner(length(max = limits::NAME_MAX))))]
    pub pass_env: Vec<String>,
    /// The folder that the program is started in. None: the gateway's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::TEXT_MAX)))]
    pub cwd: Option<String>,
    /// The address of a server that runs: `http` or `https`, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::ADDRESS_MAX)))]
    pub url: Option<String>,
    /// Headers that go with every request to the address, by their names; their values are read where they are kept.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderSource>,
    /// How long it may take to start and to say what it offers.
    #[serde(default = "usual_start_timeout")]
    pub start_timeout: Span,
    /// How long one call may take, at most; the capability's own timeout holds as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// What its owner says of it beyond what it says itself.
    #[serde(default)]
    pub card: Overlay,
}

/// Where the value of a header is read: one of `env` and `file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HeaderSource {
    /// The environment variable of the gateway that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// The file that holds it; white space at its end is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What stands before it, such as `Bearer ` with its space.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
}

/// A card by hand, laid over the one that is made of what a server says. What is left out stays as the server has it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Overlay {
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The team that answers for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_team: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many calls it works on at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// 0 to 9.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Words that an intent may be matched against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// How far its owner vouches for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_level: Option<TrustLevel>,
    /// The hours in which it takes work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability: Option<Vec<Hours>>,
    /// Who may call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// How it is probed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbePolicy>,
    /// Addresses that hear of tasks that it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure_callbacks: Option<Vec<String>>,
    /// Whether only the tools that `capabilities` names are offered.
    pub only_named: bool,
    /// What is said of single tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<CapabilityOverlay>,
}

/// What the owner says of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CapabilityOverlay {
    /// The tool's name, or its capability's.
    pub name: String,
    /// Whether it is not offered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it does not do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusions: Option<Vec<String>>,
    /// Words that an intent may be matched against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing_weight: Option<u8>,
    /// How long it takes, roughly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// What it does to the world. It stands even where the server says otherwise, and that is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Whether work that has begun can be stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellable: Option<bool>,
    /// When its circuit breaker opens and closes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerPolicy>,
    /// What to do once every try has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Vec<FallbackStep>>,
    /// Whether another agent with the same capability is tried before the fallback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateral: Option<bool>,
}

/// Whether a server can be asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// It is being started, or asked what it is.
    Starting,
    /// It has answered, and can be asked.
    Up,
    /// It could not be reached, or has ended; it is tried again.
    Down,
}

impl ServerState {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// A server as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ServerView {
    /// How it is reached, without any secret.
    pub server: ServerSpec,
    /// Whether the configuration file names it; else it was added, and is kept in the store.
    pub is_configured: bool,
    /// Whether it can be asked now.
    pub state: ServerState,
    /// Why it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Since when that is so.
    pub since: Timestamp,
    /// The revision of MCP that is spoken with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The agents that its tools are offered by: one for each 256.
    pub agents: Vec<AgentId>,
    /// How many tools it has.
    pub tools: u32,
    /// How often it was connected to.
    pub connects: u64,
    /// What is odd about what it says, or does not agree with its card by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

fn usual_namespace() -> Namespace {
    "mcp".parse().expect("the word is a namespace")
}

const fn usual_start_timeout() -> Span {
    START_TIMEOUT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_as_usual_and_what_is_not_known_is_refused() -> serde_json::Result<()> {
        let spec: ServerSpec = serde_json::from_str(r#"{"name":"files","command":"npx","args":["-y","x"]}"#)?;
        assert_eq!((spec.namespace.as_str(), spec.start_timeout), ("mcp", START_TIMEOUT));
        assert_eq!(spec.card, Overlay::default());
        assert!(serde_json::from_str::<ServerSpec>(r#"{"name":"files","comand":"npx"}"#).is_err());
        let again: ServerSpec = serde_json::from_str(&serde_json::to_string(&spec)?)?;
        assert_eq!(again, spec);
        Ok(())
    }
}
