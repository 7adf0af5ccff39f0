//! Taking an agent's card in: checking it, and putting it in the fleet without a moment offline.

use std::collections::BTreeSet;
use std::sync::Arc;

use reach_schemas::{AgentCard, AgentId, Capability, Protocol, Span, Timestamp};

use super::node::{Node, Offer, Reported};
use super::{Checked, Fleet, OfferRef};
use crate::lease::Lease;
use crate::lexical::Document;
use crate::schema::{self, Schema, SchemaError};

/// How many capabilities one card may hold.
pub const CAPABILITIES_MAX: usize = 256;
/// The longest text of one field of a card, in bytes.
pub const TEXT_MAX: usize = 4096;
/// The shortest interval between heartbeats.
pub const HEARTBEAT_MIN: Span = Span::from_ms(100);

/// What is wrong with a card.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// A field is wrong.
    #[error("{field}: {wrong}")]
    Field {
        /// Where, as a path into the card.
        field: String,
        /// What is wrong, and what would be right.
        wrong: String,
    },
    /// A schema is no schema.
    #[error("{field}: {source}")]
    Schema {
        /// Where, as a path into the card.
        field: String,
        /// What is wrong with it.
        source: SchemaError,
    },
}

/// What a registration did.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// Whether nothing changed.
    pub unchanged: bool,
    /// The card's generation now.
    pub generation: u64,
    /// When the agent registered first.
    pub registered_at: Timestamp,
    /// When the next heartbeat is due, at the latest.
    pub heartbeat_due_at: Timestamp,
    /// What is odd about the card.
    pub warnings: Vec<String>,
}

fn wrong(field: impl Into<String>, wrong: impl Into<String>) -> CardError {
    CardError::Field { field: field.into(), wrong: wrong.into() }
}

impl Checked {
    /// Checks a card and compiles its schemas.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn new(card: AgentCard) -> Result<Self, CardError> {
        check_card(&card)?;
        let mut schemas = Vec::with_capacity(card.capabilities.len());
        for (at, capability) in card.capabilities.iter().enumerate() {
            let compile = |schema: Option<&reach_schemas::RawJson>, name: &str| {
                schema.map(Schema::compile).transpose().map_err(|source| CardError::Schema {
                    field: format!("capabilities[{at}].{name} of {}", capability.name),
                    source,
                })
            };
            schemas.push((
                compile(capability.input_schema.as_ref(), "input_schema")?,
                compile(capability.output_schema.as_ref(), "output_schema")?,
            ));
        }
        let warnings = warnings(&card);
        Ok(Self { card: Arc::new(card), schemas, warnings })
    }

    /// The card.
    #[must_use]
    pub fn card(&self) -> &AgentCard {
        &self.card
    }
}

fn check_card(card: &AgentCard) -> Result<(), CardError> {
    if card.capabilities.is_empty() {
        return Err(wrong("capabilities", "is empty: an agent is sent only what it declares, so declare at least one"));
    }
    if card.capabilities.len() > CAPABILITIES_MAX {
        return Err(wrong("capabilities", format!("has more than {CAPABILITIES_MAX} entries")));
    }
    if card.heartbeat_interval < HEARTBEAT_MIN {
        return Err(wrong("heartbeat_interval", format!("is shorter than {HEARTBEAT_MIN}")));
    }
    if card.max_concurrency == 0 {
        return Err(wrong("max_concurrency", "is 0: an agent that takes no work says agent/drain instead"));
    }
    if card.priority > 9 {
        return Err(wrong("priority", "is above 9"));
    }
    let texts = [("description", &card.description), ("version", &card.version)];
    if let Some((field, _)) = texts.iter().find(|(_, text)| text.len() > TEXT_MAX) {
        return Err(wrong(*field, format!("has more than {TEXT_MAX} bytes")));
    }
    check_endpoints(card)?;
    let mut names = BTreeSet::new();
    for (at, capability) in card.capabilities.iter().enumerate() {
        let path = format!("capabilities[{at}]");
        if !names.insert(&capability.name) {
            return Err(wrong(format!("{path}.name"), format!("{} is declared twice", capability.name)));
        }
        check_capability(&path, capability)?;
    }
    Ok(())
}

fn check_capability(path: &str, capability: &Capability) -> Result<(), CardError> {
    if capability.routing_weight > 100 {
        return Err(wrong(format!("{path}.routing_weight"), "is above 100"));
    }
    let texts = std::iter::once(&capability.description).chain(&capability.exclusions).chain(&capability.tags);
    if texts.clone().any(|text| text.len() > TEXT_MAX) {
        return Err(wrong(path, format!("has a text of more than {TEXT_MAX} bytes")));
    }
    if capability.timeout == Some(Span::ZERO) {
        return Err(wrong(format!("{path}.timeout"), "is zero"));
    }
    if let Some(policy) = &capability.breaker {
        let is_rate = |rate: f64| (0.0..=1.0).contains(&rate);
        if !is_rate(policy.open_above) || !is_rate(policy.close_below) {
            return Err(wrong(format!("{path}.breaker"), "open_above and close_below are between 0 and 1"));
        }
        if policy.failures_in_row == 0 || policy.window == 0 || policy.window > 1000 {
            return Err(wrong(format!("{path}.breaker"), "failures_in_row is at least 1, window 1 to 1000"));
        }
    }
    Ok(())
}

