//! The OpenAPI document says what is so.

use std::collections::BTreeSet;
use std::path::PathBuf;

use reach_gateway::rest::openapi;
use reqwest::Method;
use serde_json::{Value, json};

use crate::common::start;
use crate::common::web::Web;

const COMMAND: &str = "UPDATE_SCHEMAS=1 cargo test --workspace --test wire openapi";

fn committed() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../schemas/openapi.json")
}

#[test]
fn the_committed_document_is_the_one_that_is_served() {
    let text = openapi::text();
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(committed(), &text).unwrap();
    }
    let is_current = std::fs::read_to_string(committed()).is_ok_and(|committed| committed == text);
    assert!(is_current, "schemas/openapi.json is not current; to write it anew, run\n    {COMMAND}");
}

#[tokio::test]
async fn every_documented_route_is_served_and_no_other_method_is() {
    let running = start().await;
    let web = Web::new(&running);
    let document = web.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.1");
    for (path, operations) in document["paths"].as_object().unwrap() {
        let address = path.replace("{id}", "x").replace("{name}", "internal");
        let documented: BTreeSet<String> =
            operations.as_object().unwrap().keys().map(|verb| verb.to_ascii_uppercase()).collect();
        for verb in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let reply = web.ask(verb.clone(), &address, &[], None).await;
            if documented.contains(verb.as_str()) {
                assert!(!matches!(reply.status, 404 | 405 | 500), "{verb} {path}: {reply:?}");
                continue;
            }
            assert_eq!(reply.status, 405, "{verb} {path}");
            let allowed: BTreeSet<String> = reply.header("allow").split(',').map(str::to_owned).collect();
            let allowed: BTreeSet<String> = allowed.into_iter().filter(|verb| verb != "HEAD").collect();
            assert_eq!(allowed, documented, "{path}");
        }
    }
}

/// Every reference within a value.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_operation_is_named_once() {
    let document = openapi::document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for reference in found {
        let target = document.pointer(reference.strip_prefix('#').unwrap());
        assert!(target.is_some(), "{reference} leads nowhere");
    }
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    let names: Vec<_> = operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
}

#[test]
fn queries_and_bodies_are_those_of_the_methods() {
    let document = openapi::document();
    let submit = &document["paths"]["/tasks"]["post"];
    assert_eq!(
        submit["requestBody"]["content"]["application/json"]["schema"],
        json!({ "$ref": "#/components/schemas/Submit" })
    );
    let named = |operation: &Value| -> Vec<String> {
        let parameters = operation["parameters"].as_array().unwrap();
        parameters.iter().map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(named(submit), ["Idempotency-Key", "traceparent"]);
    let mut listed = named(&document["paths"]["/tasks"]["get"]);
    listed.sort_unstable();
    assert_eq!(listed, ["agent_id", "before", "limit", "phase"]);
}
