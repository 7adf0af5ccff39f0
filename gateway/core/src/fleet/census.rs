//! How many agents, breakers and seats there are of which kind.

use std::collections::BTreeMap;
use std::ops::Bound;

use reach_schemas::call::AgentState;
use reach_schemas::{AgentId, Tier, Timestamp};

use super::{Fleet, Node};
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

impl Census {
    /// Nothing yet, with every state.
    #[must_use]
    pub fn empty() -> Self {
        Self { agents: AgentState::ALL.map(|state| (state, 0)).into(), ..Self::default() }
    }

    fn add(&mut self, node: &Node, now: Timestamp) {
        *self.agents.entry(node.state(now)).or_default() += 1;
        for offer in &node.offers {
            match offer.breaker.state(now) {
                breaker::State::Closed => {}
                breaker::State::Open { .. } => self.breakers_open += 1,
                breaker::State::HalfOpen { .. } => self.breakers_half_open += 1,
            }
        }
    }
}

impl Fleet {
    /// Counts so many agents after this one, and their breakers, into a census; where none was left, the seats too. The last
    /// that was counted: from there it goes on. So nobody has to count them all at once.
    pub fn count(
        &self,
        census: &mut Census,
        after: Option<&AgentId>,
        at_most: usize,
        now: Timestamp,
    ) -> Option<AgentId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut last = None;
        for (id, at) in self.by_id.range::<AgentId, _>((from, Bound::Unbounded)).take(at_most) {
            if let Some(node) = &self.nodes[*at] {
                census.add(node, now);
            }
            last = Some(id);
        }
        if last.is_none() {
            let seats = |tier| (tier, self.bulkhead.in_tier(tier), self.settings.tier_limits.of(tier));
            census.seats = Tier::ALL.map(seats).into();
        }
        last.cloned()
    }
}
