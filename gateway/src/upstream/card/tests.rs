//! What becomes of tools.

use reach_core::fleet::Checked;
use serde_json::{Value, json};

use super::*;
use crate::mcp::wire::Revision;
use crate::upstream::greeting::Greeting;

fn catalogue(tools: &[Value]) -> Catalogue {
    Catalogue {
        greeting: Greeting {
            revision: Revision::NEWEST,
            title: Some("Files".to_owned()),
            version: Some("1.2".to_owned()),
            instructions: Some("Works on files.".to_owned()),
            has_tools: true,
            has_prompts: true,
            has_resources: false,
        },
        tools: tools.iter().map(|tool| RawJson::of(tool).unwrap()).collect(),
        prompts: vec!["summarize".to_owned()],
        resources: Vec::new(),
        warnings: Vec::new(),
    }
}

fn spec(card: &Value) -> ServerSpec {
    serde_json::from_value(json!({ "name": "files", "url": "http://127.0.0.1:1/mcp", "card": card })).unwrap()
}

fn tool(name: &str, hints: &Value) -> Value {
    json!({ "name": name, "description": format!("does {name}"), "inputSchema": { "type": "object" }, "annotations": hints })
}

#[test]
fn a_card_is_made_of_what_a_server_says() {
    let odd = r#"{"name":"odd","inputSchema":{"type":"object","properties":{"b":{},"a":{}}},"vendor":{"n":1.10}}"#;
    let mut catalogue = catalogue(&[
        tool("read", &json!({ "readOnlyHint": true })),
        tool("put", &json!({ "idempotentHint": true })),
        tool("send", &json!({ "readOnlyHint": false, "destructiveHint": false })),
    ]);
    catalogue.tools.push(RawJson::parse(odd).unwrap());
    let made = cards(&spec(&json!({})), &catalogue);
    let [card] = made.cards.as_slice() else { panic!("{made:?}") };
    assert_eq!((card.agent_id.as_str(), card.version.as_str()), ("files@mcp", "1.2"));
    assert_eq!(card.description, "Works on files.\nPrompts: summarize.");
    assert_eq!(card.endpoints[0].address, "server:files");
    let effects: Vec<Effect> = card.capabilities.iter().map(|capability| capability.effect).collect();
    assert_eq!(effects, [Effect::Read, Effect::IdempotentWrite, Effect::Write, Effect::Write]);
    assert_eq!(card.capabilities[3].tool.as_ref().unwrap().get(), odd, "as the server wrote it");
    assert_eq!(
        card.capabilities[3].input_schema.as_ref().unwrap().get(),
        r#"{"type":"object","properties":{"b":{},"a":{}}}"#
    );
    assert!(made.warnings.is_empty(), "{:?}", made.warnings);
    Checked::new(card.clone()).unwrap();
}

#[test]
fn a_tool_that_is_wrong_costs_no_other_its_place() {
    let tools = [
        json!({ "name": "no_schema" }),
        json!({ "name": "bad_schema", "inputSchema": { "type": "object", "properties": { "x": { "pattern": "(" } } } }),
        json!({ "inputSchema": {} }),
        json!(7),
        tool("twice", &json!({})),
        tool("twice", &json!({})),
        json!({ "name": "old", "inputSchema": { "$schema": "http://json-schema.org/draft-07/schema#", "type": "object" } }),
    ];
    let made = cards(&spec(&json!({})), &catalogue(&tools));
    let offered: Vec<(&str, bool)> = made.cards[0]
        .capabilities
        .iter()
        .map(|capability| (capability.name.as_str(), capability.input_schema.is_some()))
        .collect();
    assert_eq!(offered, [("bad_schema", false), ("twice", true), ("old", true)]);
    assert_eq!(made.warnings.len(), 5, "{:?}", made.warnings);
    Checked::new(made.cards[0].clone()).unwrap();
}

#[test]
fn more_tools_than_a_card_holds_are_offered_by_more_agents() {
    let tools: Vec<Value> = (0..600).map(|at| tool(&format!("tool_{at}"), &json!({}))).collect();
    let made = cards(&spec(&json!({})), &catalogue(&tools));
    let agents: Vec<&str> = made.cards.iter().map(|card| card.agent_id.as_str()).collect();
    assert_eq!(agents, ["files@mcp", "files.2@mcp", "files.3@mcp"]);
    assert_eq!(made.cards.iter().map(|card| card.capabilities.len()).sum::<usize>(), 600);
    assert!(made.warnings[0].contains("files.2@mcp"), "{:?}", made.warnings);
}

#[test]
fn what_the_owner_says_stands_and_what_does_not_agree_is_told() {
    let overlay = json!({
        "description": "Ours.", "priority": 7, "tags": ["files"],
        "capabilities": [
            { "name": "Read All", "tier": "long", "exclusions": ["does not read mail"], "routing_weight": 90 },
            { "name": "send", "effect": "read" },
            { "name": "secret", "hidden": true },
            { "name": "gone" },
        ],
    });
    let tools =
        [tool("Read All", &json!({ "readOnlyHint": true })), tool("send", &json!({})), tool("secret", &json!({}))];
    let made = cards(&spec(&overlay), &catalogue(&tools));
    let card = &made.cards[0];
    assert_eq!((card.description.as_str(), card.priority), ("Ours.", 7));
    let names: Vec<&str> = card.capabilities.iter().map(|capability| capability.name.as_str()).collect();
    assert_eq!(names, ["read_all", "send"]);
    assert_eq!(card.capabilities[0].routing_weight, 90);
    assert_eq!(card.capabilities[1].effect, Effect::Read);
    let told = made.warnings.join("\n");
    assert!(told.contains("tool send: the card by hand says read, by the server's hints it is write"), "{told}");
    assert!(told.contains("\"gone\""), "{told}");
    let made = cards(&spec(&json!({ "only_named": true, "capabilities": [{ "name": "send" }] })), &catalogue(&tools));
    assert_eq!(made.cards[0].capabilities.len(), 1);
}
