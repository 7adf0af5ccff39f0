//! How sound an agent is at this moment, apart from how full it is: by the failures that it reports itself, and by
//! whether the work that it has moves. It weighs and never shuts out: what certainly fails is the breaker's affair, and
//! what does not answer the probes'.

use reach_schemas::Span;

use super::unit;

/// What is left at least, so that an agent can show that it is well again.
const LEFT_MIN: f64 = 0.1;
/// Work in which nothing succeeded for so many times what it usually takes stands still.
const STILL_FACTOR: u64 = 3;
/// Nothing stands still within so short a time, however quick the agent is as a rule.
const STILL_MIN: Span = Span::from_secs(1);

/// How long work may be in hand with no success before it stands still: three times the P99 of this work there, or, as
/// long as that is not known, as long as an attempt may take. Never longer than that, and at least a second.
#[must_use]
pub fn still_after(p99: Option<Span>, attempt_timeout: Span) -> Span {
    p99.map_or(attempt_timeout, |p99| p99.times(STILL_FACTOR).min(attempt_timeout)).max(STILL_MIN)
}

/// What is left of an agent's availability: the share of its tasks that did not fail by its own report, times 1 while
/// its work moves and less the longer it stands still. `quiet_for` is how long it has had work with no success.
#[must_use]
pub fn soundness(failure_rate: f64, quiet_for: Span, still_after: Span) -> f64 {
    let moves = still_after.as_ms().max(1) as f64 / quiet_for.as_ms().max(1) as f64;
    ((1.0 - unit(failure_rate)) * unit(moves)).max(LEFT_MIN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Span = Span::from_secs(1);

    #[test]
    fn reported_failures_weigh_as_they_are_and_leave_a_tenth() {
        let left = [0.0, 0.25, 0.95, 1.0, 7.0, f64::NAN].map(|rate| soundness(rate, Span::ZERO, SECOND));
        assert_eq!(left, [1.0, 0.75, 0.1, 0.1, 0.1, 1.0]);
    }

    #[test]
    fn work_that_stands_still_weighs_more_the_longer_it_does() {
        let left = [0, 1, 3, 6, 30, 3_000].map(|secs| soundness(0.0, Span::from_secs(secs), Span::from_secs(3)));
        assert_eq!(left, [1.0, 1.0, 1.0, 0.5, 0.1, 0.1]);
        assert_eq!(soundness(0.5, Span::from_secs(6), Span::from_secs(3)), 0.25);
    }

    #[test]
    fn still_is_what_takes_three_times_the_usual_but_no_mere_hiccup() {
        let timeout = Span::from_secs(15);
        let after = |p99: Option<u64>| still_after(p99.map(Span::from_ms), timeout);
        assert_eq!(after(None), timeout);
        assert_eq!((after(Some(2_000)), after(Some(14_000)), after(Some(2))), (Span::from_secs(6), timeout, SECOND));
    }

    proptest! {
        #[test]
        fn it_never_shuts_out_and_never_lifts(rate in prop::num::f64::ANY, quiet: u64, p99: Option<u64>, timeout: u64) {
            let after = still_after(p99.map(Span::from_ms), Span::from_ms(timeout));
            prop_assert!((LEFT_MIN..=1.0).contains(&soundness(rate, Span::from_ms(quiet), after)));
        }
    }
}
