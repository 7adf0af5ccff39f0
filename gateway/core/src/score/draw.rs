//! The choice among candidates that are about as good: two of them by chance, and of the two the one that costs less.
//! Callers who all see the same scores thus do not all run to the same agent, and a slow one is still avoided
//! (Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing").

use reach_schemas::{Score, Span};

use super::AVAILABILITY;

/// Candidates whose totals are within this of the best are about as good.
pub const BAND: f64 = 0.05;

/// Who was drawn, by place in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draw {
    /// The one that gets the work.
    pub chosen: usize,
    /// All that were about as good and might have got it, the chosen one among them, in the order of the list.
    pub band: Vec<usize>,
}

/// What a request would cost at an agent: how long it takes there now, for as many as are there already and this one,
/// divided by how much it is to be preferred (1: as any).
#[must_use]
pub fn cost(latency: Span, in_flight: u32, reported_queue: u32, weight: f64) -> f64 {
    let ahead = f64::from(in_flight) + f64::from(reported_queue);
    latency.as_ms().max(1) as f64 * (ahead + 1.0) / weight.max(f64::MIN_POSITIVE)
}

/// Chooses among scored candidates, each with its cost. None: there are none.
///
/// Slow start is a share of the work and not a worse score: candidates are compared as if it were over, and then each
/// stays in the draw with the chance of its slow start. One that is at 10 % thus gets a tenth of what it would get; a
/// fleet that is all new, or a new agent that fits best, gets its work all the same.
#[must_use]
pub fn draw(candidates: &[(Score, f64)], rng: &mut fastrand::Rng) -> Option<Draw> {
    let totals: Vec<f64> = candidates.iter().map(|(score, _)| settled_total(score)).collect();
    let best = totals.iter().copied().max_by(f64::total_cmp)?;
    let band: Vec<usize> = (0..totals.len()).filter(|index| totals[*index] >= best - BAND).collect();
    let mut kept = band.clone();
    kept.retain(|index| rng.f64() < candidates[*index].0.slow_start);
    if kept.is_empty() {
        kept.clone_from(&band);
    }
    let first = kept.swap_remove(rng.usize(0..kept.len()));
    let chosen = if kept.is_empty() {
        first
    } else {
        let second = kept[rng.usize(0..kept.len())];
        if candidates[second].1 < candidates[first].1 { second } else { first }
    };
    Some(Draw { chosen, band })
}

/// The total as it would be without slow start.
fn settled_total(score: &Score) -> f64 {
    let settled = (1.0 - score.load) * score.dependencies * score.overload * score.soundness;
    score.total + AVAILABILITY * (settled - score.availability)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Terms, score};
    use super::*;

    fn candidate(routing_weight: u8, slow_start: f64, cost: f64) -> (Score, f64) {
        let terms = Terms {
            routing_weight,
            learned: 1.0,
            similarity: 1.0,
            load: 0.0,
            dependencies: 1.0,
            is_overloaded: false,
            slow_start,
            soundness: 1.0,
            success_rate: 1.0,
            latency: Span::from_secs(1),
            attempt_timeout: Span::from_secs(15),
            penalty: 0.0,
        };
        (score(&terms), cost)
    }

    fn shares(candidates: &[(Score, f64)]) -> Vec<usize> {
        let mut rng = fastrand::Rng::with_seed(11);
        let mut counts = vec![0; candidates.len()];
        for _ in 0..10_000 {
            counts[draw(candidates, &mut rng).unwrap().chosen] += 1;
        }
        counts
    }

    #[test]
    fn nobody_is_drawn_from_nobody_and_the_far_best_always_wins() {
        assert_eq!(draw(&[], &mut fastrand::Rng::with_seed(1)), None);
        assert_eq!(shares(&[candidate(20, 1.0, 1.0), candidate(90, 1.0, 1000.0)]), [0, 10_000]);
    }

    #[test]
    fn equals_share_evenly_and_the_dearest_of_three_gets_nothing() {
        for count in shares(&[candidate(50, 1.0, 1.0); 4]) {
            assert!((2_300..2_700).contains(&count), "{count} of 10000");
        }
        let [cheap, middling, dear] =
            shares(&[candidate(50, 1.0, 1.0), candidate(51, 1.0, 2.0), candidate(52, 1.0, 3.0)])[..]
        else {
            panic!("three candidates have three shares")
        };
        assert!(cheap > 6_300 && middling > 3_000 && dear == 0);
    }

    #[test]
    fn an_agent_at_a_tenth_gets_a_tenth_of_its_share() {
        let count = shares(&[candidate(50, 1.0, 1.0), candidate(50, 0.1, 1.0)])[1];
        assert!((420..580).contains(&count), "{count} of 10000, where its whole share is 5000");
    }

    #[test]
    fn where_all_are_new_all_get_work() {
        for count in shares(&[candidate(50, 0.1, 1.0); 3]) {
            assert!((3_000..3_700).contains(&count), "{count} of 10000");
        }
        assert_eq!(shares(&[candidate(50, 0.1, 1.0)]), [10_000]);
    }

    #[test]
    fn what_costs_more_is_slower_fuller_or_less_preferred() {
        let base = cost(Span::from_secs(1), 1, 1, 1.0);
        assert_eq!(base, 3_000.0);
        assert!(cost(Span::from_secs(2), 1, 1, 1.0) > base && cost(Span::from_secs(1), 2, 1, 1.0) > base);
        assert!(cost(Span::from_secs(1), 1, 1, 2.0) < base && cost(Span::ZERO, 0, 0, 0.0) > base);
    }

    proptest! {
        #[test]
        fn only_the_band_is_drawn_from_and_the_same_seed_draws_the_same(
            seed: u64,
            list in prop::collection::vec((0_u8..=100, 0.0..=1.0_f64, prop::num::f64::ANY), 1..20),
        ) {
            let list: Vec<_> = list.into_iter().map(|(weight, slow, cost)| candidate(weight, slow, cost)).collect();
            let drawn = draw(&list, &mut fastrand::Rng::with_seed(seed)).unwrap();
            let best = list.iter().map(|(score, _)| settled_total(score)).fold(0.0, f64::max);
            prop_assert!(drawn.band.contains(&drawn.chosen));
            for (index, (score, _)) in list.iter().enumerate() {
                prop_assert_eq!(drawn.band.contains(&index), settled_total(score) >= best - BAND);
            }
            prop_assert_eq!(draw(&list, &mut fastrand::Rng::with_seed(seed)).unwrap(), drawn);
        }
    }
}
