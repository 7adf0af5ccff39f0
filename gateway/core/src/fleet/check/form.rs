//! What is wrong with the form of a card, or of a policy, that cannot be read: all of it, where a reader stops at the first
//! flaw. Held to its own JSON Schema, which is generated from the type that is read.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use reach_schemas::{AgentId, AgentPattern, CapabilityName, Span};
use serde_json::Value;

use super::inspection::{MISTAKES_MAX, Mistake};
use crate::schema::{choices, listed};

/// The longest text of which more than the first flaw is told, in bytes: each may be wrong in many places.
const FORM_MAX: usize = 64 * 1024;
/// How long what is said of one flaw may be, in bytes: it may quote the card.
const SAYS_MAX: usize = 300;

/// What something must look like.
struct Form {
    validator: Validator,
    /// The types whose texts have a pattern, by it.
    patterns: BTreeMap<String, String>,
}

impl Form {
    fn of(schema: &str) -> Self {
        let schema: Value = serde_json::from_str(schema).expect("the schema is generated, hence JSON");
        let validator = jsonschema::options().offline().build(&schema).expect("it is generated, hence a schema");
        let defs = schema.get("$defs").and_then(Value::as_object);
        let pattern = |(name, def): (&String, &Value)| Some((def.get("pattern")?.as_str()?.to_owned(), name.clone()));
        // Of two with the same pattern, the first.
        let patterns = defs.into_iter().flatten().rev().filter_map(pattern).collect();
        Self { validator, patterns }
    }

    fn mistakes(&self, text: &str) -> Vec<Mistake> {
        if text.len() > FORM_MAX {
            return Vec::new();
        }
        let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
        self.validator.iter_errors(&value).flat_map(|error| self.told(&error)).take(MISTAKES_MAX).collect()
    }

    /// One flaw of the schema's, in the words in which a reader tells it.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the library's own words do for all other kinds")]
    fn told(&self, error: &ValidationError<'_>) -> Vec<Mistake> {
        let at = path(&error.instance_path().to_string());
        let mistake = |says: String| Mistake { at: at.clone(), says: cut(says), is_in_schema: false };
        match error.kind() {
            // What is said of a member is said once for each.
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                unexpected.iter().map(|name| mistake(format!("unknown field `{name}`"))).collect()
            }
            ValidationErrorKind::Required { property } => {
                vec![mistake(format!("missing field `{}`", property.as_str().unwrap_or_default()))]
            }
            ValidationErrorKind::Pattern { pattern } => {
                let read = error.instance().as_str().and_then(|text| self.misread(pattern, text));
                vec![mistake(read.unwrap_or_else(|| error.to_string()))]
            }
            ValidationErrorKind::AnyOf { context } => {
                // A place that may be left out: what it takes else is what was meant.
                let read = context.iter().flatten().find_map(|inner| match inner.kind() {
                    ValidationErrorKind::Pattern { pattern } => self.misread(pattern, error.instance().as_str()?),
                    _ => None,
                });
                vec![mistake(read.or_else(|| choice(error)).unwrap_or_else(|| error.to_string()))]
            }
            _ => vec![mistake(choice(error).unwrap_or_else(|| error.to_string()))],
        }
    }

    /// What the reader of a text says of one that does not fit the pattern of its type.
    fn misread(&self, pattern: &str, text: &str) -> Option<String> {
        match self.patterns.get(pattern)?.as_str() {
            "AgentId" => text.parse::<AgentId>().err().map(|error| error.to_string()),
            "AgentPattern" => text.parse::<AgentPattern>().err().map(|error| error.to_string()),
            "CapabilityName" => text.parse::<CapabilityName>().err().map(|error| error.to_string()),
            "Span" => text.parse::<Span>().err().map(|error| error.to_string()),
            _ => None,
        }
    }
}

static CARD: LazyLock<Form> = LazyLock::new(|| Form::of(include_str!("../../../../../schemas/json/AgentCard.json")));
static POLICY: LazyLock<Form> = LazyLock::new(|| Form::of(include_str!("../../../../../schemas/json/PolicyPut.json")));

/// All that is wrong with the form of a card, as JSON: fields that are missing, unknown, or of another type. At most
/// [`MISTAKES_MAX`] of them; none if it has its form, is no JSON, or is longer than cards are.
#[must_use]
pub fn form_mistakes(card: &str) -> Vec<Mistake> {
    CARD.mistakes(card)
}

