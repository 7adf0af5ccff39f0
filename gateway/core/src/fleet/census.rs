//! How many agents, breakers and seats there are of which kind.

use std::collections::BTreeMap;

use reach_schemas::call::AgentState;
use reach_schemas::{Tier, Timestamp};

use super::Fleet;
use crate::breaker;

/// How many there are of which kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Census {
    /// Agents by state; every state is there.
    pub agents: BTreeMap<AgentState, u64>,
    /// Breakers that are open.
    pub breakers_open: u64,
    /// Breakers that are trying.
    pub breakers_half_open: u64,
    /// Seats that are taken, and how many there are, by tier.
    pub seats: Vec<(Tier, u32, u32)>,
}

impl Fleet {
    /// Counts agents, breakers and seats.
    #[must_use]
    pub fn census(&self, now: Timestamp) -> Census {
        let mut census = Census { agents: AgentState::ALL.map(|state| (state, 0)).into(), ..Census::default() };
        for node in self.nodes() {
            *census.agents.entry(node.state(now)).or_default() += 1;
            for offer in &node.offers {
                match offer.breaker.state(now) {
                    breaker::State::Closed => {}
                    breaker::State::Open { .. } => census.breakers_open += 1,
                    breaker::State::HalfOpen { .. } => census.breakers_half_open += 1,
                }
            }
        }
        let seats = |tier| (tier, self.bulkhead.in_tier(tier), self.settings.tier_limits.of(tier));
        census.seats = Tier::ALL.map(seats).into();
        census
    }
}
