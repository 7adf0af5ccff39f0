//! Makes values that fit a JSON Schema: parameters for agents that gave no examples. What comes out is held against the
//! schema by whoever asked, so that a schema which is beyond this is known to be.

use fastrand::Rng;
use serde_json::{Map, Number, Value, json};

use crate::misfit::number;

/// How deep a value goes.
const DEPTH_MAX: usize = 6;
/// How many items a list has, and how many characters a text, at most.
const ITEMS_MAX: u64 = 1000;
const TEXT_MAX: usize = 100_000;

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
        Some("integer") => integer(schema, rng),
        Some("number") => fraction(schema, rng),
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
    let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX).min(ITEMS_MAX);
    let count = schema["minItems"].as_u64().unwrap_or(0).max(1).min(most);
    let firsts = schema["prefixItems"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_distinct = schema["uniqueItems"] == true;
    let mut items: Vec<Value> = Vec::new();
    for at in 0..count {
        let of = usize::try_from(at).ok().and_then(|at| firsts.get(at)).or_else(|| schema.get("items"));
        let item = match of {
            Some(Value::Bool(false)) => break,
            Some(of) => build(of, root, rng, depth + 1)?,
            None => json!("text"),
        };
        let is_twice = is_distinct && items.contains(&item);
        // Whole numbers are easily told apart, and nothing else is tried for.
        let item = if is_twice { items.iter().filter_map(Value::as_i64).max()?.checked_add(1)?.into() } else { item };
        items.push(item);
    }
    Some(Value::Array(items))
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
    let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0)).unwrap_or(0).min(TEXT_MAX);
    let most = schema["maxLength"].as_u64().and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let padded = if text.len() < least { text.clone() + &"x".repeat(least - text.len()) } else { text };
    Some(json!(padded.chars().take(most).collect::<String>()))
}

/// A bound as it is written, whole: rounded up or down.
fn bound(schema: &Value, name: &str, round: fn(f64) -> f64) -> Option<i128> {
    let bound = schema.get(name)?;
    let whole = bound.as_i64().map(i128::from).or_else(|| bound.as_u64().map(i128::from));
    // What no 128 bits hold is the largest that they do.
    whole.or_else(|| bound.as_f64().map(|bound| round(bound) as i128))
}

/// A whole number. None: none fits that can be written to the digit.
fn integer(schema: &Value, rng: &mut Rng) -> Option<Value> {
    let past = |name: &str, round, by: i128| bound(schema, name, round).map(|bound| bound.saturating_add(by));
    let least = past("minimum", f64::ceil, 0).max(past("exclusiveMinimum", f64::floor, 1));
    let most = [past("maximum", f64::floor, 0), past("exclusiveMaximum", f64::ceil, -1)].into_iter().flatten().min();
    let step = schema["multipleOf"].as_f64().filter(|step| step.fract() == 0.0 && *step >= 1.0);
    let step = step.map_or(1, |step| step as i128);
    let span = step.saturating_mul(5);
    let (least, most) = match (least, most) {
        (Some(least), Some(most)) => (least, most.max(least).min(least.saturating_add(span))),
        (Some(least), None) => (least, least.saturating_add(span)),
        (None, Some(most)) => (most.saturating_sub(span), most),
        (None, None) => (1, step.saturating_add(5)),
    };
    let room = u64::try_from(most.saturating_sub(least)).unwrap_or(u64::MAX);
    let value = least.saturating_add(i128::from(rng.u64(0..=room)));
    let below = value.saturating_sub(value.rem_euclid(step));
    number(if below < least { below.saturating_add(step) } else { below })
}

/// A number: a whole one if one fits, else one within its bounds, or the first multiple of its step.
fn fraction(schema: &Value, rng: &mut Rng) -> Option<Value> {
    let bound = |names: [&str; 2]| names.into_iter().find_map(|name| schema[name].as_f64());
    let (least, most) = (bound(["minimum", "exclusiveMinimum"]), bound(["maximum", "exclusiveMaximum"]));
    let whole = integer(schema, rng)?;
    let (value, least) = (whole.as_f64()?, least.unwrap_or(f64::MIN));
    let step = schema["multipleOf"].as_f64().filter(|step| *step > 0.0);
    let is_multiple = step.is_none_or(|step| value % step == 0.0);
    if value > least && most.is_none_or(|most| value < most) && is_multiple {
        return Some(whole);
    }
    let near = match (step, most) {
        (Some(step), _) => (least / step).floor() * step + step,
        (None, Some(most)) => least / 2.0 + most / 2.0,
        (None, None) => value,
    };
    Number::from_f64(near).map(Value::Number)
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
        }
    }

    #[test]
    fn good_values_fit() {
        check(json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } }));
        check(json!({ "type": "string", "minLength": 40, "maxLength": 41 }));
        check(json!({ "type": "string", "minLength": 20_000 }));
        check(json!({ "type": "integer", "minimum": 7, "maximum": 19, "multipleOf": 4 }));
        check(json!({ "type": "array", "minItems": 3, "items": { "enum": ["a"] } }));
        check(json!({ "type": "array", "minItems": 30, "uniqueItems": true, "items": { "type": "integer" } }));
        check(
            json!({ "type": "array", "minItems": 2, "items": false, "prefixItems": [{ "type": "string" }, { "type": "integer" }] }),
        );
        check(
            json!({ "$defs": { "a": { "type": "object", "required": ["b"], "properties": { "b": { "format": "date", "type": "string" } } } }, "$ref": "#/$defs/a" }),
        );
        check(json!({ "anyOf": [{ "type": "null" }, { "type": "string" }] }));
        check(
            json!({ "allOf": [{ "type": "object", "required": ["a"], "properties": { "a": { "type": "boolean" } } }], "required": ["b"] }),
        );
        check(json!({ "type": "object", "examples": [{ "x": 1 }], "required": ["x"] }));
    }

    #[test]
    fn numbers_fit_their_bounds_and_those_at_the_edge_break_nothing() {
        check(json!({ "type": "integer", "exclusiveMinimum": i64::MAX }));
        check(json!({ "type": "integer", "minimum": 9_223_372_036_854_775_800_i64, "multipleOf": 1000 }));
        check(json!({ "type": "integer", "exclusiveMaximum": 5, "minimum": 4 }));
        check(json!({ "type": "number", "minimum": 0.1, "maximum": 0.9 }));
        check(json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 }));
        check(json!({ "type": "number", "multipleOf": 0.25, "minimum": 0.3 }));
        let edges =
            [json!(u64::MAX), json!(i64::MIN), json!(i64::MAX), json!(1e300), json!(-1e300), json!(0), json!("x")];
        let names = ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"];
        for (one, other) in edges.iter().flat_map(|one| edges.iter().map(move |other| (one, other))) {
            for (name, second) in names.iter().flat_map(|name| names.iter().map(move |second| (name, second))) {
                for kind in ["integer", "number"] {
                    let mut schema = json!({ "type": kind });
                    schema[*name] = one.clone();
                    schema[*second] = other.clone();
                    // Only that it is made without a fault of its own.
                    let _ = good(&schema, &mut Rng::with_seed(1));
                }
            }
        }
    }
}
