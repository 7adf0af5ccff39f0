//! What an agent declares, as far as it can be read, and what it will be asked for.

use fastrand::Rng;
use jsonschema::Validator;
use reach_schemas::{AgentId, CapabilityName, Effect, Protocol, RawJson, Span, Tier};
use serde_json::{Map, Value};

use crate::inputs::Inputs;
use crate::schema;

/// One capability.
pub(crate) struct Offer {
    pub(crate) name: CapabilityName,
    pub(crate) effect: Effect,
    pub(crate) is_cancellable: bool,
    pub(crate) output: Option<Validator>,
    /// What it is asked with.
    pub(crate) inputs: Inputs,
    pub(crate) attempt_timeout: Span,
}

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
        let schema = capability.get("input_schema").filter(|schema| !schema.is_null());
        let output = capability.get("output_schema").filter(|schema| !schema.is_null());
        let tier: Tier = serde_json::from_value(capability["tier"].clone()).unwrap_or_default();
        Ok(Self {
            name: parsed,
            effect: serde_json::from_value(capability["effect"].clone()).unwrap_or_default(),
            is_cancellable: capability["cancellable"].as_bool().unwrap_or(false),
            output: output.and_then(|schema| schema::compile(schema).ok()),
            inputs: Inputs::read(name, schema, samples, rng),
            attempt_timeout: span(&capability["timeout"]).unwrap_or(tier.attempt_timeout()),
        })
    }

    /// Whether it changes anything in the world.
    pub(crate) const fn is_effectful(&self) -> bool {
        match self.effect {
            Effect::Read => false,
            Effect::IdempotentWrite | Effect::Write => true,
        }
    }
}

/// A value as it is sent.
pub(crate) fn raw(value: &Value) -> RawJson {
    RawJson::of(value).expect("a value can be written as JSON")
}
