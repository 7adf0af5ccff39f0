//! What there is, for callers who choose themselves: by words, or all of it.

use reach_schemas::call::Found;
use reach_schemas::{Namespace, Timestamp};

use super::Fleet;
use super::filter::is_offered;
use super::node::{Node, Offer};
use crate::access::Caller;
use crate::breaker::Admission;
use crate::hours;
use crate::lease::Presence;
use crate::lexical::Intent;

impl Fleet {
    /// The capabilities that fit the words best, best first; without words, all in the order of their agents. Only what
    /// the caller may reach is found.
    #[must_use]
    pub fn find(
        &self,
        caller: &Caller,
        namespace: Option<&Namespace>,
        words: Option<&str>,
        limit: usize,
        now: Timestamp,
    ) -> Vec<Found> {
        let is_offered = |node: &Node, offer: &Offer| is_offered(caller, namespace, node, offer);
        let Some(words) = words else {
            let offers = self.nodes().flat_map(|node| node.offers.iter().map(move |offer| (node, offer)));
            let all = offers.filter(|(node, offer)| is_offered(node, offer));
            return all.take(limit).map(|(node, offer)| found(caller, node, offer, None, now)).collect();
        };
        let keep = |number: u32| self.offer(number).is_some_and(|(node, offer)| is_offered(node, offer));
        let matches = self.index.search(&Intent::from(words), keep, limit, &mut self.scratch.borrow_mut());
        let found = matches.into_iter().filter_map(|hit| {
            let (node, offer) = self.offer(hit.doc)?;
            Some(found(caller, node, offer, Some(hit.similarity), now))
        });
        found.collect()
    }
}

/// What stands in for a capability once every try has failed is its owner's affair: it may name what the caller may not
/// reach.
fn found(caller: &Caller, node: &Node, offer: &Offer, similarity: Option<f64>, now: Timestamp) -> Found {
    let mut capability = node.capability(offer).clone();
    if caller.agent_id().is_some_and(|id| *id != node.card.agent_id) {
        capability.fallback.clear();
    }
    Found { agent_id: node.card.agent_id.clone(), capability, similarity, available: is_available(node, offer, now) }
}

/// Whether it could take work now, parameters and seats aside.
fn is_available(node: &Node, offer: &Offer, now: Timestamp) -> bool {
    let is_closed = matches!(offer.breaker.admission(now), Admission::Refused { .. });
    node.lease.presence(now) == Presence::Alive
        && !node.is_draining
        && node.health.ejected_at().is_none()
        && node.endpoint().is_some()
        && hours::takes_work_at(&node.card.availability, now)
        && !is_closed
}
