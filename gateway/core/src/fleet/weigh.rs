//! Scores the candidates that passed the filters, and draws one among the best.

use std::collections::BTreeMap;

use fastrand::Rng;
use reach_schemas::{CapabilityName, Score, Timestamp};

use super::Fleet;
use super::node::{Node, Offer, Reported};
use super::select::Fit;
use crate::score::{self, Outcomes, Terms, Together};

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
        let learned = self.learned(free, now);
        let each = free.iter().zip(learned);
        let mut weighed: Vec<Weighed> = each.filter_map(|(fit, learned)| self.weigh_one(*fit, learned, now)).collect();
        weighed.sort_by(|a, b| b.score.total.total_cmp(&a.score.total).then(a.fit.number.cmp(&b.fit.number)));
        weighed
    }

    /// What outcomes make of the weight of each, beside those of the others in question that offer the same.
    fn learned(&self, free: &[Fit], now: Timestamp) -> Vec<f64> {
        let learning = self.settings.learning;
        if !learning.enabled || free.len() < 2 {
            return vec![1.0; free.len()];
        }
        let outcomes: Vec<Outcomes> = free
            .iter()
            .map(|fit| self.offer(fit.number).map(|(_, offer)| offer.history.outcomes(now)).unwrap_or_default())
            .collect();
        let name_of = |fit: &Fit| self.offer(fit.number).map(|(_, offer)| &offer.name);
        let mut together: BTreeMap<Option<&CapabilityName>, Together> = BTreeMap::new();
        for (fit, own) in free.iter().zip(&outcomes) {
            together.entry(name_of(fit)).or_default().add(own);
        }
        let one = |(fit, own): (&Fit, &Outcomes)| {
            let may = |(node, offer): (&Node, &Offer)| node.capability(offer).learned_weight.unwrap_or(true);
            let all = together.get(&name_of(fit)).filter(|_| self.offer(fit.number).is_some_and(may));
            all.map_or(1.0, |all| score::learned(own, all, learning.most))
        };
        free.iter().zip(&outcomes).map(one).collect()
    }

    fn weigh_one(&self, fit: Fit, learned: f64, now: Timestamp) -> Option<Weighed> {
        let (node, offer) = self.offer(fit.number)?;
        let capability = node.capability(offer);
        let in_flight = self.bulkhead.in_flight(&node.card.agent_id);
        let Reported { load, queue_depth, dependencies, failure_rate, last_success_at } = &node.reported;
        let (latency, attempt_timeout) = (offer.history.latency(now), offer.attempt_timeout(None));
        let quiet_for = offer.quiet_for(*last_success_at, now);
        let still_after = score::still_after(offer.history.p99(), attempt_timeout);
        let score = score::score(&Terms {
            routing_weight: capability.routing_weight,
            learned,
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
        let weight = score.learned_weight() * score.soundness * (0.5 + f64::from(node.card.priority) / 9.0);
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
