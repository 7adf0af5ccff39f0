//! The reach score of a candidate, and the choice among those that are about as good. Walls come before: a candidate
//! that may not or cannot do the work is never scored.

use reach_schemas::call::DependencyState;
use reach_schemas::{Score, Span};

mod draw;
mod learning;
mod soundness;

pub use self::draw::{BAND, Draw, cost, draw};
pub use self::learning::{Learning, MOST_MAX, Outcomes, Together, learned};
pub use self::soundness::{soundness, still_after};

/// What fit counts in the total.
///
/// Fit says what is wanted, availability and history how well it would go now. The latter two together count as much
/// as fit: a candidate in the best of health draws level with one that fits perfectly and is at its worst, and never
/// passes it. Availability is of this moment and counts more than history, so that an idle agent of good record is
/// preferred to a busy one of the best.
pub const FIT: f64 = 0.5;
/// What availability counts in the total.
pub const AVAILABILITY: f64 = 0.3;
/// What history counts in the total.
pub const HISTORY: f64 = 0.2;

/// What is left of the availability of an agent that reported more work than it can take.
const OVERLOADED: f64 = 0.3;
/// What is left of it where something the agent needs works badly.
const DEGRADED: f64 = 0.7;
/// What is left of it where something the agent needs does not work. Not nothing: not all its work may need it.
const DOWN: f64 = 0.2;
/// What success and latency count within history, before the penalty.
const SUCCESS_IN_HISTORY: f64 = 0.7;

/// What a score is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// The capability's routing weight, 0 to 100.
    pub routing_weight: u8,
    /// What outcomes make of it: see [`learned`].
    pub learned: f64,
    /// How near the intent's words are, 0 to 1; 1 when the caller named it.
    pub similarity: f64,
    /// How full the agent is: see [`load`].
    pub load: f64,
    /// How well what it needs works: see [`dependencies`].
    pub dependencies: f64,
    /// Whether it reported more than it can take.
    pub is_overloaded: bool,
    /// 0.1 to 1 while it is new or just back.
    pub slow_start: f64,
    /// What its own failures and work that stands still leave of it: see [`soundness`].
    pub soundness: f64,
    /// Its success rate over 24 h, 0 to 1.
    pub success_rate: f64,
    /// The latency to reckon with now.
    pub latency: Span,
    /// How long an attempt may take; a latency of this much is worth nothing.
    pub attempt_timeout: Span,
    /// How far it is held back for failing again and again, 0 to 1.
    pub penalty: f64,
}

/// The score of a candidate. Every part is 0 to 1, whatever the terms.
///
/// Fit is 0.6 weight, moved by what was learned and at most 1, and 0.4 similarity. Availability is the share of seats that are free, times dependencies, times
/// overload, times slow start, times soundness: each can spoil it alone. History is 0.7 success rate and 0.3 latency, times what the
/// penalty leaves.
#[must_use]
pub fn score(terms: &Terms) -> Score {
    let weight = f64::from(terms.routing_weight.min(100)) / 100.0;
    let similarity = unit(terms.similarity);
    let learned = if terms.learned.is_nan() { 1.0 } else { terms.learned.clamp(1.0 - MOST_MAX, 1.0 + MOST_MAX) };
    let fit = 0.6 * unit(weight * learned) + 0.4 * similarity;

    let (load, dependencies, slow_start) = (unit(terms.load), unit(terms.dependencies), unit(terms.slow_start));
    let overload = if terms.is_overloaded { OVERLOADED } else { 1.0 };
    let soundness = unit(terms.soundness);
    let availability = (1.0 - load) * dependencies * overload * slow_start * soundness;

    let latency_ms = terms.latency.as_ms() as f64;
    let quickness = 1.0 - unit(latency_ms / terms.attempt_timeout.as_ms().max(1) as f64);
    let success_rate = unit(terms.success_rate);
    let record = SUCCESS_IN_HISTORY * success_rate + (1.0 - SUCCESS_IN_HISTORY) * quickness;
    let history = record * (1.0 - unit(terms.penalty));

    Score {
        total: unit(FIT * fit + AVAILABILITY * availability + HISTORY * history),
        fit,
        weight,
        learned,
        similarity,
        availability,
        load,
        dependencies,
        overload,
        slow_start,
        soundness,
        history,
        success_rate,
        latency_ms,
    }
}

/// How full an agent is, 0 to 1: by what we gave it or by what it says it has and holds, whichever is more, since it
/// may have other callers and its word may be old.
#[must_use]
pub fn load(in_flight: u32, reported_load: u32, reported_queue: u32, max_concurrency: u32) -> f64 {
    let reported = u64::from(reported_load) + u64::from(reported_queue);
    let has = u64::from(in_flight).max(reported);
    unit(has as f64 / f64::from(max_concurrency.max(1)))
}

