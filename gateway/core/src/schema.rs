//! JSON Schemas that agents bring: compiled once a registration, offline, with bounds on size, nesting and regular
//! expressions, so that a hostile schema costs little and reaches nothing.

mod choices;
mod cost;
mod strict;

use jsonschema::{PatternOptions, Validator};
use reach_schemas::RawJson;
use serde_json::Value;

pub(crate) use choices::{choices, listed};
pub use strict::read_strictly;

/// The largest schema that is taken, in bytes.
pub const SCHEMA_MAX: usize = 64 * 1024;
/// The deepest nesting of a schema that is taken.
pub const DEPTH_MAX: usize = 64;
/// How many violations are told.
pub const VIOLATIONS_MAX: usize = 5;
/// How long what is told of one violation may be, in bytes.
const VIOLATION_MAX: usize = 512;
/// How much of a value is repeated when it is told of: texts up to so many bytes, and so many items.
const QUOTED_MAX: usize = 100;
const QUOTED_ITEMS_MAX: usize = 4;
/// How many rules one value may be held against, with all references followed.
pub const RULES_MAX: u64 = 10_000;
/// How much checking one value may cost: its bytes times the schema's rules. Some seconds at the very worst.
pub const WORK_MAX: u64 = 200_000_000;
/// The largest compiled regular expression, in bytes.
const REGEX_MAX: usize = 1 << 20;

/// Why a schema is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// Too many bytes.
    #[error("the schema has {bytes} bytes, at most {SCHEMA_MAX} are taken")]
    TooLarge {
        /// How many.
        bytes: usize,
    },
    /// Nested too deeply.
    #[error("the schema is nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    /// Its references multiply.
    #[error("the schema holds a value against more than {RULES_MAX} rules once its references are followed")]
    TooManyRules,
    /// It is JSON, but no JSON Schema that can be used here.
    #[error("not a usable JSON Schema (2020-12): {0}")]
    Unusable(String),
}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    rules: u64,
}

impl Schema {
    /// Compiles a schema. References may point within it only.
    ///
    /// # Errors
    /// It is too large, nested too deeply, or no JSON Schema.
    pub fn compile(schema: &RawJson) -> Result<Self, SchemaError> {
        let text = schema.get();
        if text.len() > SCHEMA_MAX {
            return Err(SchemaError::TooLarge { bytes: text.len() });
        }
        if depth(text) > DEPTH_MAX {
            return Err(SchemaError::TooDeep);
        }
        let value: Value = schema.read().map_err(|error| SchemaError::Unusable(error.to_string()))?;
        if !value.is_object() && !value.is_boolean() {
            return Err(SchemaError::Unusable("a schema is an object, or true or false".to_owned()));
        }
        let rules = cost::rules(&value);
        if rules > RULES_MAX {
            return Err(SchemaError::TooManyRules);
        }
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(PatternOptions::regex().size_limit(REGEX_MAX))
            .build(&value)
            .map_err(|error| SchemaError::Unusable(error.to_string()))?;
        Ok(Self { validator, rules })
    }

    /// Whether a value of so many bytes may be checked at all: a large value against many rules costs too much.
    #[must_use]
    pub fn can_check(&self, bytes: usize) -> bool {
        self.rules.saturating_mul(bytes as u64) <= WORK_MAX
    }

    /// Whether the value fits.
    #[must_use]
    pub fn fits(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// What is wrong with the value, at most [`VIOLATIONS_MAX`] of them; nothing if it fits.
    #[must_use]
    pub fn violations(&self, value: &Value) -> Vec<String> {
        let tell = |error: jsonschema::ValidationError<'_>| {
            let at = error.instance_path().to_string();
            // A large value is not repeated in what is said of it.
            let is_short = is_short(error.instance());
            let why = match choices(&error) {
                Some(choices) => {
                    let given = if is_short { error.instance().to_string() } else { "value".to_owned() };
                    format!("{given} is not one of {}", listed(&choices))
                }
                None if is_short => error.to_string(),
                None => error.masked().to_string(),
            };
            let told = if at.is_empty() { why } else { format!("at {at}: {why}") };
            let end = told.floor_char_boundary(VIOLATION_MAX);
            if end < told.len() { format!("{}...", &told[..end]) } else { told }
        };
        self.validator.iter_errors(value).take(VIOLATIONS_MAX).map(tell).collect()
    }
}

