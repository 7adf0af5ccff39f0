//! What the methods of the policy take and answer.

use serde::{Deserialize, Serialize};

use crate::policy::{Across, Action, Policy, PolicyRule};
use crate::{AgentId, CapabilityName};

/// `policy/put`: puts a policy in the place of the one that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyPut {
    /// The version that it takes the place of, as `policy/get` told it. Another one stands: nothing is changed.
    pub version: u64,
    /// What lets a call pass from one namespace to another.
    pub across: Across,
    /// All rules.
    #[cfg_attr(feature = "json-schema", schemars(length(max = crate::policy::RULES_MAX)))]
    pub rules: Vec<PolicyRule>,
}

/// The answer to `policy/put`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct PolicyStands {
    /// The policy that stands now.
    pub policy: Policy,
    /// Rules that change nothing, and agents that are registered with what they may not declare any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// `policy/test`: may an agent do this?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyTest {
    /// Who asks.
    pub subject: AgentId,
    /// What for.
    pub action: Action,
    /// Whom.
    pub object: AgentId,
    /// Which of its capabilities. None: the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<CapabilityName>,
}

/// The answer to `policy/test`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct PolicyTested {
    /// Whether it may, as things stand.
    pub allowed: bool,
    /// Who says no, and why. None: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether the agent that is asked for is registered. One that is not has no card that could say yes.
    pub registered: bool,
}
