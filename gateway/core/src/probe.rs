//! When an agent is to be probed again, and what came of a probe.
//!
//! One probe of an agent is out at a time. The next begins one interval after the last one began, and while there is
//! doubt about the agent after a third of it: a zombie is found out soon, and one that is well again is back soon.

use reach_schemas::call::HealthReport;
use reach_schemas::{ProbePolicy, Span, Timestamp};

/// An agent in doubt is probed so many times as often.
pub const IN_DOUBT_FACTOR: u64 = 3;
/// The least time between two probes of an agent in doubt, unless its interval is shorter still.
pub const IN_DOUBT_MIN: Span = Span::from_ms(250);
/// What part of the wait is left to chance, earlier or later.
const JITTER: u64 = 10;

/// What came of one probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    /// How long it took until there was an answer, or none was waited for any longer.
    pub took: Span,
    /// What the agent said, or why the probe failed.
    pub answer: Result<HealthReport, String>,
}

/// When the next probe begins: the interval, or a third of it in doubt, after the last one began, give or take a tenth
/// so that agents that registered together are not probed together. Never before the last one ended.
#[must_use]
pub fn next_at(
    began_at: Timestamp,
    ended_at: Timestamp,
    policy: &ProbePolicy,
    is_in_doubt: bool,
    rng: &mut fastrand::Rng,
) -> Timestamp {
    let interval = usual(policy, is_in_doubt).as_ms();
    let wait = interval - interval / JITTER + rng.u64(0..=2 * (interval / JITTER));
    (began_at + Span::from_ms(wait)).max(ended_at)
}

/// The latest that [`next_at`] comes to for a probe that begins now and is over at once.
#[must_use]
pub fn latest(now: Timestamp, policy: &ProbePolicy, is_in_doubt: bool) -> Timestamp {
    let interval = usual(policy, is_in_doubt);
    now + interval + Span::from_ms(interval.as_ms() / JITTER)
}

fn usual(policy: &ProbePolicy, is_in_doubt: bool) -> Span {
    if is_in_doubt { in_doubt(policy.interval) } else { policy.interval }
}

fn in_doubt(interval: Span) -> Span {
    Span::from_ms(interval.as_ms() / IN_DOUBT_FACTOR).max(IN_DOUBT_MIN).min(interval)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::health::{Health, HealthChange, HealthPolicy, ProbeOutcome};

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(1_000_000 + ms)
    }

    fn policy(interval: u64, timeout: u64) -> ProbePolicy {
        ProbePolicy { interval: Span::from_ms(interval), timeout: Span::from_ms(timeout), command: None }
    }

    /// Probes an agent that hangs from 1 ms on, and is well again from `well_from_ms` on; how long it took until it was
    /// out, and from then until it was back.
    fn hang(policy: &ProbePolicy, well_from_ms: u64, seed: u64) -> (Span, Span) {
        let (mut rng, mut health) = (fastrand::Rng::with_seed(seed), Health::new(at(0)));
        let mut out_at = None;
        // The last probe that passed began the moment before.
        let mut begins_at = next_at(at(0), at(1), policy, false, &mut rng);
        loop {
            let is_well = begins_at >= at(well_from_ms);
            let took = if is_well { Span::from_ms(1) } else { policy.timeout };
            let outcome = if is_well { ProbeOutcome::Passed { took } } else { ProbeOutcome::Failed };
            let now = begins_at + took;
            match health.record(outcome, None, &HealthPolicy::default(), now) {
                Some(HealthChange::Ejected) => out_at = Some(now),
                Some(HealthChange::Restored) => return (out_at.unwrap().since(at(1)), now.since(at(well_from_ms))),
                Some(HealthChange::Overloaded | HealthChange::Relieved) | None => {}
            }
            begins_at = next_at(begins_at, now, policy, health.is_in_doubt(), &mut rng);
        }
    }

    #[test]
    fn a_zombie_is_out_within_10_s_of_3_s_intervals_and_back_within_one_interval_once_it_is_well() {
        for seed in 0..1000 {
            // Well again at any moment of the round.
            let well_from = 20_000 + seed * 7;
            let (out, back) = hang(&policy(3_000, 1_000), well_from, seed);
            assert!(out <= Span::from_ms(6_600) && back <= Span::from_secs(3), "seed {seed}: {out}, {back}");
            let (out, back) = hang(&policy(3_000, 2_000), well_from, seed);
            assert!(out <= Span::from_ms(9_400) && back <= Span::from_ms(3_200), "seed {seed}: {out}, {back}");
        }
    }

    #[test]
    fn in_doubt_an_agent_is_asked_at_a_third_of_its_interval_but_not_without_a_pause() {
        let spans = [30_000, 3_000, 600, 200].map(|ms| in_doubt(Span::from_ms(ms)).as_ms());
        assert_eq!(spans, [10_000, 1_000, 250, 200]);
    }

    proptest! {
        #[test]
        fn a_probe_begins_within_a_tenth_of_its_time_and_never_before_the_last_one_ended(
            interval in 100_u64..86_400_000, took in 0_u64..60_000, is_in_doubt: bool, seed: u64,
        ) {
            let (policy, mut rng) = (policy(interval, 60_000), fastrand::Rng::with_seed(seed));
            let next = next_at(at(0), at(took), &policy, is_in_doubt, &mut rng);
            let usual = usual(&policy, is_in_doubt).as_ms();
            prop_assert!(next >= at(took) && next <= latest(at(0), &policy, is_in_doubt).max(at(took)));
            prop_assert!(next.since(at(0)).as_ms() >= usual - usual / 10);
        }
    }
}