/// Whether a value is so short that it may be quoted whole.
fn is_short(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => text.len() <= QUOTED_MAX,
        Value::Array(items) => items.len() <= QUOTED_ITEMS_MAX && items.iter().all(is_short),
        Value::Object(members) => {
            members.len() <= QUOTED_ITEMS_MAX
                && members.iter().all(|(name, value)| name.len() <= QUOTED_MAX && is_short(value))
        }
    }
}

/// How deeply a JSON text is nested, without recursion.
#[must_use]
pub fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The names of a schema's properties and their descriptions: words that an intent may be matched against.
#[must_use]
pub fn parameter_words(schema: &RawJson) -> Vec<String> {
    let Ok(Value::Object(schema)) = schema.read::<Value>() else { return Vec::new() };
    let Some(Value::Object(properties)) = schema.get("properties") else { return Vec::new() };
    let mut words = Vec::new();
    for (name, property) in properties {
        words.push(name.clone());
        words.extend(property.get("description").and_then(Value::as_str).map(str::to_owned));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(text: &str) -> Result<Schema, SchemaError> {
        Schema::compile(&RawJson::parse(text).unwrap())
    }

    #[test]
    fn a_value_that_does_not_fit_is_told_where_and_why() {
        let schema = compile(r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#).unwrap();
        assert!(schema.fits(&serde_json::json!({"n": 1})));
        let told = schema.violations(&serde_json::json!({"n": "x"}));
        assert_eq!(told, [r#"at /n: "x" is not of type "integer""#]);
    }

    #[test]
    fn a_large_value_is_not_repeated_in_what_is_said_of_it() {
        let schema = compile(r#"{"type":"object","additionalProperties":{"type":"integer"}}"#).unwrap();
        let long = "x".repeat(1 << 20);
        for value in
            [serde_json::json!({"n": long}), serde_json::json!([[long]]), serde_json::json!({(long.as_str()): 1.5})]
        {
            let told = schema.violations(&value);
            assert!(!told.is_empty() && told.iter().all(|said| said.len() < 1000), "{told:.2000?}");
        }
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for wrong in ["3", "\"x\"", r#"{"type":"banana"}"#, r#"{"pattern":"("}"#, r#"{"$ref":"file:///etc/passwd"}"#] {
            assert!(matches!(compile(wrong), Err(SchemaError::Unusable(_))), "{wrong}");
        }
        let deep = format!("{}true{}", r#"{"not":"#.repeat(65), "}".repeat(65));
        assert_eq!(compile(&deep).unwrap_err(), SchemaError::TooDeep);
        let large = format!(r#"{{"description":"{}"}}"#, "x".repeat(SCHEMA_MAX));
        assert!(matches!(compile(&large), Err(SchemaError::TooLarge { .. })));
    }

    #[test]
    fn references_that_multiply_are_refused() {
        let defs: Vec<String> = (0..34)
            .map(|n| {
                format!(r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{m}"}},{{"$ref":"#/$defs/d{m}"}}]}}"##, m = n + 1)
            })
            .collect();
        let bomb = format!(r##"{{"$defs":{{{},"d34":{{"type":"object"}}}},"$ref":"#/$defs/d0"}}"##, defs.join(","));
        assert_eq!(compile(&bomb).unwrap_err(), SchemaError::TooManyRules);
        let tree = r##"{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}}}"##;
        assert!(compile(tree).is_ok(), "a schema may speak of itself");
    }

    #[test]
    fn a_large_value_is_not_held_against_many_rules() {
        let many: Vec<String> = (0..3000).map(|n| format!(r#"{{"z":{n}}}"#)).collect();
        let schema = compile(&format!(r#"{{"contains":{{"enum":[{}]}}}}"#, many.join(","))).unwrap();
        assert!(schema.can_check(1_000) && !schema.can_check(480_000));
        assert!(compile(r#"{"type":"object"}"#).unwrap().can_check(4 << 20));
    }

    #[test]
    fn braces_within_text_are_not_nesting() {
        assert_eq!(depth(r#"{"a":"[[[{\"{{"}"#), 1);
    }
}
