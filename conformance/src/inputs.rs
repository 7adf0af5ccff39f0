//! What a capability or a tool is asked with: parameters that should do, and others made of them.

use std::time::Duration;

use fastrand::Rng;
use jsonschema::Validator;
use reach_schemas::RawJson;
use serde_json::{Map, Value};

use crate::misfit::{self, Misfit};
use crate::{instance, schema};

/// Stands for the text that is tried, within parameters.
const TEXT_MARK: &str = "reach-conformance-text";
/// Stands for the number that is tried, as JSON.
const NUMBER_MARK: &str = "\"reach-conformance-number\"";
/// A free text is one that may be so long, in characters.
const FREE_TEXT_MIN: u64 = 2_000_000;
/// Text in several scripts, with what is often broken: a joined emoji, a combining mark, line separators, quotes.
pub(crate) const TEXT: &str = "统计 字数 — naïve e\u{301}té 🧑‍🚀 🎈 \u{2028} \"quoted\" \\ \t עברית";
/// Its like in plain letters: what an agent does to blanks, quotes and lines on purpose, it does to both.
pub(crate) const PLAIN_TEXT: &str = "plain text - naive summer so as on \n \"quoted\" \\ \t Hebrew";
/// One past the integers that a 64-bit float holds.
pub(crate) const NUMBER: &str = "9007199254740993";
/// Numbers on the way there, which any float holds; the last is one that no result has by chance. Whoever takes one for a
/// length of time is known by how long the small ones take, before a large one keeps it busy for hours.
pub(crate) const PLAIN_NUMBERS: [&str; 4] = ["1", "37", "2345", "12345678"];
/// How much longer than its like one of them may take.
pub(crate) const NUMBER_PAUSE: Duration = Duration::from_millis(600);
/// What a large text has in bytes.
const LARGE: usize = 1 << 20;

/// The parameters for one capability or tool.
pub(crate) struct Inputs {
    schema: Option<Validator>,
    /// Parameters that should do. None: none could be made.
    pub(crate) params: Option<Value>,
    /// Whether somebody gave them, who knows what they mean: a sample, or an example in the schema.
    pub(crate) is_given: bool,
    /// Parameters of work that takes a while.
    pub(crate) slow: Option<Value>,
    /// Parameters that do not fit, each in a way of its own; one that somebody gave is the first.
    pub(crate) bad: Vec<Misfit>,
    /// Where in the parameters there is free text.
    text: Option<Slot>,
    /// Where in the parameters there is any number.
    number: Option<Slot>,
}

/// A place in parameters: a member of theirs, or all of them.
struct Slot(Option<String>);

impl Inputs {
    /// What can be made of a schema and of samples.
    pub(crate) fn read(name: &str, schema: Option<&Value>, samples: &Map<String, Value>, rng: &mut Rng) -> Self {
        let own = samples.get(name).cloned().unwrap_or_default();
        let compiled = schema.and_then(|schema| schema::compile(schema).ok());
        let fits = |value: &Value| compiled.as_ref().is_none_or(|schema| schema.is_valid(value));
        let made = match schema {
            Some(schema) => instance::good(schema, rng).filter(|value| fits(value)),
            None => Some(Value::Object(Map::new())),
        };
        let has_examples = schema.is_some_and(|schema| schema["examples"].is_array());
        let params = own.get("params").cloned().or(made);
        let given = own.get("bad").cloned().map(|value| Misfit { way: "is bad, by the samples", member: None, value });
        let mut bad: Vec<Misfit> = given.into_iter().collect();
        for misfit in schema.map(|schema| misfit::all(schema, params.as_ref())).unwrap_or_default() {
            if !fits(&misfit.value) && !bad.iter().any(|other| other.way == misfit.way) {
                bad.push(misfit);
            }
        }
        let text = |params: &Value| slot(schema, params, |of, value| value.is_string() && is_text(of));
        let number = |params: &Value| slot(schema, params, |of, value| value.is_number() && is_number(of));
        Self {
            is_given: own.get("params").is_some() || has_examples,
            slow: own.get("slow").cloned(),
            bad,
            text: params.as_ref().and_then(text),
            number: params.as_ref().and_then(number),
            params,
            schema: compiled,
        }
    }

    /// The parameters with this text in the member that is free. None: none is.
    pub(crate) fn with_text(&self, text: &str) -> Option<Value> {
        let mut params = self.params.clone()?;
        self.text.as_ref()?.put(&mut params, Value::String(text.to_owned()));
        self.schema.as_ref().is_none_or(|schema| schema.is_valid(&params)).then_some(params)
    }

    /// The parameters with a text that is easily found again.
    pub(crate) fn with_marked_text(&self) -> Option<(Value, &'static str)> {
        self.with_text(TEXT_MARK).map(|params| (params, TEXT_MARK))
    }

    /// The parameters with a megabyte of text.
    pub(crate) fn with_large_text(&self) -> Option<Value> {
        self.with_text(&"many words ".repeat(LARGE / 11))
    }

    /// The parameters with this number, written as it is given. None: no member takes any number, or not this one.
    pub(crate) fn with_number(&self, digits: &str) -> Option<RawJson> {
        let mut params = self.params.clone()?;
        self.number.as_ref()?.put(&mut params, serde_json::from_str(digits).ok()?);
        if !self.schema.as_ref().is_none_or(|schema| schema.is_valid(&params)) {
            return None;
        }
        self.number.as_ref()?.put(&mut params, serde_json::from_str(NUMBER_MARK).ok()?);
        RawJson::parse(&params.to_string().replace(NUMBER_MARK, digits)).ok()
    }
}

impl Slot {
    fn put(&self, params: &mut Value, value: Value) {
        match &self.0 {
            Some(name) => params[name] = value,
            None => *params = value,
        }
    }
}

/// The first place whose value and schema fit.
fn slot(schema: Option<&Value>, params: &Value, fits: impl Fn(Option<&Value>, &Value) -> bool) -> Option<Slot> {
    let Some(members) = params.as_object() else { return fits(schema, params).then_some(Slot(None)) };
    let found =
        members.iter().find(|(name, value)| fits(schema.map(|schema| &schema["properties"][name.as_str()]), value));
    found.map(|(name, _)| Slot(Some(name.clone())))
}

/// Whether a schema lets any text pass. None: there is no schema at all.
fn is_text(schema: Option<&Value>) -> bool {
    let Some(schema) = schema else { return true };
    let is_bound = ["enum", "const", "pattern", "format"].iter().any(|name| schema.get(*name).is_some());
    let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
    schema["type"] == "string" && !is_bound && most >= FREE_TEXT_MIN
}

/// Whether a schema lets any number pass.
fn is_number(schema: Option<&Value>) -> bool {
    let Some(schema) = schema else { return true };
    let bounds = ["enum", "const", "maximum", "exclusiveMaximum", "multipleOf", "format"];
    matches!(schema["type"].as_str(), Some("integer" | "number"))
        && !bounds.iter().any(|name| schema.get(*name).is_some())
}

/// Whether some text within a JSON value holds this.
pub(crate) fn holds(json: &str, wanted: &str) -> bool {
    fn walk(value: &Value, wanted: &str) -> bool {
        match value {
            Value::String(text) => text.contains(wanted),
            Value::Array(items) => items.iter().any(|item| walk(item, wanted)),
            Value::Object(members) => members.iter().any(|(name, item)| name.contains(wanted) || walk(item, wanted)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    serde_json::from_str(json).is_ok_and(|value| walk(&value, wanted))
}
