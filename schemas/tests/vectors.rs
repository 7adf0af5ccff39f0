//! Holds the types to the vectors in `schemas/vectors/`: what is good is understood and kept, what is bad is refused
//! with a text that names the field and says what would be right.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test, in its parts as well")]

mod support;

use std::collections::BTreeMap;

use reach_schemas::call::{Complete, Heartbeat};
use reach_schemas::{AgentCard, Delivery, RawJson, Submit};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a body and writes it again, or tells where it is wrong and why.
fn through<T: DeserializeOwned + Serialize>(body: &str) -> Result<String, (String, String)> {
    let read = serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_str(body));
    match read {
        Ok(value) => Ok(serde_json::to_string(&value).unwrap()),
        Err(error) => {
            let path = error.path().to_string();
            Err((if path == "." { String::new() } else { path }, error.inner().to_string()))
        }
    }
}

fn through_type(name: &str, body: &str) -> Result<String, (String, String)> {
    match name {
        "AgentCard" => through::<AgentCard>(body),
        "Submit" => through::<Submit>(body),
        "Heartbeat" => through::<Heartbeat>(body),
        "Delivery" => through::<Delivery>(body),
        "Complete" => through::<Complete>(body),
        _ => panic!("no vectors are read for {name}"),
    }
}

/// Drops where in the text it was, which depends on white space.
fn without_position(text: &str) -> &str {
    text.split(" at line ").next().unwrap_or_default()
}

fn members(body: &str) -> BTreeMap<String, RawJson> {
    serde_json::from_str(body).unwrap()
}

#[test]
fn what_is_good_is_understood_and_settles_after_one_pass() {
    for set in support::sets() {
        for good in &set.good {
            let once = through_type(&set.r#type, good.body.get())
                .unwrap_or_else(|(at, says)| panic!("{}: {}: {at}: {says}", set.r#type, good.claim));
            assert_eq!(through_type(&set.r#type, &once).as_ref(), Ok(&once), "{}: {}", set.r#type, good.claim);
        }
    }
}

#[test]
fn what_is_bad_is_refused_with_where_and_why() {
    let mut wrong = Vec::new();
    for set in support::sets() {
        for bad in &set.bad {
            let said = through_type(&set.r#type, bad.body.get());
            let said = said.map_err(|(at, says)| (at, without_position(&says).to_owned()));
            let is_met =
                if bad.refused_by.r#type() { said == Err((bad.at.clone(), bad.says.clone())) } else { said.is_ok() };
            if !is_met {
                wrong.push(format!("{}: {}: {said:#?}", set.r#type, bad.claim));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn params_and_results_come_out_byte_for_byte() {
    let mut seen = 0;
    for set in support::sets() {
        for good in &set.good {
            let before = members(good.body.get());
            let after = members(&through_type(&set.r#type, good.body.get()).unwrap());
            for field in ["params", "result"] {
                let Some(carried) = before.get(field).filter(|carried| carried.get() != "null") else { continue };
                seen += 1;
                let kept = after.get(field).map(RawJson::get);
                assert_eq!(kept, Some(carried.get()), "{}: {}", set.r#type, good.claim);
            }
        }
    }
    assert!(seen >= 6, "only {seen} vectors carry params or a result");
}

#[test]
fn schemas_and_static_answers_in_a_card_come_out_byte_for_byte() {
    let schema = r#"{"type":"object","x-n":9007199254740993,"properties":{"z":{"const":"\u00e9"},"a":true}}"#;
    let fixed = r#"{"z":1.10,"a":[ 12345678901234567890123 ]}"#;
    let card = format!(
        r#"{{"agent_id":"a@n","capabilities":[{{"name":"c","input_schema":{schema},"output_schema":{schema},"fallback":[{{"static":{fixed}}}]}}]}}"#
    );
    let written = through::<AgentCard>(&card).unwrap();
    for part in [format!(r#""input_schema":{schema}"#), format!(r#""output_schema":{schema}"#), fixed.to_owned()] {
        assert!(written.contains(&part), "{part} is missing in {written}");
    }
}
