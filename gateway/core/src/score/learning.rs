//! What outcomes make of a capability's routing weight. Its owner says how strongly it is offered; how it has done, beside
//! the others that offer the same and are in question, moves that by a share, bounded both ways. It decides among those
//! that passed every filter and lets nobody past one; where there is nothing to compare, it moves nothing.

use serde::{Deserialize, Serialize};

/// The widest bound that may be set.
pub const MOST_MAX: f64 = 0.5;
/// A success rate that is lower by so much moves a weight by all that it may be moved.
const RATE_SPAN: f64 = 0.5;
/// How much of the bound the time of successes has a say in; the rest is for whether they are successes.
const TIME_SHARE: f64 = 0.25;
/// Being so many times as quick moves a weight by all that time has a say in.
const TIME_FACTOR: f64 = 4.0;
/// With so many outcomes on either side, half of what they say is believed.
const HALF_BELIEVED: f64 = 20.0;

/// Whether outcomes move routing weights, and how far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Learning {
    /// Whether they do.
    pub enabled: bool,
    /// By which share at most, up or down.
    pub most: f64,
}

impl Default for Learning {
    fn default() -> Self {
        Self { enabled: true, most: 0.3 }
    }
}

/// How one agent has done at one capability. Older outcomes count less, so these are no whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Outcomes {
    /// What it answered.
    pub succeeded: f64,
    /// What it failed.
    pub failed: f64,
    /// How long a success takes as a rule, in ms. None: there was none.
    pub usual_ms: Option<f64>,
}

/// How several have done together, to be compared with one of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Together {
    succeeded: f64,
    failed: f64,
    /// The sum of the logarithms of their usual times, and how many there are.
    log_ms: f64,
    timed: f64,
}

fn log_of(usual_ms: Option<f64>) -> Option<f64> {
    // What takes no time at all takes a millisecond here.
    usual_ms.map(|ms| ms.max(1.0).ln())
}

impl Together {
    /// Takes one more in.
    pub fn add(&mut self, one: &Outcomes) {
        self.succeeded += one.succeeded;
        self.failed += one.failed;
        if let Some(log) = log_of(one.usual_ms) {
            self.log_ms += log;
            self.timed += 1.0;
        }
    }

    fn without(mut self, one: &Outcomes) -> Self {
        self.succeeded -= one.succeeded;
        self.failed -= one.failed;
        if let Some(log) = log_of(one.usual_ms) {
            self.log_ms -= log;
            self.timed -= 1.0;
        }
        self
    }
}

/// What the weight of one of these is multiplied by, 1 - `most` to 1 + `most`: more than 1 if it did better than the others
/// together, by its success rate and by the time of its successes. 1 if it or the others have done nothing lately.
#[must_use]
pub fn learned(own: &Outcomes, all: &Together, most: f64) -> f64 {
    let others = all.without(own);
    let (calls, theirs) = (own.succeeded + own.failed, others.succeeded + others.failed);
    let least = calls.min(theirs);
    // A remainder of a subtraction is no outcome.
    if !(least > 1e-6 && most > 0.0) {
        return 1.0;
    }
    let by_rate = (own.succeeded / calls - others.succeeded / theirs) / RATE_SPAN;
    let by_time = match log_of(own.usual_ms) {
        Some(log) if others.timed >= 1.0 => (others.log_ms / others.timed - log) / TIME_FACTOR.ln(),
        Some(_) | None => 0.0,
    };
    let better = by_rate.clamp(-1.0, 1.0) + TIME_SHARE * by_time.clamp(-1.0, 1.0);
    let believed = least / (least + HALF_BELIEVED);
    let moved = better.clamp(-1.0, 1.0) * believed;
    if moved.is_nan() { 1.0 } else { 1.0 + most.min(MOST_MAX) * moved }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outcomes(succeeded: f64, failed: f64, usual_ms: f64) -> Outcomes {
        Outcomes { succeeded, failed, usual_ms: (succeeded > 0.0).then_some(usual_ms) }
    }

    /// What becomes of the weight of the first among all, in hundredths.
    fn first(all: &[Outcomes]) -> i64 {
        let mut together = Together::default();
        all.iter().for_each(|one| together.add(one));
        (learned(&all[0], &together, 0.3) * 100.0).round() as i64
    }

    #[test]
    fn who_does_better_than_the_others_rises_and_who_does_worse_sinks() {
        let (well, badly) = (outcomes(1000.0, 0.0, 100.0), outcomes(0.0, 1000.0, 100.0));
        assert_eq!((first(&[well, badly]), first(&[badly, well])), (129, 71));
        assert_eq!((first(&[well, well]), first(&[badly, badly])), (100, 100), "equals stay");
        let a_little_worse = outcomes(900.0, 100.0, 100.0);
        assert_eq!((first(&[a_little_worse, well]), first(&[well, a_little_worse])), (94, 106));
        let (quick, slow) = (outcomes(1000.0, 0.0, 100.0), outcomes(1000.0, 0.0, 400.0));
        assert_eq!((first(&[quick, slow]), first(&[slow, quick])), (107, 93), "time has a quarter of the say");
        assert_eq!(first(&[badly, well, well, well]), 71, "many others are one measure");
    }

    #[test]
    fn little_says_little_and_nothing_says_nothing() {
        let (well, none) = (outcomes(1000.0, 0.0, 100.0), Outcomes::default());
        let badly = |calls: f64| outcomes(0.0, calls, 0.0);
        let moved = [1.0, 5.0, 20.0, 80.0].map(|calls| first(&[badly(calls), well]));
        assert_eq!(moved, [99, 94, 85, 76]);
        assert_eq!((first(&[badly(80.0)]), first(&[badly(80.0), none]), first(&[none, well])), (100, 100, 100));
    }

    proptest! {
        #[test]
        fn a_weight_is_never_moved_beyond_its_bound_whatever_the_outcomes(
            all in prop::collection::vec((0.0..1e9, 0.0..1e9, prop::option::of(0.0..1e12)), 1..6),
            most in prop_oneof![prop::num::f64::ANY, 0.0..=0.5],
        ) {
            let all: Vec<Outcomes> = all
                .into_iter()
                .map(|(succeeded, failed, usual_ms)| Outcomes { succeeded, failed, usual_ms })
                .collect();
            let mut together = Together::default();
            all.iter().for_each(|one| together.add(one));
            for one in &all {
                let factor = learned(one, &together, most);
                let bound = if most > 0.0 { most.min(MOST_MAX) } else { 0.0 };
                prop_assert!(((1.0 - bound)..=(1.0 + bound)).contains(&factor), "{factor} with {most}");
            }
        }
    }
}
