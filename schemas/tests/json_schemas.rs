//! Writes the JSON Schemas in `schemas/json/` from the types, and holds the committed ones to them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test, in its parts as well")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use reach_schemas::{
    AgentCard, Capability, Decision, Delivery, ErrorCode, Explanation, Failure, Method, Permission, RawJson, Submit,
    TaskView, WebhookEvent,
    call::{ErrorData, HealthReport},
};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

const COMMAND: &str = "UPDATE_SCHEMAS=1 cargo test --workspace --test json_schemas";
const DEFINITIONS: &str = "#/$defs/";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("json")
}

/// The name of the type that a schema refers to.
fn referred(schema: &Value) -> String {
    let target = schema["$ref"].as_str().expect("every root is a named type");
    target.strip_prefix(DEFINITIONS).expect("references stay within the document").to_owned()
}

/// Collects the names of all definitions that a schema needs, those of its definitions included.
fn needed(schema: &Value, definitions: &serde_json::Map<String, Value>, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            let target = members.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix(DEFINITIONS));
            if let Some(name) = target
                && names.insert(name.to_owned())
            {
                needed(&definitions[name], definitions, names);
            }
            members.values().for_each(|member| needed(member, definitions, names));
        }
        Value::Array(items) => items.iter().for_each(|item| needed(item, definitions, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
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

fn written(value: Value) -> String {
    let mut text = serde_json::to_string_pretty(&sorted(value)).unwrap();
    text.push('\n');
    text
}

/// One document that stands alone: the type's schema with the definitions that it needs.
fn document(name: &str, definitions: &serde_json::Map<String, Value>) -> Value {
    let mut document = definitions[name].clone();
    let mut names = BTreeSet::new();
    needed(&document, definitions, &mut names);
    document["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    document["title"] = json!(name);
    if !names.is_empty() {
        let parts: serde_json::Map<_, _> =
            names.into_iter().map(|name| (name.clone(), definitions[&name].clone())).collect();
        document["$defs"] = Value::Object(parts);
    }
    document
}

const fn permission(method: Method) -> &'static str {
    match method.permission() {
        Permission::Serve => "serve",
        Permission::Discover => "discover",
        Permission::Call => "call",
        Permission::OwnTask => "own_task",
        Permission::EndTask => "end_task",
        Permission::Enrol => "enrol",
        Permission::View => "view",
        Permission::Operate => "operate",
        Permission::Administer => "administer",
    }
}

/// Types that stand alone beside the parameters and results of the methods.
fn others(generator: &mut SchemaGenerator) -> Vec<String> {
    fn name<T: JsonSchema>(generator: &mut SchemaGenerator) -> String {
        referred(generator.subschema_for::<T>().as_value())
    }
    vec![
        name::<AgentCard>(generator),
        name::<Capability>(generator),
        name::<Decision>(generator),
        name::<Delivery>(generator),
        name::<ErrorData>(generator),
        name::<Explanation>(generator),
        name::<Failure>(generator),
        name::<HealthReport>(generator),
        name::<Submit>(generator),
        name::<TaskView>(generator),
        name::<WebhookEvent>(generator),
    ]
}

fn errors() -> Value {
    let row = |code: &ErrorCode| {
        json!({
            "number": code.number(), "name": code.name(), "outcome": code.outcome(),
            "http_status": code.http_status(), "fault": code.fault(), "retry": code.retry(),
        })
    };
    json!({ "errors": ErrorCode::ALL.iter().map(row).collect::<Vec<_>>() })
}

/// Every generated file by its name.
fn files() -> BTreeMap<String, String> {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut roots: BTreeSet<String> = others(&mut generator).into_iter().collect();
    let mut methods = Vec::new();
    for method in Method::ALL {
        let (params, result) = method.schemas(&mut generator);
        let (params, result) = (referred(params.as_value()), referred(result.as_value()));
        methods.push(json!({
            "name": method.name(),
            "permission": permission(*method),
            "summary": method.summary(),
            "params": { "$ref": format!("{params}.json") },
            "result": { "$ref": format!("{result}.json") },
        }));
        roots.extend([params, result]);
    }
    let definitions = generator.take_definitions(true);
    let mut files: BTreeMap<_, _> =
        roots.into_iter().map(|name| (format!("{name}.json"), written(document(&name, &definitions)))).collect();
    files.insert("methods.json".to_owned(), written(json!({ "methods": methods })));
    files.insert("errors.json".to_owned(), written(errors()));
    files
}

fn committed() -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(folder()) else { return BTreeMap::new() };
    let read = |path: PathBuf| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap())
    };
    entries.map(|entry| read(entry.unwrap().path())).collect()
}