fn check_endpoints(card: &AgentCard) -> Result<(), CardError> {
    for (at, endpoint) in card.endpoints.iter().enumerate() {
        let field = format!("endpoints[{at}].address");
        match endpoint.protocol {
            Protocol::Http if !endpoint.address.starts_with("http://") && !endpoint.address.starts_with("https://") => {
                return Err(wrong(field, format!("{:?} is not an http:// or https:// URL", endpoint.address)));
            }
            Protocol::Process if endpoint.address.trim().is_empty() => {
                return Err(wrong(field, "is empty: a process endpoint names a command"));
            }
            Protocol::Http | Protocol::Process | Protocol::Websocket | Protocol::Queue => {}
        }
        if endpoint.version != "1" {
            let field = format!("endpoints[{at}].version");
            return Err(wrong(field, format!("{:?} is not spoken here; version \"1\" is", endpoint.version)));
        }
    }
    Ok(())
}

fn warnings(card: &AgentCard) -> Vec<String> {
    let mut warnings = Vec::new();
    for capability in &card.capabilities {
        if capability.description.is_empty() && capability.tags.is_empty() {
            warnings.push(format!("{} has no description and no tags: no intent will find it", capability.name));
        }
    }
    warnings
}

impl Fleet {
    /// Takes a card in. The same card again changes nothing but renews the lease; another card of the same agent
    /// takes the place of the first with its history and its running work kept.
    pub fn register(&mut self, checked: Checked, now: Timestamp) -> Registration {
        let id = checked.card.agent_id.clone();
        let warnings = checked.warnings.clone();
        let lease = Lease::grant(checked.card.heartbeat_interval, now);
        let unchanged = match self.node_mut(&id) {
            Some(node) if node.card == checked.card => {
                node.lease = lease;
                node.is_draining = false;
                true
            }
            Some(_) | None => false,
        };
        if !unchanged {
            let (generation, registered_at) =
                self.node(&id).map_or((1, now), |node| (node.generation + 1, node.registered_at));
            self.put(checked, generation, registered_at, now);
        }
        let node = self.node(&id).expect("the agent was just put in, or was there");
        Registration {
            unchanged,
            generation: node.generation,
            registered_at: node.registered_at,
            heartbeat_due_at: node.lease.due_at(),
            warnings,
        }
    }

    /// Takes a stored card in after a start, as it was. Its lease begins now: nobody is dead for one lease after a start.
    pub fn restore(
        &mut self,
        checked: Checked,
        generation: u64,
        registered_at: Timestamp,
        is_draining: bool,
        now: Timestamp,
    ) {
        let id = checked.card.agent_id.clone();
        self.put(checked, generation, registered_at, now);
        if let Some(node) = self.node_mut(&id) {
            node.is_draining = is_draining;
        }
    }

    fn put(&mut self, checked: Checked, generation: u64, registered_at: Timestamp, now: Timestamp) {
        let id = checked.card.agent_id.clone();
        let old = self.take_out(&id);
        let (health, connections, reported, mut kept) = match old {
            Some(old) => (old.health, old.connections, old.reported, old.offers),
            None => (crate::health::Health::new(now), 0, Reported::default(), Vec::new()),
        };
        let place = self.free_nodes.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            self.nodes.len() - 1
        });
        let card = Arc::clone(&checked.card);
        let mut offers = Vec::with_capacity(card.capabilities.len());
        for (at, (input, output)) in checked.schemas.into_iter().enumerate() {
            let capability = &card.capabilities[at];
            let number = self.number(OfferRef { node: place, offer: at });
            self.by_capability.entry(capability.name.clone()).or_default().insert(number);
            self.index_words(number, &card, capability);
            let mut offer = Offer::new(number, at, capability);
            (offer.input, offer.output) = (input, output);
            if let Some(found) = kept.iter().position(|old| old.name == capability.name) {
                offer.inherit(kept.swap_remove(found));
            }
            offers.push(offer);
        }
        let lease = Lease::grant(card.heartbeat_interval, now);
        self.nodes[place] = Some(Node {
            card,
            generation,
            registered_at,
            lease,
            health,
            is_draining: false,
            connections,
            reported,
            offers,
        });
        self.by_id.insert(id, place);
    }

    /// Forgets an agent.
    pub fn remove(&mut self, agent: &AgentId) -> Option<Node> {
        self.take_out(agent)
    }

    fn take_out(&mut self, agent: &AgentId) -> Option<Node> {
        let place = self.by_id.remove(agent)?;
        let node = self.nodes[place].take()?;
        self.free_nodes.push(place);
        for offer in &node.offers {
            self.index.remove(offer.number);
            self.offers[offer.number as usize] = None;
            self.free_offers.push(offer.number);
            if let Some(numbers) = self.by_capability.get_mut(&offer.name) {
                numbers.remove(&offer.number);
                if numbers.is_empty() {
                    self.by_capability.remove(&offer.name);
                }
            }
        }
        Some(node)
    }

    fn number(&mut self, at: OfferRef) -> u32 {
        if let Some(number) = self.free_offers.pop() {
            self.offers[number as usize] = Some(at);
            return number;
        }
        self.offers.push(Some(at));
        u32::try_from(self.offers.len() - 1).expect("fewer than four thousand million offers fit in memory")
    }

    fn index_words(&mut self, number: u32, card: &AgentCard, capability: &Capability) {
        let parameters = capability.input_schema.as_ref().map(schema::parameter_words).unwrap_or_default();
        let tags: Vec<String> = capability.tags.iter().chain(&card.tags).cloned().collect();
        let document = Document {
            name: capability.name.as_str(),
            description: &capability.description,
            tags: &tags,
            exclusions: &capability.exclusions,
            parameters: &parameters,
            agent: &card.description,
        };
        self.index.insert(number, &document);
    }
}
