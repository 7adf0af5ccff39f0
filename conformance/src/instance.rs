//! Makes values that fit a JSON Schema, and values that do not: parameters for agents that gave no examples. What comes
//! out is held against the schema by whoever asked, so that a schema which is beyond this is known to be.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// How deep a value goes.
const DEPTH_MAX: usize = 6;

/// A value that probably fits: an example of the schema's own, or one that is made.
pub(crate) fn good(schema: &Value, rng: &mut Rng) -> Option<Value> {
    build(schema, schema, rng, 0)
}

fn build(schema: &Value, root: &Value, rng: &mut Rng, depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX || schema == &Value::Bool(false) {
        return None;
    }
    let own = ["examples", "enum"].iter().find_map(|name| schema[*name].as_array()?.first().cloned());
    let fixed = ["const", "default"].iter().find_map(|name| schema.get(name).cloned());
    if let Some(value) = own.or(fixed) {
        return Some(value);
    }
    if let Some(pointer) = schema["$ref"].as_str().and_then(|to| to.strip_prefix('#')) {
        return build(root.pointer(pointer)?, root, rng, depth + 1);
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[name].as_array() {
            return choices.iter().find_map(|choice| build(choice, root, rng, depth + 1));
        }
    }
    if let Some(parts) = schema["allOf"].as_array() {
        return all_of(schema, parts, root, rng, depth);
    }
    of_type(schema, root, rng, depth)
}

fn all_of(schema: &Value, parts: &[Value], root: &Value, rng: &mut Rng, depth: usize) -> Option<Value> {
    let mut whole = Map::new();
    for part in parts {
        let value = build(part, root, rng, depth + 1)?;
        let Value::Object(members) = value else { return Some(value) };
        whole.extend(members);
    }
    if let Some(Value::Object(members)) = of_type(schema, root, rng, depth) {
        whole.extend(members);
    }
    Some(Value::Object(whole))
}

fn of_type(schema: &Value, root: &Value, rng: &mut Rng, depth: usize) -> Option<Value> {
    let kind = &schema["type"];
    let named = kind.as_array().map_or_else(|| kind.as_str(), |names| names.first().and_then(Value::as_str));
    let looks_like_object = schema.get("properties").is_some() || schema.get("required").is_some();
    match named.or_else(|| looks_like_object.then_some("object")) {
        Some("object") => object(schema, root, rng, depth),
        Some("array") => array(schema, root, rng, depth),
        Some("string") => string(schema, rng),
        Some("integer") => Some(json!(integer(schema, rng))),
        Some("number") => Some(json!(integer(schema, rng))),
        Some("boolean") => Some(json!(true)),
        Some("null") => Some(Value::Null),
        Some(_) => None,
        None => Some(json!({})),
    }
}

fn object(schema: &Value, root: &Value, rng: &mut Rng, depth: usize) -> Option<Value> {
    let mut members = Map::new();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for name in required {
        let property = schema["properties"].get(name).unwrap_or(&Value::Bool(true));
        let value = if property == &Value::Bool(true) { json!("text") } else { build(property, root, rng, depth + 1)? };
        members.insert(name.to_owned(), value);
    }
    Some(Value::Object(members))
}

fn array(schema: &Value, root: &Value, rng: &mut Rng, depth: usize) -> Option<Value> {
    let count = schema["minItems"].as_u64().unwrap_or(1).clamp(1, 20);
    let items = (0..count).map(|_| match schema.get("items") {
        Some(items) => build(items, root, rng, depth + 1),
        None => Some(json!("text")),
    });
    items.collect::<Option<Vec<_>>>().map(Value::Array)
}

fn string(schema: &Value, rng: &mut Rng) -> Option<Value> {
    let text = match schema["format"].as_str() {
        Some("date-time") => "2026-11-30T08:00:00Z".to_owned(),
        Some("date") => "2026-11-30".to_owned(),
        Some("time") => "08:00:00Z".to_owned(),
        Some("uri" | "iri") => "https://example.com/a".to_owned(),
        Some("email" | "idn-email") => "someone@example.com".to_owned(),
        Some("uuid") => "01890a5d-ac96-774b-bcce-b302099a8057".to_owned(),
        Some("ipv4") => "192.0.2.1".to_owned(),
        Some("ipv6") => "2001:db8::1".to_owned(),
        Some("hostname") => "example.com".to_owned(),
        Some(_) | None => format!("one two three {}", rng.u16(..)),
    };
    let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0)).unwrap_or(0).min(10_000);
    let most = schema["maxLength"].as_u64().and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let padded = if text.len() < least { text.clone() + &"x".repeat(least - text.len()) } else { text };
    Some(json!(padded.chars().take(most).collect::<String>()))
}

fn integer(schema: &Value, rng: &mut Rng) -> i64 {
    let bound = |name: &str| schema[name].as_f64().map(|bound| bound as i64);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|bound| bound + 1));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|bound| bound - 1));
    let (least, most) = match (least, most) {
        (Some(least), Some(most)) => (least, most.max(least)),
        (Some(least), None) => (least, least.saturating_add(5)),
        (None, Some(most)) => (most.saturating_sub(5), most),
        (None, None) => (1, 6),
    };
    let step = bound("multipleOf").unwrap_or(1).max(1);
    let value = rng.i64(least..=most);
    let rounded = value - value.rem_euclid(step);
    if rounded < least { rounded + step } else { rounded }
}

/// Values that are likely not to fit, made of one that does: the most blatant first.
pub(crate) fn bad(schema: &Value, good: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    if let Value::Object(members) = good {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in required {
            let mut wrong = members.clone();
            wrong.remove(name);
            found.push(Value::Object(wrong));
        }
        for (name, value) in members {
            let mut wrong = members.clone();
            wrong.insert(name.clone(), other_type(value));
            found.push(Value::Object(wrong));
        }
    }
    found.push(other_type(good));
    found
}

fn other_type(value: &Value) -> Value {
    match value {
        Value::Object(_) | Value::Array(_) => json!("this is no such thing"),
        Value::String(_) | Value::Null => json!([[1]]),
        Value::Number(_) | Value::Bool(_) => json!({ "not": "this" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value) {
        let validator = crate::schema::compile(&schema).unwrap();
        for seed in 0..20 {
            let value = good(&schema, &mut Rng::with_seed(seed)).unwrap();
            assert!(validator.is_valid(&value), "{value} does not fit {schema}");
            let wrong = bad(&schema, &value);
            assert!(wrong.iter().any(|value| !validator.is_valid(value)), "all of {wrong:?} fit {schema}");
        }
    }

    #[test]
    fn good_values_fit_and_bad_ones_do_not() {
        check(json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } }));
        check(json!({ "type": "string", "minLength": 40, "maxLength": 41 }));
        check(json!({ "type": "integer", "minimum": 7, "maximum": 19, "multipleOf": 4 }));
        check(json!({ "type": "array", "minItems": 3, "items": { "enum": ["a"] } }));
        check(
            json!({ "$defs": { "a": { "type": "object", "required": ["b"], "properties": { "b": { "format": "date", "type": "string" } } } }, "$ref": "#/$defs/a" }),
        );
        check(json!({ "anyOf": [{ "type": "null" }, { "type": "string" }] }));
        check(
            json!({ "allOf": [{ "type": "object", "required": ["a"], "properties": { "a": { "type": "boolean" } } }], "required": ["b"] }),
        );
        check(json!({ "type": "object", "examples": [{ "x": 1 }], "required": ["x"] }));
    }
}
