//! The agent card: what an agent says of itself when it registers. A field that is not known here is refused
//! by name, so that a slip of the pen is not silently ignored.

pub mod limits;
mod policy;

use serde::{Deserialize, Serialize};

pub use policy::{BreakerPolicy, ProbePolicy};

use crate::{AgentId, CapabilityName, QueueName, RawJson, Span, pattern::AgentPattern};

/// What an agent says of itself: who it is, what it offers, how it is reached and when it takes work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentCard {
    /// Who it is: `name@namespace`.
    pub agent_id: AgentId,
    /// Its own version, free text; a new one refreshes the whole card.
    #[serde(default = "defaults::version")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::NAME_MAX)))]
    pub version: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::NAME_MAX)))]
    pub display_name: Option<String>,
    /// The team that answers for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::NAME_MAX)))]
    pub owner_team: Option<String>,
    /// What it is for, in a sentence or two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::TEXT_MAX)))]
    pub description: String,
    /// What it offers. It is sent nothing else.
    #[cfg_attr(feature = "json-schema", schemars(length(min = 1, max = limits::CAPABILITIES_MAX)))]
    pub capabilities: Vec<Capability>,
    /// How it is reached, best first. None: it pulls its work with `task/claim`.
    #[serde(default)]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::ENDPOINTS_MAX)))]
    pub endpoints: Vec<Endpoint>,
    /// How often it will send a heartbeat, 100 ms to 24 h. 3 missed: no new work. 4 missed: dead.
    #[serde(default = "defaults::heartbeat_interval")]
    pub heartbeat_interval: Span,
    /// How it is probed.
    #[serde(default)]
    pub probe: ProbePolicy,
    /// How many tasks it works on at once, at most.
    #[serde(default = "defaults::max_concurrency")]
    #[cfg_attr(feature = "json-schema", schemars(range(min = 1)))]
    pub max_concurrency: u32,
    /// 0 to 9; of agents that fit alike the higher one is preferred.
    #[serde(default = "defaults::priority")]
    #[cfg_attr(feature = "json-schema", schemars(range(max = 9)))]
    pub priority: u8,
    /// Words that an intent may be matched against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::TAGS_MAX), inner(length(max = limits::NAME_MAX))))]
    pub tags: Vec<String>,
    /// How far its owner vouches for it.
    #[serde(default)]
    pub trust_level: TrustLevel,
    /// The hours in which it takes work. None: always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::AVAILABILITY_MAX)))]
    pub availability: Vec<Hours>,
    /// What it needs to work (a model API, a database); it reports their state in its heartbeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::DEPENDENCIES_MAX), inner(length(max = limits::NAME_MAX))))]
    pub dependencies: Vec<String>,
    /// Who may call it, and whom it may call.
    #[serde(default)]
    pub access: Access,
    /// Addresses that hear of tasks that this agent failed: `http` or `https` URLs without credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::CALLBACKS_MAX), inner(length(max = limits::ADDRESS_MAX))))]
    pub on_failure_callbacks: Vec<String>,
}

/// One thing that an agent offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Capability {
    /// Its name, the same at every agent that offers the same thing.
    pub name: CapabilityName,
    /// What it does, in a sentence or two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::TEXT_MAX)))]
    pub description: String,
    /// What it does not do; an intent that asks for one of these is kept away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::EXCLUSIONS_MAX), inner(length(max = limits::TEXT_MAX))))]
    pub exclusions: Vec<String>,
    /// Words that an intent may be matched against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::TAGS_MAX), inner(length(max = limits::NAME_MAX))))]
    pub tags: Vec<String>,
    /// JSON Schema 2020-12 of the parameters. None: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<RawJson>,
    /// JSON Schema 2020-12 of the result. None: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<RawJson>,
    /// The tool of an MCP server that this is, as its server describes it: an object with `name` and `inputSchema`. Given,
    /// results have the form of a `CallToolResult`. None: it is no tool of an MCP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<RawJson>,
    /// 0 to 100: how strongly the owner offers it.
    #[serde(default = "defaults::routing_weight")]
    #[cfg_attr(feature = "json-schema", schemars(range(max = 100)))]
    pub routing_weight: u8,
    /// How long it takes, roughly; sets the attempt's timeout where `timeout` does not.
    #[serde(default)]
    pub tier: Tier,
    /// How long one attempt may take, at most 24 h. None: as the tier has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// What it does to the world. `write`, the default, is never repeated when its outcome is unknown.
    #[serde(default)]
    pub effect: Effect,
    /// Whether work that has begun can be stopped.
    #[serde(default)]
    pub cancellable: bool,
    /// When its circuit breaker opens and closes. None: the defaults for its effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerPolicy>,
    /// What to do once every try has failed, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::FALLBACK_MAX)))]
    pub fallback: Vec<FallbackStep>,
    /// Whether another agent with the same capability is tried before the fallback. None: yes, save for a
    /// `write` that may have started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateral: Option<bool>,
    /// Whether outcomes may move `routing_weight`, within the bound that the gateway sets. None: yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_weight: Option<bool>,
}