/// All that is wrong with the form of a policy that is put, as [`form_mistakes`] tells it of a card.
#[must_use]
pub fn policy_form_mistakes(policy: &str) -> Vec<Mistake> {
    POLICY.mistakes(policy)
}

/// What is said of a value that is none of those that its place takes: a text, as a reader says it.
fn choice(error: &ValidationError<'_>) -> Option<String> {
    let choices = choices(error)?;
    let words: Option<Vec<String>> = choices.iter().map(|choice| Some(format!("`{}`", choice.as_str()?))).collect();
    match (error.instance().as_ref(), words) {
        (Value::String(given), Some(words)) => {
            let among = match &words[..] {
                [one, other] => format!("{one} or {other}"),
                [only] => only.clone(),
                many => format!("one of {}", many.join(", ")),
            };
            Some(format!("unknown variant `{given}`, expected {among}"))
        }
        (given, _) => Some(format!("{given} is not one of {}", listed(&choices))),
    }
}

fn cut(mut text: String) -> String {
    if text.len() > SAYS_MAX {
        text.truncate(text.floor_char_boundary(SAYS_MAX));
        text.push_str("...");
    }
    text
}

/// `/capabilities/0/name` as `capabilities[0].name`.
fn path(pointer: &str) -> String {
    let mut path = String::new();
    for step in pointer.split('/').skip(1) {
        if step.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{step}]"));
        } else {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(step);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(card: &str, expected: &[&str]) {
        let told: Vec<String> = form_mistakes(card).iter().map(ToString::to_string).collect();
        assert_eq!(told, expected, "{card}");
    }

    #[test]
    fn every_flaw_is_told_with_its_place() {
        check(r#"{"agent_id": "a@n", "capabilities": [{"name": "x"}]}"#, &[]);
        check(
            r#"{"agent_id": "a@n", "colour": 1, "max_concurrency": "4",
                "capabilities": [{"name": "x", "efect": "read"}, {"description": "y", "routing_weight": "high"}]}"#,
            &[
                "capabilities[0]: unknown field `efect`",
                "capabilities[1].routing_weight: \"high\" is not of type \"integer\"",
                "capabilities[1]: missing field `name`",
                "max_concurrency: \"4\" is not of type \"integer\"",
                ": unknown field `colour`",
            ],
        );
    }

    #[test]
    fn words_and_names_are_told_as_a_reader_tells_them() {
        check(
            r#"{"agent_id": "bad id", "capabilities": [{"name": "Do It", "effect": "writ", "timeout": "soon"}]}"#,
            &[
                "agent_id: \"bad id\" has no '@': an agent id is name@namespace, for example news_reader@media",
                "capabilities[0].effect: unknown variant `writ`, expected one of `read`, `idempotent_write`, `write`",
                "capabilities[0].name: the capability name has 'D' at character 1; allowed are a-z, 0-9, '_', '-' and '.', \
                 first a letter or digit",
                "capabilities[0].timeout: \"soon\" is not a length of time: write a number with its unit, for example \"250ms\", \
                 \"30s\", \"15m\" or \"12h\"",
            ],
        );
    }

    #[test]
    fn every_flaw_of_a_policy_is_told() {
        let policy = r#"{"version": 0, "across": "card", "rules": [
            {"ruling": "maybe", "subject": "*@lab", "actions": ["call"], "object": "*@lab"}, {"ruling": "deny", "objekt": 1}]}"#;
        let told: Vec<String> = policy_form_mistakes(policy).iter().map(ToString::to_string).collect();
        let expected = [
            "across: unknown variant `card`, expected `cards` or `rules`",
            "rules[0].ruling: unknown variant `maybe`, expected `allow` or `deny`",
            "rules[1]: missing field `subject`",
            "rules[1]: missing field `actions`",
            "rules[1]: missing field `object`",
            "rules[1]: unknown field `objekt`",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_no_card_at_all_or_far_too_long_costs_little() {
        check("{", &[]);
        check(&format!(r#"{{"agent_id": "{}"}}"#, "x".repeat(FORM_MAX)), &[]);
        let many = format!(r#"{{"agent_id": "a@n", "capabilities": [{}1]}}"#, "1,".repeat(1000));
        assert_eq!(form_mistakes(&many).len(), MISTAKES_MAX);
    }
}
