//! When a failed attempt is followed by another, and how many may be: backoff per task, and a budget per target that
//! keeps retries from becoming a storm. It counts tries; whether work may be repeated at all is for the task to say.

use reach_schemas::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// How often and how soon a task is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryPolicy {
    /// How many tries at most, the first included.
    pub tries: u32,
    /// The wait before the first retry; doubled with each.
    pub base: Span,
    /// The longest wait of our own choice.
    pub base_max: Span,
    /// The longest wait at an agent's wish.
    pub hint_max: Span,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { tries: 3, base: Span::from_ms(200), base_max: Span::from_secs(20), hint_max: Span::from_mins(5) }
    }
}

/// Whom a retry goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The agent that has just failed.
    Same,
    /// Another one.
    Other,
}

impl RetryPolicy {
    /// Whether a task that was tried `tried` times may be tried again.
    #[must_use]
    pub const fn allows_another(&self, tried: u32) -> bool {
        tried < self.tries
    }

    /// How long to wait before retry number `retry` (counted from 1).
    ///
    /// The first retry at another agent is sent at once: that agent has not been troubled yet. Everything else waits,
    /// doubled each time, half of it by chance, so that tasks that failed together do not come back together. The
    /// agent that failed is not asked again before the time it asked for (`Retry-After`).
    #[must_use]
    pub fn backoff(&self, retry: u32, target: Target, retry_after: Option<Span>, rng: &mut fastrand::Rng) -> Span {
        let doubled = self.base.times(1 << retry.saturating_sub(1).min(32)).min(self.base_max);
        let waited = match target {
            Target::Other if retry <= 1 => return Span::ZERO,
            Target::Other | Target::Same => half_by_chance(doubled, rng),
        };
        match (target, retry_after) {
            // Chance on top of the hint: every task that the agent turned away was given the same one.
            (Target::Same, Some(hint)) => waited.max(hint.min(self.hint_max) + half_by_chance(self.base, rng)),
            (Target::Same, None) | (Target::Other, _) => waited,
        }
    }
}

fn half_by_chance(span: Span, rng: &mut fastrand::Rng) -> Span {
    let half = span.as_ms() / 2;
    Span::from_ms(half + rng.u64(0..=half))
}

/// How many slots of a second the budget looks back on.
const SLOTS: usize = 10;
/// So many first tries earn one retry.
const FIRSTS_PER_RETRY: u32 = 10;
/// So many retries in 10 s are free: one a second. Agents are often asked but a few times a minute; a tenth of that
/// would forbid the very first retry, and one a second has never yet made a storm.
const FREE: u32 = 10;

/// How many retries one target may still be sent: over any 10 s a tenth of its first tries, and one a second free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    slots: [Slot; SLOTS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Slot {
    second: u64,
    firsts: u32,
    retries: u32,
}

impl Budget {
    /// Notes a first try, before it is sent.
    pub fn deposit(&mut self, now: Timestamp) {
        let slot = self.slot(now);
        slot.firsts = slot.firsts.saturating_add(1);
    }

    /// Takes the right to send one retry, and says whether there was one.
    pub fn try_withdraw(&mut self, now: Timestamp) -> bool {
        let has_one = self.left(now) > 0;
        if has_one {
            self.slot(now).retries += 1;
        }
        has_one
    }

    /// How many retries may be sent now.
    #[must_use]
    pub fn left(&self, now: Timestamp) -> u32 {
        let newest = second(now);
        let recent = self.slots.iter().filter(|slot| slot.second + SLOTS as u64 > newest);
        let (firsts, retries) = recent.fold((0_u32, 0_u32), |(firsts, retries), slot| {
            (firsts.saturating_add(slot.firsts), retries.saturating_add(slot.retries))
        });
        (FREE + firsts / FIRSTS_PER_RETRY).saturating_sub(retries)
    }

    fn slot(&mut self, now: Timestamp) -> &mut Slot {
        let second = second(now);
        let slot = &mut self.slots[(second % SLOTS as u64) as usize];
        if slot.second != second {
            *slot = Slot { second, ..Slot::default() };
        }
        slot
    }
}

const fn second(now: Timestamp) -> u64 {
    now.as_ms() / 1000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_ms(1_000_000) + Span::from_secs(secs)
    }

    #[track_caller]
    fn check(retry: u32, target: Target, hint: Option<u64>, expected_ms: std::ops::RangeInclusive<u64>) {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..100 {
            let span = RetryPolicy::default().backoff(retry, target, hint.map(Span::from_secs), &mut rng);
            assert!(expected_ms.contains(&span.as_ms()), "retry {retry} waits {span}");
        }
    }

    #[test]
    fn three_tries_are_two_retries() {
        let policy = RetryPolicy::default();
        assert!(policy.allows_another(1) && policy.allows_another(2) && !policy.allows_another(3));
    }

    #[test]
    fn the_first_retry_at_another_agent_is_sent_at_once_and_the_rest_wait_doubled() {
        check(1, Target::Other, None, 0..=0);
        check(1, Target::Same, None, 100..=200);
        check(2, Target::Other, None, 200..=400);
        check(3, Target::Same, None, 400..=800);
        check(u32::MAX, Target::Same, None, 10_000..=20_000);
    }

    #[test]
    fn only_the_agent_that_asked_for_time_is_given_it_and_not_without_end() {
        check(1, Target::Same, Some(7), 7_100..=7_200);
        check(2, Target::Other, Some(7), 200..=400);
        check(1, Target::Same, Some(100_000), 300_100..=300_200);
        check(9, Target::Same, Some(1), 10_000..=20_000);
    }

    #[test]
    fn one_retry_a_second_is_free_and_ten_first_tries_earn_one_more() {
        let mut budget = Budget::default();
        assert_eq!((0..20).filter(|_| budget.try_withdraw(at(0))).count(), 10);
        for _ in 0..30 {
            budget.deposit(at(1));
        }
        assert_eq!((0..20).filter(|_| budget.try_withdraw(at(2))).count(), 3);
        assert_eq!((budget.left(at(9)), budget.left(at(10)), budget.left(at(12))), (0, 10, 10));
    }

    proptest! {
        #[test]
        fn in_any_ten_seconds_retries_are_at_most_a_tenth_and_ten(
            steps in prop::collection::vec((any::<bool>(), 0_u64..2_500), 1..400),
        ) {
            let (mut budget, mut now, mut log) = (Budget::default(), at(0), Vec::new());
            for (is_first, wait_ms) in steps {
                now = now + Span::from_ms(wait_ms / 5);
                if is_first {
                    budget.deposit(now);
                }
                if is_first || budget.try_withdraw(now) {
                    log.push((second(now), is_first));
                }
                let count = |is_first: bool, secs: u64| {
                    log.iter().filter(|(at, first)| *first == is_first && at + secs > second(now)).count()
                };
                // The first tries that earned a retry may be up to 10 s older than it is.
                prop_assert!(count(false, 10) <= 10 + count(true, 20) / 10);
            }
        }
    }
}
