//! Patterns over agent ids, as access rules use them: `news@media`, `*@media`, `ops_*@*`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{AgentId, CapabilityName};

/// A text that is not a pattern over names of capabilities.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is not a pattern of capability names: write a name, where '*' stands for any text, for example \"pay_*\""
)]
pub struct CapabilityPatternError {
    given: String,
}

/// A pattern over names of capabilities; `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapabilityPattern(Box<str>);

impl CapabilityPattern {
    /// Whether the name has the form of the pattern.
    #[must_use]
    pub fn matches(&self, name: &CapabilityName) -> bool {
        glob(&self.0, name.as_str())
    }

    /// Whether every name has it.
    #[must_use]
    pub fn is_of_all(&self) -> bool {
        self.0.chars().all(|letter| letter == '*')
    }
}

impl FromStr for CapabilityPattern {
    type Err = CapabilityPatternError;
    fn from_str(text: &str) -> Result<Self, CapabilityPatternError> {
        // What a star may stand for is any text, so one stands in for it.
        match text.replace('*', "a").parse::<CapabilityName>() {
            Ok(_) => Ok(Self(text.into())),
            Err(_) => Err(CapabilityPatternError { given: text.chars().take(80).collect() }),
        }
    }
}

/// A text that is not a pattern over agent ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is not a pattern of agent ids: write name@namespace, where '*' stands for any text, for example \"*@media\""
)]
pub struct PatternError {
    given: String,
}

/// A pattern over agent ids; `*` stands for any text, and never reaches across the `@`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentPattern {
    text: Box<str>,
    at: usize,
}

impl AgentPattern {
    /// Whether the agent's id has the form of the pattern.
    #[must_use]
    pub fn matches(&self, agent: &AgentId) -> bool {
        glob(&self.text[..self.at], agent.name()) && glob(&self.text[self.at + 1..], agent.namespace_str())
    }
}

/// Matches with `*` only, in time linear in text times stars (no backtracking over more than one star).
fn glob(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        let Some(found) = text.find(part) else { return false };
        text = &text[found + part.len()..];
    }
    true
}

impl FromStr for AgentPattern {
    type Err = PatternError;
    fn from_str(text: &str) -> Result<Self, PatternError> {
        let wrong = || PatternError { given: text.chars().take(80).collect() };
        let (name, namespace) = text.split_once('@').ok_or_else(wrong)?;
        let fits = |part: &str| {
            !part.is_empty()
                && part.len() <= 64
                && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.*".contains(c))
        };
        if fits(name) && fits(namespace) { Ok(Self { text: text.into(), at: name.len() }) } else { Err(wrong()) }
    }
}

impl fmt::Display for AgentPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for AgentPattern {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for AgentPattern {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        crate::text::read(d, "a pattern of agent ids such as \"*@media\"")
    }
}

#[cfg(feature = "json-schema")]
impl schemars::JsonSchema for AgentPattern {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AgentPattern".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[a-z0-9_.*-]{1,64}@[a-z0-9_.*-]{1,64}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, agent: &str, expected: bool) {
        let pattern: AgentPattern = pattern.parse().unwrap();
        assert_eq!(pattern.matches(&agent.parse().unwrap()), expected, "{pattern} on {agent}");
    }

    #[test]
    fn a_star_stands_for_any_text_but_never_crosses_the_at() {
        check("news@media", "news@media", true);
        check("news@media", "news2@media", false);
        check("*@media", "news@media", true);
        check("*@media", "news@media2", false);
        check("ops_*@*", "ops_v2@x", true);
        check("ops_*@*", "op_v2@x", false);
        check("a*b*c@n", "a_b_c@n", true);
        check("a*b*c@n", "a_c@n", false);
        check("*a@n", "aa@n", true);
        assert!("media".parse::<AgentPattern>().is_err());
    }

    #[test]
    fn a_pattern_of_capabilities_is_a_name_with_stars() {
        let fits =
            |pattern: &str, name: &str| pattern.parse::<CapabilityPattern>().unwrap().matches(&name.parse().unwrap());
        assert!(fits("pay_*", "pay_out") && fits("*", "pay_out") && fits("pay", "pay"));
        assert!(!fits("pay_*", "repay_out") && !fits("pay", "pay_out"));
        for wrong in ["", "pay out", "Pay*", "a@b"] {
            assert!(wrong.parse::<CapabilityPattern>().is_err(), "{wrong}");
        }
    }
}
