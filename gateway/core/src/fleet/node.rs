//! One agent, and one thing that it offers.

use std::collections::BTreeMap;
use std::sync::Arc;

use reach_schemas::call::{AgentState, AgentView, DependencyState, LastProbe};
use reach_schemas::{AgentCard, BreakerPolicy, Capability, CapabilityName, Endpoint, Protocol, Span, Tier, Timestamp};

use super::defaults::Defaults;
use crate::breaker::{Breaker, Permit};
use crate::bulkhead::{Room, Seat};
use crate::health::Health;
use crate::history::History;
use crate::lease::{Lease, Presence};
use crate::retry::Budget;
use crate::schema::Schema;

/// One agent.
#[derive(Debug)]
pub struct Node {
    /// What it says of itself.
    pub card: Arc<AgentCard>,
    /// Grows with each registration that changed the card.
    pub generation: u64,
    /// When it registered first.
    pub registered_at: Timestamp,
    /// Its presence.
    pub lease: Lease,
    /// What probes and load reports say.
    pub health: Health,
    /// Whether it said that it is about to stop.
    pub is_draining: bool,
    /// How many connections it holds open to us.
    pub connections: u32,
    /// What it said of itself last.
    pub reported: Reported,
    /// Its last probe.
    pub last_probe: Option<LastProbe>,
    /// How many retries it may still be sent.
    pub(super) budget: Budget,
    /// What it offers, in the card's order.
    pub offers: Vec<Offer>,
}

/// What its heartbeats and probes said; of what both say, the newer word.
#[derive(Debug, Clone, Default)]
pub struct Reported {
    /// How many tasks it works on.
    pub load: u32,
    /// How many it holds beside those.
    pub queue_depth: u32,
    /// What it needs, and how that is.
    pub dependencies: BTreeMap<String, DependencyState>,
    /// The share of its tasks that failed lately.
    pub failure_rate: f64,
    /// When it last succeeded, for whomever.
    pub last_success_at: Option<Timestamp>,
}

/// One capability of one agent.
#[derive(Debug)]
pub struct Offer {
    /// Its number in the index of words.
    pub(super) number: u32,
    pub(super) name: CapabilityName,
    /// The capability, at its place in the card.
    pub(super) at: usize,
    pub(super) input: Option<Schema>,
    pub(super) output: Option<Schema>,
    pub(super) policy: BreakerPolicy,
    /// How long an attempt may take whose caller does not say.
    pub(super) timeout: Span,
    pub(super) breaker: Breaker,
    pub(super) history: History,
    /// The breaker's permits that are out, and since when.
    pub(super) permits: BTreeMap<Seat, (Permit, Timestamp)>,
    /// Since when nothing of what it works on has succeeded; of no account while no permit is out.
    quiet_since: Timestamp,
    /// Until when it asked to be left alone.
    pub(super) held_off_until: Timestamp,
}

impl Node {
    /// The capability of one of its offers.
    #[must_use]
    pub fn capability(&self, offer: &Offer) -> &Capability {
        &self.card.capabilities[offer.at]
    }

    /// How many seats it has for work of a tier.
    pub(super) fn room(&self, tier: Tier) -> Room {
        let offers_quicker = self.card.capabilities.iter().any(|capability| capability.tier < tier);
        Room::of(self.card.max_concurrency, offers_quicker)
    }

    /// How it is reached now: the first of its endpoints that can be used.
    #[must_use]
    pub fn endpoint(&self) -> Option<Endpoint> {
        let pulls = || Endpoint { protocol: Protocol::Queue, version: "1".to_owned(), address: String::new() };
        if self.card.endpoints.is_empty() {
            return Some(pulls());
        }
        self.card.endpoints.iter().find(|endpoint| self.can_use(endpoint)).cloned()
    }

    fn can_use(&self, endpoint: &Endpoint) -> bool {
        match endpoint.protocol {
            Protocol::Http | Protocol::Process | Protocol::Queue | Protocol::Mcp => true,
            Protocol::Websocket => self.connections > 0,
        }
    }

