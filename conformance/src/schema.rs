//! The published schemas, and what does not fit them, in words.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

/// How many complaints are told at once.
const COMPLAINTS_MAX: usize = 5;

macro_rules! published {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../schemas/json/", $name, ".json")))),*]
    };
}

/// The schemas that are held against what agents and gateways send.
const PUBLISHED: &[(&str, &str)] = published![
    "Accept",
    "AgentCard",
    "AgentRef",
    "AgentView",
    "Agents",
    "Capabilities",
    "Claim",
    "Claimed",
    "Complete",
    "Delivery",
    "Drained",
    "ErrorData",
    "Explanation",
    "Fail",
    "HealthReport",
    "Heartbeat",
    "HeartbeatAnswer",
    "Noted",
    "Progress",
    "Registered",
    "Release",
    "Resolved",
    "TaskView",
    "Tasks",
];

/// Holds a value against the published schema of this name.
pub(crate) fn fits(name: &'static str, value: &Value) -> Result<(), String> {
    static COMPILED: OnceLock<BTreeMap<&str, Validator>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| PUBLISHED.iter().map(|(name, text)| (*name, published(text))).collect());
    complaints(&compiled[name], value)
}

fn published(text: &str) -> Validator {
    let schema = serde_json::from_str(text).expect("published schemas are JSON");
    jsonschema::draft202012::new(&schema).expect("published schemas are schemas")
}

/// A schema of somebody's own.
pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
        return Err(format!("at {}: {error}", place(&error.instance_path().to_string())));
    }
    jsonschema::draft202012::new(schema).map_err(|error| format!("it cannot be used: {error}"))
}

/// What does not fit, with its places.
pub(crate) fn complaints(validator: &Validator, value: &Value) -> Result<(), String> {
    let mut found: Vec<String> = validator
        .iter_errors(value)
        .take(COMPLAINTS_MAX)
        .map(|error| format!("at {}: {error}", place(&error.instance_path().to_string())))
        .collect();
    found.dedup();
    if found.is_empty() { Ok(()) } else { Err(found.join("; ")) }
}

fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "the top" } else { pointer }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        assert_eq!(fits("Heartbeat", &json!({ "agent_id": "a@n", "current_load": 1 })), Ok(()));
        let wrong = fits("Heartbeat", &json!({ "agent_id": "a@n", "current_load": "1" })).unwrap_err();
        assert!(wrong.contains("/current_load"), "{wrong}");
        for (name, _) in PUBLISHED {
            // Compiling one compiles all.
            let _ = fits(name, &json!({}));
        }
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        assert!(compile(&json!({ "type": "object" })).is_ok());
        assert!(compile(&json!({ "type": "objekt" })).unwrap_err().contains("/type"));
    }
}
