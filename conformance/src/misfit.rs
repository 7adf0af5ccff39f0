//! Values that do not fit a JSON Schema, each wrong in one way that the schema can express. What comes out is held against
//! the schema by whoever asked, so that what fits after all is left out.

use serde_json::{Map, Number, Value, json};

/// The longest text and the longest list that are made.
const TEXT_MAX: u64 = 100_000;
const ITEMS_MAX: u64 = 1000;
/// How far references are followed.
const REFERENCES_MAX: usize = 8;
/// A member that no schema names.
const UNKNOWN: &str = "reach_conformance_unknown";

/// A value that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Misfit {
    /// In which way, in words; of one way, one is enough.
    pub(crate) way: &'static str,
    /// Which member it is. None: all of it.
    pub(crate) member: Option<String>,
    pub(crate) value: Value,
}

impl Misfit {
    /// What is wrong, in words.
    pub(crate) fn words(&self) -> String {
        self.member.as_ref().map_or_else(|| format!("all of it {}", self.way), |name| format!("`{name}` {}", self.way))
    }
}

/// Values that are likely not to fit, the most blatant first. `good` is one that fits, if there is one.
pub(crate) fn all(schema: &Value, good: Option<&Value>) -> Vec<Misfit> {
    let top = resolved(schema, schema);
    let mut found = Vec::new();
    if let Some(Value::Object(members)) = good {
        for name in top["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let mut wrong = members.clone();
            if wrong.remove(name).is_some() {
                found.push(of_member("is missing", name, wrong));
            }
        }
        for (name, property) in properties(top, members) {
            for (way, value) in of_value(resolved(property, schema), members.get(name)) {
                let mut wrong = members.clone();
                wrong.insert(name.to_owned(), value);
                found.push(of_member(way, name, wrong));
            }
        }
        let mut wrong = members.clone();
        wrong.insert(UNKNOWN.to_owned(), json!(1));
        found.push(of_member("is a member that is not allowed", UNKNOWN, wrong));
    }
    let whole = of_value(top, good).into_iter();
    found.extend(whole.map(|(way, value)| Misfit { way, member: None, value }));
    if good.is_none() {
        let others = [json!([[1]]), json!({ "not": "this" }), json!("this is no such thing"), Value::Null];
        found.extend(others.into_iter().map(|value| Misfit { way: TYPE, member: None, value }));
    }
    found
}

const TYPE: &str = "is of another type";

fn of_member(way: &'static str, name: &str, members: Map<String, Value>) -> Misfit {
    Misfit { way, member: Some(name.to_owned()), value: Value::Object(members) }
}

/// The members that a schema tells of, and those that the value has beside them.
fn properties<'a>(schema: &'a Value, members: &'a Map<String, Value>) -> Vec<(&'a str, &'a Value)> {
    let told = schema["properties"].as_object();
    let mut found: Vec<(&str, &Value)> =
        told.into_iter().flatten().map(|(name, property)| (name.as_str(), property)).collect();
    let is_told = |name: &str| told.is_some_and(|told| told.contains_key(name));
    found.extend(members.keys().filter(|name| !is_told(name)).map(|name| (name.as_str(), &Value::Null)));
    // Those that must be there are the ones that everybody looks at.
    found.sort_by_key(|(name, _)| !members.contains_key(*name));
    found
}

