//! Patterns over agent ids, as access rules use them: `news@media`, `*@media`, `ops_*@*`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::AgentId;

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
}
