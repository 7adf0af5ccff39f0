//! Tables of fields in the documentation, held to the schemas: no field is missing, none is made up, and those that must be
//! there are said to be.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const WRITE_AN_AGENT: &str = include_str!("../../docs/write-an-agent.md");
const METHODS: &str = include_str!("../json/methods.json");

/// What a table must say of a method: the fields that must be there, and those that may.
type Fields = (BTreeSet<String>, BTreeSet<String>);

fn fields_of(method: &str) -> Fields {
    let methods: Value = serde_json::from_str(METHODS).unwrap();
    let row = methods["methods"].as_array().unwrap().iter().find(|row| row["name"] == method);
    let file = row.unwrap_or_else(|| panic!("there is no method {method}"))["params"]["$ref"].as_str().unwrap();
    let path = format!("{}/json/{file}", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let all: BTreeSet<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
    let must = schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap().to_owned());
    let must: BTreeSet<String> = must.collect();
    let may = all.difference(&must).cloned().collect();
    (must, may)
}

/// The fields that a cell names: `field`, or `field` and a colon and what it means, with `; ` between.
fn named(cell: &str) -> BTreeSet<String> {
    let items = cell.split("; ").map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| item.split('`').nth(1).unwrap_or_else(|| panic!("no field in {item:?}")).to_owned()).collect()
}

/// The rows of the tables whose first column is a method.
fn told(page: &str) -> BTreeMap<String, Fields> {
    let methods: BTreeSet<String> = {
        let methods: Value = serde_json::from_str(METHODS).unwrap();
        methods["methods"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let method = cells.next()?.trim_matches('`').to_owned();
        let (must, may) = (cells.next()?, cells.next()?);
        methods.contains(&method).then(|| (method, (named(must), named(may))))
    });
    rows.collect()
}

#[test]
fn the_fields_of_what_agents_and_people_say_are_those_of_the_schemas() {
    let told = told(WRITE_AN_AGENT);
    for method in
        ["task/claim", "task/accept", "task/progress", "task/complete", "task/fail", "task/release", "agent/heartbeat"]
            .into_iter()
            .chain(["human/list", "human/take", "human/answer", "human/refuse", "human/return"])
    {
        assert!(told.contains_key(method), "no table tells the fields of {method}");
    }
    for (method, fields) in &told {
        assert_eq!(*fields, fields_of(method), "what must be there and what may, of {method}");
    }
}
