//! Reads the vectors of `schemas/vectors/jsonrpc.json`, which any receiver of JSON-RPC can be held against, and tells
//! whether an answer meets one.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

const VECTORS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas/vectors/jsonrpc.json"));

#[derive(Deserialize)]
struct Vectors {
    vectors: Vec<Vector>,
}

/// A frame, and what it must be answered with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vector {
    pub(crate) name: String,
    raw: Option<String>,
    raw_hex: Option<String>,
    raw_repeat: Option<(String, usize)>,
    #[serde(rename = "profile")]
    _profile: String,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Expect {
    None(String),
    Batch { batch: Vec<Expected> },
    One(Expected),
}

/// One answer: `code` or one of `codes`, under `id` or one of `ids`; `id_raw` is the exact text of the id.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    code: Option<i64>,
    #[serde(default)]
    codes: Vec<Value>,
    #[serde(default, deserialize_with = "Option::deserialize")]
    id: Option<Value>,
    #[serde(default)]
    ids: Vec<Value>,
    id_raw: Option<String>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    error: Value,
}

/// Every vector.
pub(crate) fn vectors() -> Vec<Vector> {
    let vectors: Vectors = serde_json::from_str(VECTORS).unwrap();
    assert!(vectors.vectors.len() > 60, "the list was read whole");
    vectors.vectors
}

impl Vector {
    /// What is sent.
    pub(crate) fn frame(&self) -> Vec<u8> {
        match (&self.raw, &self.raw_hex, &self.raw_repeat) {
            (Some(text), None, None) => text.clone().into_bytes(),
            (None, Some(hex), None) => hex
                .as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect(),
            (None, None, Some((text, count))) => text.repeat(*count).into_bytes(),
            _ => panic!("{}: give one of raw, raw_hex and raw_repeat", self.name),
        }
    }

    /// Whether that is the answer, or the silence, that it must have.
    pub(crate) fn is_met_by(&self, answer: Option<&str>) -> bool {
        match (&self.expect, answer) {
            (Expect::None(word), answer) => word == "none" && answer.is_none(),
            (Expect::One(expected), None) => expected.codes.iter().any(|code| code == "none"),
            (Expect::One(expected), Some(answer)) => expected.is_met_by(answer),
            (Expect::Batch { .. }, None) => false,
            (Expect::Batch { batch }, Some(answer)) => {
                let mut left: Vec<&RawValue> = serde_json::from_str(answer).unwrap_or_default();
                let all_came = batch.iter().all(|expected| {
                    let place = left.iter().position(|answer| expected.is_met_by(answer.get()));
                    place.map(|place| left.swap_remove(place)).is_some()
                });
                all_came && left.is_empty()
            }
        }
    }
}

impl Expected {
    fn is_met_by(&self, answer: &str) -> bool {
        let Ok(answer) = serde_json::from_str::<Answer<'_>>(answer) else { return false };
        let id: Value = serde_json::from_str(answer.id.get()).unwrap();
        let code = &answer.error["code"];
        let code_fits = self.codes.contains(code) || self.code.is_some_and(|expected| *code == expected);
        let expected_id = self.id.clone().unwrap_or(Value::Null);
        let id_fits =
            if self.ids.is_empty() { expected_id == "any" || expected_id == id } else { self.ids.contains(&id) };
        let raw_fits = self.id_raw.as_ref().is_none_or(|raw| raw == answer.id.get());
        code_fits && raw_fits && (id_fits || self.id_raw.is_some())
    }
}