/// How long work takes, roughly; each tier has limits of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Within 2 s.
    Fast,
    /// Within 15 s.
    #[default]
    Normal,
    /// Within 5 min; never awaited on a connection unless the caller asks.
    Long,
}

impl Tier {
    /// Every tier.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Normal, Self::Long];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Normal => "normal",
            Self::Long => "long",
        }
    }

    /// How long one attempt may take.
    #[must_use]
    pub const fn attempt_timeout(self) -> Span {
        match self {
            Self::Fast => Span::from_secs(2),
            Self::Normal => Span::from_secs(15),
            Self::Long => Span::from_mins(5),
        }
    }
}

/// What work does to the world, hence whether it may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing; it may be repeated.
    Read,
    /// Something, and the same again if repeated.
    IdempotentWrite,
    /// Something, and once more each time: never repeated when the outcome is unknown.
    #[default]
    Write,
}

impl Effect {
    /// Whether an attempt whose outcome is unknown may be followed by another.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        match self {
            Self::Read | Self::IdempotentWrite => true,
            Self::Write => false,
        }
    }
}

/// One way to reach an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// How we talk to it.
    pub protocol: Protocol,
    /// The protocol's version.
    #[serde(default = "defaults::protocol_version")]
    pub version: String,
    /// Where: a URL for `http`, without credentials; a command line for `process`; nothing for `websocket` and `queue`; for
    /// `mcp` a URL, or `server:NAME` for a server that the operator added under that name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::TEXT_MAX)))]
    pub address: String,
}

/// What the address of an `mcp` endpoint begins with that names a server which the operator added, instead of a URL.
pub const SERVER_PREFIX: &str = "server:";

/// How the gateway talks to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// The gateway posts to the agent's URL.
    Http,
    /// The gateway starts a command: parameters on its standard input, result on its standard output.
    /// Only the operator's configuration may name commands.
    Process,
    /// The agent keeps a WebSocket to the gateway open and is pushed its work over it.
    Websocket,
    /// The agent pulls its work with `task/claim`.
    Queue,
    /// The agent is an MCP server: a capability is one of its tools, and a result is a `CallToolResult`.
    Mcp,
}

impl Protocol {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Process => "process",
            Self::Websocket => "websocket",
            Self::Queue => "queue",
            Self::Mcp => "mcp",
        }
    }
}

/// How far the owner of an agent vouches for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrustLevel {
    /// On trial.
    Low,
    /// As any.
    #[default]
    Standard,
    /// Fit for delicate work.
    High,
}

/// Hours of the week in which an agent takes work, in its own offset from UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Hours {
    /// Which days. None: every day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = 7)))]
    pub days: Vec<Day>,
    /// First minute of the day, `"08:30"`.
    pub from: crate::clock_time::ClockTime,
    /// First minute no longer in it, `"18:00"`; at or before `from` means the next day.
    pub to: crate::clock_time::ClockTime,
    /// Minutes ahead of UTC, -720 to 840.
    #[serde(default)]
    #[cfg_attr(feature = "json-schema", schemars(range(min = limits::UTC_OFFSET_MIN, max = limits::UTC_OFFSET_MAX)))]
    pub utc_offset_minutes: i16,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the days speak for themselves")]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

/// Who may call an agent, and whom it may call. Across namespaces both sides must say yes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// Who may call it, as patterns such as `*@media`. None: its own namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::PATTERNS_MAX)))]
    pub callable_by: Option<Vec<AgentPattern>>,
    /// Whom it may call. None: its own namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = limits::PATTERNS_MAX)))]
    pub may_call: Option<Vec<AgentPattern>>,
}

/// What to do once every try has failed: one step down. Written with its kind as the only key, for example
/// `{"capability": "cached_news"}` or `{"static": {"items": []}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FallbackStep {
    /// Ask for another capability, with the same parameters. Its own name would be a loop.
    Capability(CapabilityName),
    /// Ask one named agent for the same capability.
    Agent(AgentId),
    /// Answer with a fixed result.
    Static(RawJson),
    /// Answer with words for the caller's model to plan anew: the result is `{"instruction": "..."}`.
    Instruction(String),
    /// Put the task into this queue, where a person takes it and answers it. Nothing can come after it.
    Human(QueueName),
}

mod defaults {
    use crate::Span;

    pub(super) fn version() -> String {
        "1".to_owned()
    }
    pub(super) fn protocol_version() -> String {
        "1".to_owned()
    }
    pub(super) fn heartbeat_interval() -> Span {
        Span::from_secs(10)
    }
    pub(super) fn max_concurrency() -> u32 {
        16
    }
    pub(super) fn priority() -> u8 {
        5
    }
    pub(super) fn routing_weight() -> u8 {
        50
    }
}
