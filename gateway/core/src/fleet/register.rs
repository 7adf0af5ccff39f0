//! Putting an agent's card in the fleet, without a moment offline.

use std::sync::Arc;

use reach_schemas::{AgentCard, AgentId, Capability, Timestamp};

use super::node::{Node, Offer, Reported};
use super::{Checked, Fleet, OfferRef};
use crate::lease::Lease;
use crate::lexical::Document;
use crate::retry::Budget;
use crate::schema;

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

impl Fleet {
    /// Takes a card in. The same card again changes nothing but renews the lease; another card of the same agent
    /// takes the place of the first with its history and its running work kept. An agent that was dead starts slowly.
    pub fn register(&mut self, checked: Checked, now: Timestamp) -> Registration {
        let id = checked.card.agent_id.clone();
        let warnings = checked.warnings.clone();
        let mut unchanged = false;
        // Under whichever card it was dead, it is just back.
        if let Some(node) = self.node_mut(&id) {
            node.renew(now);
            unchanged = node.card == checked.card;
            node.is_draining &= !unchanged;
        }
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
        let (health, connections, reported, last_probe, budget, mut kept) = match old {
            Some(old) => (old.health, old.connections, old.reported, old.last_probe, old.budget, old.offers),
            None => (crate::health::Health::new(now), 0, Reported::default(), None, Budget::default(), Vec::new()),
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
            let mut offer = Offer::new(number, at, capability, &self.settings.defaults);
            (offer.input, offer.output) = (input, output);
            if let Some(found) = kept.iter().position(|old| old.name == capability.name) {
                offer.inherit(kept.swap_remove(found));
            }
            offers.push(offer);
        }
        self.by_server.insert(&card);
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
            last_probe,
            budget,
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
        self.by_server.remove(&node.card);
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
        let document = Document {
            name: capability.name.as_str(),
            description: &capability.description,
            tags: &capability.tags,
            exclusions: &capability.exclusions,
            parameters: &parameters,
            agent: &card.description,
            agent_tags: &card.tags,
        };
        self.index.insert(number, &document);
    }
}