/// What the state of the things an agent needs leaves of its availability, 0 to 1. The worst of them counts; one of
/// which nothing is known is not among them.
#[must_use]
pub fn dependencies(states: impl IntoIterator<Item = DependencyState>) -> f64 {
    let left = |state| match state {
        DependencyState::Up => 1.0,
        DependencyState::Degraded => DEGRADED,
        DependencyState::Down => DOWN,
    };
    states.into_iter().map(left).fold(1.0, f64::min)
}

/// What is not a number counts as nothing, so that one bad term cannot put a candidate above all others.
fn unit(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WELL: Terms = Terms {
        routing_weight: 50,
        learned: 1.0,
        similarity: 1.0,
        load: 0.0,
        dependencies: 1.0,
        is_overloaded: false,
        slow_start: 1.0,
        soundness: 1.0,
        success_rate: 1.0,
        latency: Span::from_secs(1),
        attempt_timeout: Span::from_secs(15),
        penalty: 0.0,
    };

    #[track_caller]
    fn check_above(better: Terms, worse: Terms) {
        let (better, worse) = (score(&better), score(&worse));
        assert!(better.total > worse.total, "{better:?}\n{worse:?}");
    }

    #[test]
    fn the_total_is_the_weighted_sum_of_its_parts() {
        let it = score(&Terms { load: 0.5, ..WELL });
        assert_eq!((it.fit, it.availability, it.history), (0.6 * 0.5 + 0.4, 0.5, 0.7 + 0.3 * (1.0 - 1.0 / 15.0)));
        assert!((it.total - (0.5 * it.fit + 0.3 * it.availability + 0.2 * it.history)).abs() < 1e-12);
    }

    #[test]
    fn each_term_pulls_its_way() {
        check_above(Terms { routing_weight: 60, ..WELL }, WELL);
        check_above(Terms { learned: 1.1, ..WELL }, WELL);
        check_above(WELL, Terms { similarity: 0.9, ..WELL });
        check_above(WELL, Terms { load: 0.1, ..WELL });
        check_above(WELL, Terms { dependencies: 0.5, ..WELL });
        check_above(WELL, Terms { is_overloaded: true, ..WELL });
        check_above(WELL, Terms { slow_start: 0.1, ..WELL });
        check_above(WELL, Terms { soundness: 0.5, ..WELL });
        check_above(WELL, Terms { success_rate: 0.9, ..WELL });
        check_above(WELL, Terms { latency: Span::from_secs(2), ..WELL });
        check_above(WELL, Terms { penalty: 0.5, ..WELL });
    }

    #[test]
    fn the_best_health_lifts_no_misfit_above_a_perfect_fit() {
        let misfit = Terms { routing_weight: 0, similarity: 0.0, latency: Span::ZERO, ..WELL };
        let fits_at_its_worst = Terms { routing_weight: 100, load: 1.0, penalty: 1.0, ..WELL };
        assert!(score(&misfit).total <= score(&fits_at_its_worst).total);
    }

    #[test]
    fn load_is_what_we_gave_or_what_it_says_whichever_is_more() {
        assert_eq!((load(2, 0, 0, 8), load(2, 3, 1, 8), load(9, 0, 0, 8), load(0, 0, 0, 0)), (0.25, 0.5, 1.0, 0.0));
    }

    #[test]
    fn the_worst_of_what_it_needs_counts() {
        use DependencyState::{Degraded, Down, Up};
        assert_eq!(dependencies([]), 1.0);
        assert_eq!((dependencies([Up, Degraded, Up]), dependencies([Degraded, Down])), (DEGRADED, DOWN));
    }

    fn any_number() -> impl Strategy<Value = f64> {
        prop_oneof![prop::num::f64::ANY, 0.0..=1.0]
    }

    proptest! {
        #[test]
        fn every_part_is_from_0_to_1_whatever_the_terms(
            routing_weight: u8, is_overloaded: bool, ms: u64, timeout_ms: u64,
            learned in any_number(), numbers in prop::array::uniform7(any_number()),
        ) {
            let [similarity, load, dependencies, slow_start, soundness, success_rate, penalty] = numbers;
            let it = score(&Terms {
                routing_weight, learned, similarity, load, dependencies, is_overloaded, slow_start, soundness, success_rate,
                latency: Span::from_ms(ms), attempt_timeout: Span::from_ms(timeout_ms), penalty,
            });
            let parts = [
                it.total, it.fit, it.weight, it.similarity, it.availability, it.load, it.dependencies, it.overload,
                it.slow_start, it.soundness, it.history, it.success_rate,
            ];
            prop_assert!((0.5..=1.5).contains(&it.learned), "{it:?}");
            prop_assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)), "{it:?}");
        }
    }
}
