//! The OpenAPI 3.1 document of the port, made of the table of routes, the table of methods and the types themselves,
//! so that it cannot tell anything that is not so.

mod operation;

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::problem::Problem;
use super::routes::ROUTES;

/// Where the document keeps its schemas.
const SCHEMAS: &str = "/components/schemas";

/// The document as text, indented, with its keys in order.
#[must_use]
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(&sorted(document())).expect("a document is JSON");
    text.push('\n');
    text
}

/// The document.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = SCHEMAS.into());
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<Problem>();
    let described: Vec<_> = ROUTES.iter().map(|route| operation::Described::new(route, &mut generator)).collect();
    let schemas = generator.take_definitions(true);
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for (route, described) in ROUTES.iter().zip(described) {
        let verb = route.verb.as_str().to_ascii_lowercase();
        paths.entry(route.path).or_default().insert(verb, described.into_json(&schemas));
    }
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Agent-Reach",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Finds the agent that can do what is wanted, gets the request there once, and brings back a result or an explained failure.",
            "description": "These routes and the JSON-RPC methods at `/rpc` are the same calls; `x-method` names the method of each. Every error is a problem body (RFC 9457) whose `type` is the address of a page that says what to do.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:7340", "description": "Where a gateway listens unless told otherwise." }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {
                "Problem": {
                    "description": "What is wrong, whose fault it is, and what to do.",
                    "headers": { "Retry-After": {
                        "description": "When to try again, at the earliest, in seconds.",
                        "schema": { "type": "integer" },
                    } },
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
        },
    })
}

/// Puts all keys in order, whatever order the JSON library keeps in this build.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members.into_iter().map(|(key, member)| (key, sorted(member))).collect();
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// The reference to the schema of a type.
fn schema_of<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}
