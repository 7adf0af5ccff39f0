//! What is wrong with the form of a card that cannot be read: all of it, where a reader stops at the first flaw. Held to
//! the card's own JSON Schema, which is generated from the type that is read.

use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::inspection::{MISTAKES_MAX, Mistake};

/// The longest card of which more than the first flaw is told, in bytes: each may be wrong in many places.
const FORM_MAX: usize = 64 * 1024;
/// How long what is said of one flaw may be, in bytes: it may quote the card.
const SAYS_MAX: usize = 300;

static FORM: LazyLock<Validator> = LazyLock::new(|| {
    let schema = serde_json::from_str(include_str!("../../../../../schemas/json/AgentCard.json"));
    let schema: Value = schema.expect("the schema is generated, hence JSON");
    jsonschema::options().offline().build(&schema).expect("the schema is generated, hence a schema")
});

/// All that is wrong with the form of a card, as JSON: fields that are missing, unknown, or of another type. At most
/// [`MISTAKES_MAX`] of them; none if it has its form, is no JSON, or is longer than cards are.
#[must_use]
pub fn form_mistakes(card: &str) -> Vec<Mistake> {
    if card.len() > FORM_MAX {
        return Vec::new();
    }
    let Ok(card) = serde_json::from_str::<Value>(card) else { return Vec::new() };
    FORM.iter_errors(&card).flat_map(|error| told(&error)).take(MISTAKES_MAX).collect()
}

/// One flaw of the schema's, in the words in which a reader tells it.
fn told(error: &ValidationError<'_>) -> Vec<Mistake> {
    let at = path(&error.instance_path().to_string());
    let mistake = |says: String| Mistake { at: at.clone(), says: cut(says), is_in_schema: false };
    // What is said of a member is said once for each.
    if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
        return unexpected.iter().map(|name| mistake(format!("unknown field `{name}`"))).collect();
    }
    if let ValidationErrorKind::Required { property } = error.kind() {
        return vec![mistake(format!("missing field `{}`", property.as_str().unwrap_or_default()))];
    }
    vec![mistake(error.to_string())]
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
    fn what_is_no_card_at_all_or_far_too_long_costs_little() {
        check("{", &[]);
        check(&format!(r#"{{"agent_id": "{}"}}"#, "x".repeat(FORM_MAX)), &[]);
        let many = format!(r#"{{"agent_id": "a@n", "capabilities": [{}1]}}"#, "1,".repeat(1000));
        assert_eq!(form_mistakes(&many).len(), MISTAKES_MAX);
    }
}
