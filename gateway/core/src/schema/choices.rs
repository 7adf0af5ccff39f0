//! What a value may be, where a schema lists it and the value is none of it: words for the reader of a refusal.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

/// The values that a place takes, where it takes some and no others, and was given none of them.
pub(crate) fn choices<'a>(error: &'a ValidationError<'_>) -> Option<Vec<&'a Value>> {
    let (ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context }) = error.kind() else {
        return None;
    };
    let mut choices = Vec::new();
    for branch in context {
        choices.extend(of_branch(branch, error)?);
    }
    (!choices.is_empty()).then_some(choices)
}

/// What one branch takes. A branch that takes nothing but null is not spoken of: it says that the place may be left out.
#[expect(clippy::wildcard_enum_match_arm, reason = "any other kind may hold branches of its own, or does not")]
fn of_branch<'a>(branch: &'a [ValidationError<'_>], whole: &ValidationError<'_>) -> Option<Vec<&'a Value>> {
    let mut here = branch.iter().filter(|error| error.instance_path().as_str() == whole.instance_path().as_str());
    here.find_map(|error| match error.kind() {
        ValidationErrorKind::Constant { expected_value } => Some(vec![&**expected_value]),
        ValidationErrorKind::Enum { options } => options.as_array().map(|options| options.iter().collect()),
        ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::Null) } => Some(Vec::new()),
        _ => choices(error),
    })
}

/// As a reader of JSON says it: `"a", "b" or "c"`.
pub(crate) fn listed(choices: &[&Value]) -> String {
    let words: Vec<String> = choices.iter().map(|choice| choice.to_string()).collect();
    match &words[..] {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use reach_schemas::RawJson;
    use serde_json::json;

    use crate::schema::Schema;

    #[test]
    fn a_value_that_is_none_of_those_listed_is_told_with_them() {
        let effect =
            json!({ "oneOf": [{ "const": "read", "type": "string" }, { "const": "write", "type": "string" }] });
        let schema = json!({ "properties": {
            "effect": effect, "maybe": { "anyOf": [effect, { "type": "null" }] },
            "shape": { "oneOf": [{ "properties": { "kind": { "const": "dot" } } }, { "type": "string" }] },
        } });
        let schema = Schema::compile(&RawJson::of(&schema).unwrap()).unwrap();
        let told = |value| schema.violations(&value);
        assert_eq!(told(json!({ "effect": "writ" })), [r#"at /effect: "writ" is not one of "read" or "write""#]);
        assert_eq!(told(json!({ "maybe": 7 })), [r#"at /maybe: 7 is not one of "read" or "write""#]);
        let long = "x".repeat(1000);
        assert_eq!(told(json!({ "effect": long })), [r#"at /effect: value is not one of "read" or "write""#]);
        // What is more than a list is told as it is.
        assert!(told(json!({ "shape": { "kind": "line" } }))[0].contains("oneOf"));
    }
}
