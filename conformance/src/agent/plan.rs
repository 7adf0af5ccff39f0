//! What an agent declares, as far as it can be read, and what it will be asked for.

use fastrand::Rng;
use jsonschema::Validator;
use reach_schemas::{AgentId, CapabilityName, Effect, Protocol, RawJson, Span, Tier};
use serde_json::{Map, Value};

use crate::{instance, schema};

/// Stands for the text that is tried, within parameters.
const TEXT_MARK: &str = "reach-conformance-text";
/// Stands for the number that is tried, as JSON.
const NUMBER_MARK: &str = "\"reach-conformance-number\"";
/// A free text is one that may be so long, in characters.
const FREE_TEXT_MIN: u64 = 2_000_000;

/// One capability.
pub(crate) struct Offer {
    pub(crate) name: CapabilityName,
    pub(crate) effect: Effect,
    pub(crate) is_cancellable: bool,
    pub(crate) input: Option<Validator>,
    pub(crate) output: Option<Validator>,
    /// Parameters that should do. None: none could be made.
    pub(crate) params: Option<Value>,
    /// Parameters of work that takes a while.
    pub(crate) slow: Option<Value>,
    /// Parameters that do not fit.
    pub(crate) bad: Option<Value>,
    /// Where in the parameters there is free text.
    text: Option<Slot>,
    /// Where in the parameters there is any number.
    number: Option<Slot>,
    pub(crate) attempt_timeout: Span,
}

/// A place in parameters: a member of theirs, or all of them.
struct Slot(Option<String>);

/// The agent as it declares itself.
pub(crate) struct Plan {
    pub(crate) agent_id: AgentId,
    pub(crate) offers: Vec<Offer>,
    pub(crate) max_concurrency: usize,
    pub(crate) interval: Span,
    pub(crate) probe_timeout: Span,
    pub(crate) protocol: Protocol,
    pub(crate) address: Option<String>,
}

impl Plan {
    /// Reads a card. `Err`: it cannot be worked with at all.
    pub(crate) fn read(card: &Value, samples: &Map<String, Value>, rng: &mut Rng) -> Result<Self, String> {
        let agent_id = card["agent_id"].as_str().unwrap_or_default();
        let agent_id = agent_id.parse().map_err(|error| format!("the card's agent_id: {error}"))?;
        let listed = card["capabilities"].as_array().map(Vec::as_slice).unwrap_or_default();
        let offers = listed.iter().map(|capability| Offer::read(capability, samples, rng)).collect::<Result<_, _>>()?;
        let first = card["endpoints"].as_array().and_then(|endpoints| endpoints.first());
        let protocol = match first {
            Some(endpoint) => serde_json::from_value(endpoint["protocol"].clone())
                .map_err(|error| format!("the card's first endpoint: {error}"))?,
            None => Protocol::Queue,
        };
        let concurrency = card["max_concurrency"].as_u64().unwrap_or(16);
        Ok(Self {
            agent_id,
            offers,
            max_concurrency: usize::try_from(concurrency).unwrap_or(usize::MAX).max(1),
            interval: super::methods::interval(card),
            probe_timeout: span(&card["probe"]["timeout"]).unwrap_or(Span::from_secs(5)),
            protocol,
            address: first.and_then(|endpoint| endpoint["address"].as_str()).map(str::to_owned),
        })
    }
}

fn span(value: &Value) -> Option<Span> {
    value.as_str()?.parse().ok()
}

impl Offer {
    fn read(capability: &Value, samples: &Map<String, Value>, rng: &mut Rng) -> Result<Self, String> {
        let name = capability["name"].as_str().unwrap_or_default();
        let parsed: CapabilityName = name.parse().map_err(|error| format!("a capability's name: {error}"))?;
        let own = samples.get(name).cloned().unwrap_or_default();
        let schema = capability.get("input_schema").filter(|schema| !schema.is_null());
        let input = schema.and_then(|schema| schema::compile(schema).ok());
        let fits = |value: &Value| input.as_ref().is_none_or(|input| input.is_valid(value));
        let made = match schema {
            Some(schema) => instance::good(schema, rng).filter(|value| fits(value)),
            None => Some(Value::Object(Map::new())),
        };
        let params = own.get("params").cloned().or(made);
        let worst = schema
            .zip(params.as_ref())
            .and_then(|(schema, params)| instance::bad(schema, params).into_iter().find(|value| !fits(value)));
        let output = capability.get("output_schema").filter(|schema| !schema.is_null());
        let tier: Tier = serde_json::from_value(capability["tier"].clone()).unwrap_or_default();
        Ok(Self {
            name: parsed,
            effect: serde_json::from_value(capability["effect"].clone()).unwrap_or_default(),
            is_cancellable: capability["cancellable"].as_bool().unwrap_or(false),
            output: output.and_then(|schema| schema::compile(schema).ok()),
            slow: own.get("slow").cloned(),
            bad: own.get("bad").cloned().or(worst),
            text: params.as_ref().and_then(|params| slot(schema, params, |of, value| value.is_string() && is_text(of))),
            number: params
                .as_ref()
                .and_then(|params| slot(schema, params, |of, value| value.is_number() && is_number(of))),
            params,
            input,
            attempt_timeout: span(&capability["timeout"]).unwrap_or(tier.attempt_timeout()),
        })
    }

    /// The parameters with this text in the member that is free. None: none is.
    pub(crate) fn with_text(&self, text: &str) -> Option<RawJson> {
        let mut params = self.params.clone()?;
        self.text.as_ref()?.put(&mut params, Value::String(text.to_owned()));
        self.input.as_ref().is_none_or(|input| input.is_valid(&params)).then(|| raw(&params))
    }

    /// The parameters with a text that is easily found again.
    pub(crate) fn with_marked_text(&self) -> Option<(RawJson, &'static str)> {
        self.with_text(TEXT_MARK).map(|params| (params, TEXT_MARK))
    }

    /// The parameters with this number, written as it is given. None: no member takes any number.
    pub(crate) fn with_number(&self, digits: &str) -> Option<RawJson> {
        let mut params = self.params.clone()?;
        self.number.as_ref()?.put(&mut params, serde_json::from_str(NUMBER_MARK).ok()?);
        RawJson::parse(&params.to_string().replace(NUMBER_MARK, digits)).ok()
    }

    /// Whether it changes anything in the world.
    pub(crate) const fn is_effectful(&self) -> bool {
        match self.effect {
            Effect::Read => false,
            Effect::IdempotentWrite | Effect::Write => true,
        }
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

/// A value as it is sent.
pub(crate) fn raw(value: &Value) -> RawJson {
    RawJson::of(value).expect("a value can be written as JSON")
}
