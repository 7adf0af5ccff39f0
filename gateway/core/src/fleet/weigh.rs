//! Scores the candidates that passed the filters, and draws one among the best.

use fastrand::Rng;
use reach_schemas::{Score, Timestamp};

use super::Fleet;
use super::node::Reported;
use super::select::Fit;
use crate::score::{self, Terms};

/// A candidate with its score.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighed {
    pub(super) fit: Fit,
    pub(super) score: Score,
    /// What sending it one more would cost: usual time by work in hand over weight.
    pub(super) cost: f64,
}

impl Fleet {
    /// Scores each, best first; equals stand by their number.
    pub(super) fn weigh(&self, free: &[Fit], now: Timestamp) -> Vec<Weighed> {
        let mut weighed: Vec<Weighed> = free.iter().filter_map(|fit| self.weigh_one(*fit, now)).collect();
        weighed.sort_by(|a, b| b.score.total.total_cmp(&a.score.total).then(a.fit.number.cmp(&b.fit.number)));
        weighed
    }

    fn weigh_one(&self, fit: Fit, now: Timestamp) -> Option<Weighed> {
        let (node, offer) = self.offer(fit.number)?;
        let capability = node.capability(offer);
        let in_flight = self.bulkhead.in_flight(&node.card.agent_id);
        let Reported { load, queue_depth, dependencies, failure_rate, last_success_at } = &node.reported;
        let (latency, attempt_timeout) = (offer.history.latency(now), offer.attempt_timeout(capability, None));
        let quiet_for = offer.quiet_for(*last_success_at, now);
        let still_after = score::still_after(offer.history.p99(), attempt_timeout);
        let score = score::score(&Terms {
            routing_weight: capability.routing_weight,
            similarity: fit.similarity,
            load: score::load(in_flight, *load, *queue_depth, node.card.max_concurrency),
            dependencies: score::dependencies(dependencies.values().copied()),
            is_overloaded: node.health.is_overloaded(),
            slow_start: node.health.slow_start_factor(&self.settings.health, now),
            soundness: score::soundness(*failure_rate, quiet_for, still_after),
            success_rate: offer.history.success_rate(now),
            latency,
            attempt_timeout,
            penalty: offer.history.penalty(now),
        });
        // Of equals the one of higher priority is the cheaper one, by up to three to one.
        let weight = score.weight * score.soundness * (0.5 + f64::from(node.card.priority) / 9.0);
        let cost = score::cost(latency, in_flight.max(*load), *queue_depth, weight);
        Some(Weighed { fit, score, cost })
    }
}

/// Draws one of the near-equal best; also says whose numbers were in the draw and lost.
pub(super) fn draw(weighed: &[Weighed], rng: &mut Rng) -> Option<(usize, Vec<u32>)> {
    let table: Vec<(Score, f64)> = weighed.iter().map(|weighed| (weighed.score, weighed.cost)).collect();
    let draw = score::draw(&table, rng)?;
    let lost = draw.band.iter().filter(|at| **at != draw.chosen).map(|at| weighed[*at].fit.number).collect();
    Some((draw.chosen, lost))
}
