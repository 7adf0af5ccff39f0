//! How one capability of one agent has done: success rate over 24 h, latency now and at the far end, and a penalty for
//! failing again and again that wears off. Scores are made of it; it decides nothing itself.

mod quantile;

use std::collections::VecDeque;

use reach_schemas::{Span, Timestamp};
use serde::{Deserialize, Serialize};

pub use self::quantile::Quantiles;
use crate::score::Outcomes;

/// How many hours the success rate looks back on.
const HOURS: u64 = 24;
/// A rate of one call says little: so many successes are imagined beside the real calls. A first failure thus leaves
/// a rate of 2/3 and not of 0.
const IMAGINED: f64 = 2.0;
/// What is compared with others wears off by half in so many hours, and is forgotten like all else after 24.
const COMPARED_HALF_LIFE: f64 = 6.0;
/// What is assumed of the latency before anything was seen.
pub const LATENCY_UNKNOWN: Span = Span::from_secs(1);
/// How long a failure seems to take at least, so that an agent that fails fast does not look quick.
const FAILURE_COUNTS_AS: Span = Span::from_secs(5);
/// The longest `Retry-After` that is believed.
const RETRY_AFTER_MAX: Span = Span::from_secs(300);
/// How fast the latency now falls back to the usual one.
const DECAY: Span = Span::from_secs(10);
/// How much one call moves the usual latency.
const USUAL_WEIGHT: f64 = 0.125;
/// The penalty halves each time that this passes without another failure.
const PENALTY_HALF_LIFE: Span = Span::from_mins(5);
/// A longer row of failures counts as one of this length.
const STREAK_MAX: u32 = 10;

