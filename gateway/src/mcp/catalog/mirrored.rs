//! Arguments that a tool wants mirrored in headers (`x-mcp-header`; 2026-07-28, Custom Headers from Tool Parameters), so that
//! whoever stands in between can route by them without reading the body.

use serde_json::Value;

use crate::mcp::wire::header::{PARAM_PREFIX, decode};

/// The annotation of a property.
const ANNOTATION: &str = "x-mcp-header";
/// How deep properties are looked into.
const DEPTH_MAX: usize = 16;

/// One argument, and the header that says the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirrored {
    /// The header, in small letters.
    pub(crate) header: String,
    /// Where the argument stands.
    path: Vec<String>,
}

/// All that a schema wants mirrored. Only what is reached by `properties` alone counts.
pub(super) fn of_schema(schema: &str) -> Vec<Mirrored> {
    // Nearly no schema has any.
    if !schema.contains(ANNOTATION) {
        return Vec::new();
    }
    let mut found = Vec::new();
    if let Ok(schema) = serde_json::from_str(schema) {
        collect(&schema, &mut Vec::new(), &mut found);
    }
    found
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirrored>) {
    if path.len() > DEPTH_MAX {
        return;
    }
    if let Some(name) = schema[ANNOTATION].as_str().filter(|_| !path.is_empty()) {
        found.push(Mirrored { header: format!("{PARAM_PREFIX}{}", name.to_ascii_lowercase()), path: path.clone() });
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        collect(property, path, found);
        path.pop();
    }
}

impl Mirrored {
    /// What is wrong between the header, as it was sent, and the arguments.
    pub(crate) fn mismatch(&self, said: Option<&str>, arguments: &Value) -> Option<String> {
        let meant =
            self.path.iter().try_fold(arguments, |value, name| value.get(name)).filter(|value| !value.is_null());
        let header = &self.header;
        match (said, meant) {
            (None, None) => None,
            (None, Some(_)) => Some(format!("the header {header} is missing")),
            (Some(_), None) => Some(format!("the header {header} says something that the arguments do not")),
            (Some(said), Some(meant)) => match decode(said) {
                None => Some(format!("the header {header} is not in the base64 that it claims to be in")),
                Some(said) if is_same(&said, meant) => None,
                Some(said) => Some(format!("the header {header} says {said:?}, and the body {meant}")),
            },
        }
    }
}

fn is_same(said: &str, meant: &Value) -> bool {
    match meant {
        Value::String(text) => said == text,
        Value::Bool(value) => said == if *value { "true" } else { "false" },
        // 42.0 and 42 are one integer.
        Value::Number(number) => said.parse::<f64>().ok() == number.as_f64(),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_properties_lead_to_is_mirrored() {
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "inner": { "properties": { "n": { "type": "integer", "x-mcp-header": "N" } } },
            "list": { "items": { "x-mcp-header": "No" } },
        }, "oneOf": [{ "properties": { "x": { "x-mcp-header": "No" } } }] });
        let mut found = of_schema(&schema.to_string());
        found.sort_by(|a, b| a.header.cmp(&b.header));
        let told: Vec<_> = found.iter().map(|one| (one.header.as_str(), one.path.join("."))).collect();
        assert_eq!(told, [("mcp-param-n", "inner.n".to_owned()), ("mcp-param-region", "region".to_owned())]);
        assert!(of_schema("{}").is_empty());
    }

    #[test]
    fn a_header_says_what_the_argument_is() {
        let mirrored = Mirrored { header: "mcp-param-r".to_owned(), path: vec!["r".to_owned()] };
        let fits = |said: Option<&str>, meant: Value| mirrored.mismatch(said, &json!({ "r": meant })).is_none();
        assert!(
            fits(Some("a b"), json!("a b")) && fits(Some("=?base64?w6Q=?="), json!("ä")) && fits(None, json!(null))
        );
        assert!(fits(Some("42.0"), json!(42)) && fits(Some("true"), json!(true)));
        assert!(!fits(None, json!("a")) && !fits(Some("b"), json!("a")) && !fits(Some("a"), json!(null)));
        assert!(!fits(Some("=?base64?%?="), json!("a")) && !fits(Some("True"), json!(true)));
    }
}
