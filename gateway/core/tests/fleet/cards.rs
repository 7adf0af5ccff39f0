//! What a card may say: the vectors of `schemas/vectors/AgentCard.json` that a registration decides, and what they
//! cannot hold.

use reach_core::fleet::{CardError, Checked, Fleet, MISTAKES_MAX, Settings};
use reach_schemas::card::limits::{CAPABILITIES_MAX, PATTERNS_MAX, STATIC_MAX, TEXT_MAX};
use reach_schemas::{AgentCard, FallbackStep, RawJson, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::player::capability;

const VECTORS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/vectors/AgentCard.json"));

#[derive(Deserialize)]
struct Vectors {
    good: Vec<Good>,
    bad: Vec<Bad>,
}

#[derive(Deserialize)]
struct Good {
    claim: String,
    body: Value,
}

#[derive(Deserialize)]
struct Bad {
    claim: String,
    body: Value,
    at: String,
    says: String,
    #[serde(default)]
    refused_by: String,
}

fn vectors() -> Vectors {
    serde_json::from_str(VECTORS).unwrap()
}

fn card(body: Value) -> AgentCard {
    serde_json::from_value(body).unwrap()
}

fn refused(card: AgentCard) -> CardError {
    Checked::new(card).unwrap_err()
}

#[test]
fn every_good_card_is_taken() {
    for good in vectors().good {
        if let Err(error) = Checked::new(card(good.body)) {
            panic!("{}: {error}", good.claim);
        }
    }
}

#[test]
fn every_bad_card_is_refused_for_one_reason_that_says_where() {
    let bad = vectors().bad.into_iter().filter(|bad| bad.refused_by.starts_with("registration"));
    let mut wrong = Vec::new();
    let mut seen = 0;
    for bad in bad {
        seen += 1;
        let told: Vec<(String, String)> = match Checked::new(card(bad.body)) {
            Ok(_) => Vec::new(),
            Err(error) => error.mistakes.into_iter().map(|mistake| (mistake.at, mistake.says)).collect(),
        };
        if told != [(bad.at, bad.says)] {
            wrong.push(format!("{}: {told:#?}", bad.claim));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 40, "the vectors were read: {seen}");
}

#[test]
fn all_that_is_wrong_is_told_at_once_up_to_a_bound() {
    let error = refused(card(json!({
        "agent_id": "a@n", "priority": 11,
        "capabilities": [{ "name": "x", "timeout": "0s", "input_schema": 1 }],
    })));
    let places: Vec<&str> = error.mistakes.iter().map(|mistake| mistake.at.as_str()).collect();
    assert_eq!(places, ["priority", "capabilities[0].timeout", "capabilities[0].input_schema of x"]);
    assert!(!error.is_of_schemas() && error.to_string().starts_with("priority: is above 9; capabilities[0].timeout: "));

    let many = AgentCard {
        tags: vec!["t".repeat(300); MISTAKES_MAX + 5],
        ..card(json!({ "agent_id": "a@n", "capabilities": [{ "name": "x" }] }))
    };
    let error = refused(many);
    assert_eq!((error.mistakes.len(), error.untold), (MISTAKES_MAX, 5));
    assert!(error.to_string().ends_with("; and 5 more"), "{error}");
}

#[test]
fn a_card_that_is_right_but_for_its_schemas_is_told_apart() {
    let wrong = |field: &str| json!({ "agent_id": "a@n", "capabilities": [{ "name": "x", field: { "type": 7 } }] });
    assert!(refused(card(wrong("input_schema"))).is_of_schemas());
    assert!(refused(card(wrong("output_schema"))).is_of_schemas());
}

#[test]
fn what_is_too_large_for_a_vector_is_refused_too() {
    let check = |change: &dyn Fn(&mut AgentCard), at: &str, says: &str| {
        let mut card = card(json!({ "agent_id": "a@n", "capabilities": [{ "name": "x" }] }));
        change(&mut card);
        assert_eq!(refused(card).to_string(), format!("{at}: {says}"));
    };
    let names = |count: usize| (0..count).map(|number| capability(&format!("c{number}"))).collect::<Vec<_>>();
    let text = "t".repeat(TEXT_MAX + 1);
    let long = "has 4097 bytes, at most 4096 are taken";
    check(
        &|card| card.capabilities = names(CAPABILITIES_MAX + 1),
        "capabilities",
        "has 257 entries, at most 256 are taken",
    );
    check(&|card| card.description.clone_from(&text), "description", long);
    check(&|card| card.capabilities[0].description.clone_from(&text), "capabilities[0].description", long);
    check(&|card| card.capabilities[0].exclusions.push(text.clone()), "capabilities[0].exclusions[0]", long);
    let instruction = || vec![FallbackStep::Instruction(text.clone())];
    check(&|card| card.capabilities[0].fallback = instruction(), "capabilities[0].fallback[0].instruction", long);
    let fixed = RawJson::of(&"t".repeat(STATIC_MAX)).unwrap();
    let fixed = || vec![FallbackStep::Static(fixed.clone())];
    let large = "has 65538 bytes, at most 65536 are taken";
    check(&|card| card.capabilities[0].fallback = fixed(), "capabilities[0].fallback[0].static", large);
    let patterns = || Some(vec!["*@n".parse().unwrap(); PATTERNS_MAX + 1]);
    let many = "has 257 entries, at most 256 are taken";
    check(&|card| card.access.callable_by = patterns(), "access.callable_by", many);
    check(&|card| card.access.may_call = patterns(), "access.may_call", many);
}

#[test]
fn a_rate_that_is_no_number_is_refused() {
    let mut card = card(json!({ "agent_id": "a@n", "capabilities": [{ "name": "x", "breaker": {} }] }));
    card.capabilities[0].breaker.as_mut().unwrap().open_above = f64::NAN;
    assert_eq!(refused(card).to_string(), "capabilities[0].breaker.open_above: is NaN: it is a rate, 0 to 1");
}

#[test]
fn what_is_refused_for_its_password_does_not_show_it() {
    for address in ["http://me:hunter2@host/", "http://me:hunt er2@host/", "http://me:hun/ter2@host:x/"] {
        let endpoint = json!({ "protocol": "http", "address": address });
        let error =
            refused(card(json!({ "agent_id": "a@n", "capabilities": [{ "name": "x" }], "endpoints": [endpoint] })));
        assert!(!error.to_string().contains("hun"), "{error}");
    }
}

/// Registers a card that may be odd, and holds the answer to what it says of it.
#[track_caller]
fn check_warnings(endpoints: Value, capability: Value, expected: &[&str]) {
    let mut fleet = Fleet::new(Settings::default());
    let card = card(json!({ "agent_id": "a@n", "capabilities": [capability], "endpoints": endpoints }));
    let done = fleet.register(Checked::new(card).unwrap(), Timestamp::from_ms(0));
    assert_eq!(done.warnings, expected);
}

#[test]
fn an_agent_that_is_its_own_fallback_is_warned() {
    let capability = json!({ "name": "x", "tags": ["x"], "fallback": [{ "agent": "a@n" }] });
    let warning = "the fallback of x asks this agent itself, once every try has failed";
    check_warnings(json!([{ "protocol": "websocket" }]), capability, &[warning]);
}

#[test]
fn an_agent_that_names_no_way_to_be_reached_is_told_that_it_must_pull() {
    let capability = || json!({ "name": "x", "tags": ["x"] });
    let warning = "it names no way to be reached: it will be sent nothing, and must call task/claim";
    check_warnings(json!([]), capability(), &[warning]);
    check_warnings(json!([{ "protocol": "queue" }]), capability(), &[warning]);
    check_warnings(json!([{ "protocol": "queue" }, { "protocol": "websocket" }]), capability(), &[]);
}
