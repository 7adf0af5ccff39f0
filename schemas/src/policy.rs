//! The operator's policy over who may do what with whom: rules over agents and capabilities, beside what the cards say.
//! As it is written, every pattern is text, so that all that is wrong with it can be told at once.

use serde::{Deserialize, Serialize};

/// How many rules a policy has at most.
pub const RULES_MAX: usize = 1000;
/// How long a note is at most, in bytes.
pub const NOTE_MAX: usize = 500;

/// The policy as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Grows by one with each change. 0: none was ever made.
    pub version: u64,
    /// What lets a call pass from one namespace to another.
    pub across: Across,
    /// The rules. Their order says nothing: a `deny` wins wherever it stands.
    pub rules: Vec<PolicyRule>,
}

/// What lets a call pass from one namespace to another. Both cards must say yes in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Across {
    /// Both cards are enough.
    #[default]
    Cards,
    /// Both cards, and a rule of the policy that allows it.
    Rules,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// What it says.
    pub ruling: Ruling,
    /// Who asks: a pattern of agent ids such as `*@lab`. `*` stands for any text and never crosses the `@`.
    pub subject: String,
    /// What they ask for: `list`, `call`, `subscribe`, `register`; at least one.
    pub actions: Vec<String>,
    /// Whom they ask: a pattern of agent ids.
    pub object: String,
    /// Which of its capabilities: a pattern such as `pay_*`. None: the agent with all that it offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// Why it is there, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "json-schema", schemars(length(max = NOTE_MAX)))]
    pub note: Option<String>,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// Across namespaces, where `across` is `rules`: the operator's yes beside those of both cards.
    Allow,
    /// No, whatever else says yes.
    Deny,
}

/// What may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// To know of it at all. Whoever may not list may do nothing else either.
    List,
    /// To have work done by it, and to see it offered.
    Call,
    /// To be told of the changes of a task that it has.
    Subscribe,
    /// To declare it on one's own card.
    Register,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 4] = [Self::List, Self::Call, Self::Subscribe, Self::Register];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Call => "call",
            Self::Subscribe => "subscribe",
            Self::Register => "register",
        }
    }

    /// The action of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == name)
    }
}