/// What is remembered of one capability of one agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct History {
    /// The hours in which there were calls, oldest first; at most 24.
    hours: VecDeque<Hour>,
    /// The latency that calls take when all is well, in ms. None: no call has succeeded.
    usual_ms: Option<f64>,
    /// The latency as it was at the last call. None: there was none.
    peak: Option<Peak>,
    successes: Quantiles,
    streak: u32,
    last_success_at: Option<Timestamp>,
    last_failure_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Hour {
    number: u64,
    succeeded: u32,
    failed: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Peak {
    ms: f64,
    at: Timestamp,
}

impl History {
    /// Notes a call that succeeded.
    pub fn record_success(&mut self, took: Span, now: Timestamp) {
        let hour = self.hour(now);
        hour.succeeded = hour.succeeded.saturating_add(1);
        self.note_latency(took, now);
        let ms = took.as_ms() as f64;
        self.usual_ms = Some(self.usual_ms.map_or(ms, |usual| usual + USUAL_WEIGHT * (ms - usual)));
        self.successes.record(took);
        // Half of the row is forgiven: one success in the midst of many failures is not yet a recovery.
        self.streak /= 2;
        self.last_success_at = Some(now);
    }

    /// Notes a call that failed, with the wait that the agent asked for. It counts as that slow, or as 5 s.
    pub fn record_failure(&mut self, retry_after: Option<Span>, now: Timestamp) {
        let hour = self.hour(now);
        hour.failed = hour.failed.saturating_add(1);
        let seems = retry_after.unwrap_or(Span::ZERO).min(RETRY_AFTER_MAX).max(FAILURE_COUNTS_AS);
        self.note_latency(seems, now);
        self.streak = (self.streak + 1).min(STREAK_MAX);
        self.last_failure_at = Some(now);
    }

    /// How many calls succeeded and failed in the last 24 h.
    #[must_use]
    pub fn counts(&self, now: Timestamp) -> (u32, u32) {
        let recent = self.hours.iter().filter(|hour| hour.number + HOURS > hour_of(now));
        recent.fold((0, 0), |(succeeded, failed): (u32, u32), hour| {
            (succeeded.saturating_add(hour.succeeded), failed.saturating_add(hour.failed))
        })
    }

    /// The share of calls that succeeded in the last 24 h, 0 to 1; 1 while there were none. Two successes are imagined
    /// beside the real calls, so that the first failure is not a verdict.
    #[must_use]
    pub fn success_rate(&self, now: Timestamp) -> f64 {
        let (succeeded, failed) = self.counts(now);
        (f64::from(succeeded) + IMAGINED) / (f64::from(succeeded) + f64::from(failed) + IMAGINED)
    }

    /// How it has done in the last 24 h, to be compared with others: what is older counts less.
    #[must_use]
    pub fn outcomes(&self, now: Timestamp) -> Outcomes {
        let mut outcomes = Outcomes { usual_ms: self.usual_ms, ..Outcomes::default() };
        let number = hour_of(now);
        for hour in self.hours.iter().filter(|hour| hour.number + HOURS > number) {
            let left = (-(number.saturating_sub(hour.number) as f64) / COMPARED_HALF_LIFE).exp2();
            outcomes.succeeded += left * f64::from(hour.succeeded);
            outcomes.failed += left * f64::from(hour.failed);
        }
        outcomes
    }

    /// The latency to reckon with now: at once as high as the last call took, if that was more than before, and within
    /// some 10 s back at what is usual (peak-sensitive EWMA).
    #[must_use]
    pub fn latency(&self, now: Timestamp) -> Span {
        Span::from_ms(self.latency_ms(now).round() as u64)
    }

    /// The latency that 99 of 100 successful calls stay below. None: too few calls to tell.
    #[must_use]
    pub fn p99(&self) -> Option<Span> {
        self.successes.p99()
    }

    /// How far the agent is held back for failing again and again: 0 (not at all) to 1. Each failure in a row halves
    /// what is left of its standing, each success forgives half of the row, and every 5 minutes half wears off.
    #[must_use]
    pub fn penalty(&self, now: Timestamp) -> f64 {
        let Some(last) = self.last_failure_at else { return 0.0 };
        let half_lives = now.since(last).as_secs_f64() / PENALTY_HALF_LIFE.as_secs_f64();
        (1.0 - 0.5_f64.powi(self.streak as i32)) * (-half_lives).exp2()
    }

    /// When it last succeeded.
    #[must_use]
    pub const fn last_success_at(&self) -> Option<Timestamp> {
        self.last_success_at
    }

    /// When it last failed.
    #[must_use]
    pub const fn last_failure_at(&self) -> Option<Timestamp> {
        self.last_failure_at
    }

    fn hour(&mut self, now: Timestamp) -> &mut Hour {
        // A call that is reported a little late goes into the newest hour; the ring stays in order.
        let number = hour_of(now).max(self.hours.back().map_or(0, |hour| hour.number));
        if self.hours.back().is_none_or(|hour| hour.number < number) {
            self.hours.push_back(Hour { number, ..Hour::default() });
            self.hours.retain(|hour| hour.number + HOURS > number);
        }
        self.hours.back_mut().expect("the hour was pushed just above or was there")
    }

    fn latency_ms(&self, now: Timestamp) -> f64 {
        let usual = self.usual_ms.unwrap_or(LATENCY_UNKNOWN.as_ms() as f64);
        self.peak.map_or(usual, |peak| usual + (peak.ms - usual) * kept(now.since(peak.at)))
    }

    fn note_latency(&mut self, took: Span, now: Timestamp) {
        let ms = took.as_ms() as f64;
        let before = self.latency_ms(now);
        // Up at once; down by as much as the time since the last call allows.
        let after = match self.peak {
            Some(peak) if ms < before => ms + (before - ms) * kept(now.since(peak.at)),
            Some(_) | None => ms,
        };
        self.peak = Some(Peak { ms: after, at: now });
    }
}

/// The share of a difference that is left after so long.
fn kept(passed: Span) -> f64 {
    (-passed.as_secs_f64() / DECAY.as_secs_f64()).exp()
}

const fn hour_of(now: Timestamp) -> u64 {
    now.as_ms() / Span::from_hours(1).as_ms()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_ms(1_700_000_000_000) + Span::from_secs(secs)
    }

    const SECOND: Span = Span::from_secs(1);

    #[test]
    fn an_agent_of_which_nothing_is_known_is_given_credit() {
        let new = History::default();
        assert_eq!((new.success_rate(at(0)), new.penalty(at(0)), new.p99()), (1.0, 0.0, None));
        assert_eq!(new.latency(at(0)), SECOND);
    }

    #[test]
    fn the_rate_forgets_what_is_a_day_old() {
        let mut history = History::default();
        (0..8).for_each(|_| history.record_failure(None, at(0)));
        assert_eq!((history.counts(at(0)), history.success_rate(at(0))), ((0, 8), 0.2));
        assert_eq!(history.counts(at(23 * 3600 - 1200)), (0, 8));
        assert_eq!((history.counts(at(25 * 3600)), history.success_rate(at(25 * 3600))), ((0, 0), 1.0));
        (0..100).for_each(|hour| history.record_success(SECOND, at(hour * 3600)));
        assert_eq!(history.hours.len(), 24);
    }

    #[test]
    fn what_is_compared_wears_off_and_is_gone_after_a_day() {
        let mut history = History::default();
        (0..8).for_each(|_| history.record_failure(None, at(0)));
        (0..4).for_each(|_| history.record_success(SECOND, at(0)));
        let told = |hours: u64| {
            let outcomes = history.outcomes(at(hours * 3600));
            (outcomes.succeeded, outcomes.failed, outcomes.usual_ms)
        };
        assert_eq!((told(0), told(6), told(12)), ((4.0, 8.0, Some(1e3)), (2.0, 4.0, Some(1e3)), (1.0, 2.0, Some(1e3))));
        assert_eq!(told(24), (0.0, 0.0, Some(1e3)));
    }

    #[test]
    fn latency_jumps_up_at_once_and_comes_back_to_the_usual() {
        let mut history = History::default();
        (0..20).for_each(|second| history.record_success(Span::from_ms(200), at(second)));
        history.record_success(Span::from_secs(4), at(20));
        assert_eq!(history.latency(at(20)), Span::from_secs(4));
        let (soon, later) = (history.latency(at(30)), history.latency(at(80)));
        assert!(soon > SECOND && later < SECOND && later > Span::from_ms(200), "{soon}, then {later}");
        history.record_success(Span::from_secs(5), at(20));
        assert_eq!(history.latency(at(20)), Span::from_secs(5));
        history.record_success(Span::from_ms(200), at(21));
        assert!(history.latency(at(21)) > Span::from_secs(4));
    }

    #[test]
    fn failing_fast_does_not_look_quick() {
        let mut history = History::default();
        history.record_failure(None, at(0));
        assert_eq!(history.latency(at(0)), Span::from_secs(5));
        history.record_failure(Some(Span::from_secs(60)), at(1));
        assert_eq!(history.latency(at(1)), Span::from_secs(60));
        history.record_failure(Some(Span::from_hours(9)), at(2));
        assert_eq!(history.latency(at(2)), Span::from_secs(300));
    }

    #[test]
    fn an_agent_that_keeps_failing_sinks_and_climbs_back_by_itself_or_by_success() {
        let mut history = History::default();
        let penalties: Vec<f64> = (0..3)
            .map(|second| {
                history.record_failure(None, at(second));
                history.penalty(at(second))
            })
            .collect();
        assert_eq!(penalties, [0.5, 0.75, 0.875]);
        assert_eq!(history.penalty(at(2 + 300)), 0.4375);
        history.record_success(SECOND, at(3));
        assert!(history.penalty(at(3)) < 0.51);
        history.record_success(SECOND, at(4));
        assert_eq!(history.penalty(at(4)), 0.0);
    }

    proptest! {
        #[test]
        fn what_scores_are_made_of_stays_in_bounds_and_survives_storing(
            steps in prop::collection::vec((any::<bool>(), 0_u64..10_000_000, 0_u64..100_000), 0..100),
        ) {
            let (mut history, mut now) = (History::default(), at(0));
            for (succeeds, took, wait) in steps {
                now = now + Span::from_secs(wait);
                if succeeds {
                    history.record_success(Span::from_ms(took), now);
                } else {
                    history.record_failure(Some(Span::from_ms(took)), now);
                }
                prop_assert!((0.0..=1.0).contains(&history.success_rate(now)));
                prop_assert!((0.0..=1.0).contains(&history.penalty(now)));
                prop_assert!(history.latency(now) <= Span::from_ms(10_000_000));
            }
            let stored: History = serde_json::from_str(&serde_json::to_string(&history).unwrap()).unwrap();
            prop_assert_eq!(stored.counts(now), history.counts(now));
        }
    }
}