/// What a reference leads to.
fn resolved<'a>(mut schema: &'a Value, root: &'a Value) -> &'a Value {
    for _ in 0..REFERENCES_MAX {
        let target = schema["$ref"].as_str().and_then(|to| to.strip_prefix('#')).and_then(|to| root.pointer(to));
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

fn of_value(schema: &Value, good: Option<&Value>) -> Vec<(&'static str, Value)> {
    let mut found = vec![(TYPE, other_type(schema, good))];
    found.extend(of_choice(schema).map(|value| ("is none of the values that there are", value)));
    found.extend(of_number(schema, good));
    found.extend(of_text(schema));
    found.extend(of_list(schema, good));
    found
}

/// One of another type. None that some readers take for the same, as a text with digits for a number.
fn other_type(schema: &Value, good: Option<&Value>) -> Value {
    match good {
        Some(Value::Object(_) | Value::Array(_)) => json!("this is no such thing"),
        Some(Value::String(_) | Value::Null) => json!([[1]]),
        Some(Value::Number(_) | Value::Bool(_)) => json!({ "not": "this" }),
        None => match schema["type"].as_str() {
            Some("object" | "array") => json!("this is no such thing"),
            Some("integer" | "number" | "boolean") => json!({ "not": "this" }),
            Some(_) | None => json!([[1]]),
        },
    }
}

fn of_choice(schema: &Value) -> Option<Value> {
    let choices: Vec<&Value> = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const")).collect();
    let is_text = |value: &&Value| value.is_string();
    if !choices.is_empty() && choices.iter().all(is_text) {
        return Some(json!("reach-conformance-no-such-value"));
    }
    let most = choices.iter().map(|value| value.as_i64()).collect::<Option<Vec<_>>>()?.into_iter().max()?;
    most.checked_add(1).map(Value::from)
}

/// Past a bound by this much.
fn past(bound: &Value, by: i64) -> Option<Value> {
    let whole = bound.as_i64().map(i128::from).or_else(|| bound.as_u64().map(i128::from));
    match whole {
        Some(whole) => number(whole + i128::from(by)),
        None => Number::from_f64(bound.as_f64()?.round() + by as f64 * 2.0).map(Value::Number),
    }
}

/// A whole number, if it can be written to the digit.
pub(crate) fn number(whole: i128) -> Option<Value> {
    i64::try_from(whole).map(Value::from).or_else(|_| u64::try_from(whole).map(Value::from)).ok()
}

fn of_number(schema: &Value, good: Option<&Value>) -> Vec<(&'static str, Value)> {
    let bounds = [
        ("minimum", "is too small", -1),
        ("exclusiveMinimum", "is too small", 0),
        ("maximum", "is too large", 1),
        ("exclusiveMaximum", "is too large", 0),
    ];
    let mut found: Vec<_> =
        bounds.into_iter().filter_map(|(name, way, by)| Some((way, past(schema.get(name)?, by)?))).collect();
    let is_coarse = schema["multipleOf"].as_i64().is_some_and(|step| step > 1);
    let next = good.and_then(Value::as_i64).and_then(|good| good.checked_add(1)).filter(|_| is_coarse);
    found.extend(next.map(|next| ("is no multiple", json!(next))));
    found
}

fn of_text(schema: &Value) -> Vec<(&'static str, Value)> {
    let text = |length: u64| json!("x".repeat(usize::try_from(length).unwrap_or_default()));
    let mut found = Vec::new();
    if let Some(least @ 1..=TEXT_MAX) = schema["minLength"].as_u64() {
        found.push(("is too short", text(least - 1)));
    }
    if let Some(most @ 0..=TEXT_MAX) = schema["maxLength"].as_u64() {
        found.push(("is too long", text(most + 1)));
    }
    if schema["pattern"].is_string() {
        let odd = ["!?", "reach conformance", "0", "\u{1}"];
        found.extend(odd.into_iter().map(|odd| ("does not match the pattern", json!(odd))));
    }
    found
}

fn of_list(schema: &Value, good: Option<&Value>) -> Vec<(&'static str, Value)> {
    let Some(items) = good.and_then(Value::as_array) else { return Vec::new() };
    let mut found = Vec::new();
    if schema["minItems"].as_u64().is_some_and(|least| least > 0) {
        let short = items.len().saturating_sub(1);
        found.push(("has too few items", json!(items[..short])));
        found.push(("has too few items", json!([])));
    }
    let Some(first) = items.first() else { return found };
    if let Some(most @ 0..=ITEMS_MAX) = schema["maxItems"].as_u64() {
        found.push(("has too many items", (0..=most).map(|_| first.clone()).collect()));
    }
    if schema["uniqueItems"] == true {
        found.push(("has an item twice", json!([first, first])));
    }
    if let Some(of_item) = schema.get("items").filter(|_| items.len() < 100) {
        let wrong = std::iter::once(other_type(of_item, Some(first))).chain(items.iter().skip(1).cloned());
        found.push(("has an item of another type", wrong.collect()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &Value, good: Option<Value>, ways: &[&str]) {
        let validator = crate::schema::compile(schema).unwrap();
        assert!(good.as_ref().is_none_or(|good| validator.is_valid(good)));
        let mut found: Vec<&str> = Vec::new();
        for misfit in all(schema, good.as_ref()) {
            if !validator.is_valid(&misfit.value) && !found.contains(&misfit.way) {
                found.push(misfit.way);
            }
        }
        assert_eq!(found, ways, "{schema}");
    }

    #[test]
    fn each_fault_that_a_schema_can_express_is_made() {
        let object = json!({
            "type": "object", "required": ["ms"], "additionalProperties": false,
            "properties": { "ms": { "type": "integer", "minimum": 0, "maximum": 5000 }, "kind": { "enum": ["a", "b"] } },
        });
        let ways = [
            "is missing",
            TYPE,
            "is too small",
            "is too large",
            "is none of the values that there are",
            "is a member that is not allowed",
        ];
        check(&object, Some(json!({ "ms": 5 })), &ways);
        let text = json!({ "$defs": { "t": { "type": "string", "minLength": 2, "maxLength": 3, "pattern": "^[a-z]+$" } }, "$ref": "#/$defs/t" });
        check(&text, Some(json!("ab")), &[TYPE, "is too short", "is too long", "does not match the pattern"]);
        let list = json!({ "type": "array", "minItems": 1, "maxItems": 2, "uniqueItems": true, "items": { "type": "string" } });
        let ways =
            [TYPE, "has too few items", "has too many items", "has an item twice", "has an item of another type"];
        check(&list, Some(json!(["a"])), &ways);
        let coarse = json!({ "type": "integer", "multipleOf": 5, "exclusiveMaximum": 20 });
        check(&coarse, Some(json!(10)), &[TYPE, "is too large", "is no multiple"]);
    }

    #[test]
    fn without_a_good_value_there_are_bad_ones_and_bounds_at_the_edge_break_nothing() {
        check(&json!({ "type": "string", "pattern": "^[A-Z]{3}$" }), None, &[TYPE, "does not match the pattern"]);
        check(&json!(true), None, &[]);
        for bound in [json!(u64::MAX), json!(i64::MIN), json!(i64::MAX), json!(1e300), json!(-1e300)] {
            for name in ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "const"] {
                let mut schema = json!({ "type": "integer" });
                schema[name] = bound.clone();
                // Only that it is made without a fault of its own.
                let _ = all(&schema, Some(&json!(i64::MAX)));
            }
        }
    }
}