    /// Whether it can pull work: by its card, or over a connection that it holds open.
    #[must_use]
    pub fn can_claim(&self) -> bool {
        let pulls = |endpoint: &Endpoint| matches!(endpoint.protocol, Protocol::Queue | Protocol::Websocket);
        self.card.endpoints.is_empty() || self.card.endpoints.iter().any(pulls)
    }

    /// How it is, in a word.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> AgentState {
        match self.lease.presence(now) {
            Presence::Dead => AgentState::Dead,
            Presence::Suspect => AgentState::Suspect,
            Presence::Alive if self.is_draining => AgentState::Draining,
            Presence::Alive if self.health.ejected_at().is_some() => AgentState::Ejected,
            Presence::Alive if self.health.is_overloaded() => AgentState::Overloaded,
            Presence::Alive => AgentState::Alive,
        }
    }

    /// The breakers that are not closed, by capability.
    #[must_use]
    pub fn breakers(&self, now: Timestamp) -> BTreeMap<CapabilityName, String> {
        let states = self.offers.iter().map(|offer| (offer, offer.breaker.state(now)));
        let open = states.filter(|(_, state)| *state != crate::breaker::State::Closed);
        open.map(|(offer, state)| (offer.name.clone(), state.as_str().to_owned())).collect()
    }

    /// The agent as others see it.
    #[must_use]
    pub fn view(&self, in_flight: u32, now: Timestamp) -> AgentView {
        AgentView {
            card: (*self.card).clone(),
            state: self.state(now),
            generation: self.generation,
            registered_at: self.registered_at,
            seen_at: self.lease.renewed_at(),
            in_flight,
            reported_load: self.reported.load,
            connected: self.connections > 0,
            breakers: self.breakers(now),
            probe: self.last_probe.clone(),
        }
    }
}

impl Offer {
    /// How long one attempt may take.
    pub(super) fn attempt_timeout(&self, asked: Option<Span>) -> Span {
        asked.unwrap_or(self.timeout)
    }

    /// Goes by what its capability says, and by these where it says nothing.
    pub(super) fn go_by(&mut self, capability: &Capability, defaults: &Defaults) {
        self.policy = defaults.breaker_of(capability);
        self.timeout = defaults.timeout_of(capability);
    }

    pub(super) fn new(number: u32, at: usize, capability: &Capability, defaults: &Defaults) -> Self {
        Self {
            number,
            name: capability.name.clone(),
            at,
            input: None,
            output: None,
            policy: defaults.breaker_of(capability),
            timeout: defaults.timeout_of(capability),
            breaker: Breaker::default(),
            history: History::default(),
            permits: BTreeMap::new(),
            quiet_since: Timestamp::from_ms(0),
            held_off_until: Timestamp::from_ms(0),
        }
    }

    /// An attempt has begun.
    pub(super) fn begin(&mut self, seat: Seat, permit: Permit, now: Timestamp) {
        if self.permits.is_empty() {
            self.quiet_since = now;
        }
        self.permits.insert(seat, (permit, now));
    }

    /// An attempt has succeeded: the work moves.
    pub(super) fn moved(&mut self, now: Timestamp) {
        self.quiet_since = now;
    }

    /// For how long it has had work with no success, here or, by the agent's own word, elsewhere.
    pub(super) fn quiet_for(&self, last_success_at: Option<Timestamp>, now: Timestamp) -> Span {
        let since = last_success_at.map_or(self.quiet_since, |at| at.max(self.quiet_since));
        if self.permits.is_empty() { Span::ZERO } else { now.since(since) }
    }

    /// Keeps what was learned of the same capability under an earlier card.
    pub(super) fn inherit(&mut self, old: Self) {
        self.breaker = old.breaker;
        self.history = old.history;
        self.permits = old.permits;
        self.quiet_since = old.quiet_since;
        self.held_off_until = old.held_off_until;
    }
}