/// Makes the folder hold these files and no others.
fn update(files: &BTreeMap<String, String>) {
    std::fs::create_dir_all(folder()).unwrap();
    for name in committed().keys().filter(|name| !files.contains_key(*name)) {
        std::fs::remove_file(folder().join(name)).unwrap();
    }
    for (name, text) in files {
        std::fs::write(folder().join(name), text).unwrap();
    }
}

/// The first file that is missing, left over or old, if there is one.
fn difference(committed: &BTreeMap<String, String>, current: &BTreeMap<String, String>) -> Option<String> {
    let names: BTreeSet<_> = committed.keys().chain(current.keys()).collect();
    names.into_iter().find(|name| committed.get(*name) != current.get(*name)).cloned()
}

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    let files = files();
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        update(&files);
    }
    if let Some(name) = difference(&committed(), &files) {
        panic!("schemas/json/{name} is not current; to write all of them anew, run\n    {COMMAND}");
    }
}

#[test]
fn a_missing_an_old_and_a_left_over_file_are_all_noticed() {
    let files = |entries: &[(&str, &str)]| -> BTreeMap<String, String> {
        entries.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    };
    let current = files(&[("A.json", "1"), ("B.json", "1")]);
    assert_eq!(difference(&current, &current), None);
    assert_eq!(difference(&files(&[("A.json", "1")]), &current).as_deref(), Some("B.json"));
    assert_eq!(difference(&files(&[("A.json", "0"), ("B.json", "1")]), &current).as_deref(), Some("A.json"));
    assert_eq!(difference(&current, &files(&[("A.json", "1")])).as_deref(), Some("B.json"));
}

#[test]
fn every_file_is_a_json_schema_that_stands_alone() {
    for (name, text) in files().iter().filter(|(name, _)| !matches!(name.as_str(), "methods.json" | "errors.json")) {
        let schema: Value = serde_json::from_str(text).unwrap();
        jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn the_method_table_refers_to_files_that_exist() {
    let files = files();
    let table: Value = serde_json::from_str(&files["methods.json"]).unwrap();
    for method in table["methods"].as_array().unwrap() {
        for part in ["params", "result"] {
            let file = method[part]["$ref"].as_str().unwrap();
            assert!(files.contains_key(file), "{} of {} names {file}", part, method["name"]);
        }
    }
}

#[test]
fn schemas_and_types_agree_on_the_vectors() {
    let files = files();
    for set in support::sets() {
        let schema: Value = serde_json::from_str(&files[&format!("{}.json", set.r#type)]).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        // The validator reads numbers as floats, so one beyond every float is brought within reach first.
        let fits = |body: &RawJson| validator.is_valid(&body.get().replace("1E400", "1E300").parse().unwrap());
        for good in &set.good {
            assert!(fits(&good.body), "{}: the schema refuses that {}", set.r#type, good.claim);
        }
        for bad in &set.bad {
            let refused = !fits(&bad.body);
            assert_eq!(refused, bad.refused_by.schema(), "{}: does the schema refuse that {}?", set.r#type, bad.claim);
        }
    }
}
