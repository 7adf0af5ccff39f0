//! When a failed attempt is followed by another, and how many may be: backoff per task, and budgets that keep retries
//! from becoming a storm. It counts tries; whether work may be repeated at all is for the task to say.

use reach_schemas::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// The wait before the first retry that waits at all.
const BASE_MS: u64 = 200;
/// How often it is doubled, at most: the longest wait of our own choice is 25.6 s.
const DOUBLINGS_MAX: u32 = 7;

/// What an attempt counts as, for the budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// The first try: it earns a share of a retry.
    First,
    /// Another look for an agent after one gave the work back, not begun: neither earns nor spends.
    Returned,
    /// Another try after one that failed: it spends a retry of the agent's and of the caller's.
    Retry,
    /// Another try after one that this gateway's own restart lost: it waits its turn among its like.
    Orphan,
}

/// 200 ms, doubled each time up to 25.6 s, half of it by chance, so that tasks that failed together do not come back
/// together; `n` is counted from 1.
pub fn doubled(n: u32, rng: &mut fastrand::Rng) -> Span {
    let base = BASE_MS << n.saturating_sub(1).min(DOUBLINGS_MAX);
    Span::from_ms(base / 2 + rng.u64(0..=base / 2))
}

/// How many slots of a second a budget looks back on.
const SLOTS: usize = 10;

/// How many retries somebody may have: over any 10 s a share of the first tries, and some free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// So many first tries earn one retry.
    pub firsts_per_retry: u32,
    /// So many retries in 10 s are free.
    pub free: u32,
}

/// What agents and callers may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shares {
    /// Each agent.
    pub agent: Share,
    /// Each caller, over all agents.
    pub caller: Share,
}

impl Default for Shares {
    fn default() -> Self {
        Self { agent: OF_AGENT, caller: OF_CALLER }
    }
}

/// An agent's: a tenth, and one a second free. Agents are often asked but a few times a minute; a tenth of that would
/// forbid the very first retry, and one a second has never yet made a storm.
pub const OF_AGENT: Share = Share { firsts_per_retry: 10, free: 10 };

/// A caller's, over all agents: a fifth, and ten a second free (Finagle's and Linkerd's default). It is wide, because
/// each agent is guarded already; it binds where one caller would spend everybody's share of a whole group.
pub const OF_CALLER: Share = Share { firsts_per_retry: 5, free: 100 };

/// How many retries one target, or one caller, may still have.
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
    pub fn try_withdraw(&mut self, share: Share, now: Timestamp) -> bool {
        let has_one = self.left(share, now) > 0;
        if has_one {
            self.slot(now).retries += 1;
        }
        has_one
    }

    /// How many retries may be sent now.
    #[must_use]
    pub fn left(&self, share: Share, now: Timestamp) -> u32 {
        let newest = second(now);
        let recent = self.slots.iter().filter(|slot| slot.second + SLOTS as u64 > newest);
        let (firsts, retries) = recent.fold((0_u32, 0_u32), |(firsts, retries), slot| {
            (firsts.saturating_add(slot.firsts), retries.saturating_add(slot.retries))
        });
        (share.free + firsts / share.firsts_per_retry.max(1)).saturating_sub(retries)
    }

    /// When there is one left, if nothing more happens. `now` if there is one.
    #[must_use]
    pub fn next_at(&self, share: Share, now: Timestamp) -> Timestamp {
        let begin = Timestamp::from_ms(second(now) * 1000);
        let later = (0..=SLOTS as u64).map(|secs| (begin + Span::from_secs(secs)).max(now));
        later.into_iter().find(|at| self.left(share, *at) > 0).unwrap_or(begin + Span::from_secs(SLOTS as u64))
    }

    /// Whether nothing has happened that still counts.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.slots.iter().all(|slot| slot.second + SLOTS as u64 <= second(now))
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

/// So many orphans of a restart are sent again a second.
const ORPHANS_PER_SEC: u64 = 50;
/// So many of them may go at once.
const ORPHANS_BURST: u64 = 10;

/// Lets work through at an even pace, after a burst: the generic cell rate algorithm (ATM Forum TM 4.0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    every: Span,
    burst: u64,
    /// When the next would go if all went evenly.
    next_at: Timestamp,
}

impl Bucket {
    /// The one for orphans: 50 a second, 10 at once.
    #[must_use]
    pub const fn for_orphans() -> Self {
        let every = Span::from_ms(1000 / ORPHANS_PER_SEC);
        Self { every, burst: ORPHANS_BURST, next_at: Timestamp::from_ms(0) }
    }

    /// When one may go. `now` if one may.
    #[must_use]
    pub fn free_at(&self, now: Timestamp) -> Timestamp {
        let ahead = self.every.times(self.burst.saturating_sub(1));
        now.max(self.next_at - ahead)
    }

    /// Lets one go, and says whether it might.
    pub fn try_take(&mut self, now: Timestamp) -> bool {
        let may = self.free_at(now) <= now;
        if may {
            self.next_at = self.next_at.max(now) + self.every;
        }
        may
    }
}

impl Default for Bucket {
    fn default() -> Self {
        Self::for_orphans()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_ms(1_000_000) + Span::from_secs(secs)
    }

    #[test]
    fn waits_double_and_half_of_each_is_chance() {
        let mut rng = fastrand::Rng::with_seed(3);
        for (n, expected_ms) in [(1, 100..=200), (2, 200..=400), (3, 400..=800), (u32::MAX, 12_800..=25_600)] {
            let waits: Vec<u64> = (0..200).map(|_| doubled(n, &mut rng).as_ms()).collect();
            assert!(waits.iter().all(|wait| expected_ms.contains(wait)), "{n}: {waits:?}");
            let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            assert!(most - least > expected_ms.end() / 3, "{n}: {least} to {most} is no chance at all");
        }
    }

    #[test]
    fn one_retry_a_second_is_free_and_ten_first_tries_earn_one_more() {
        let mut budget = Budget::default();
        assert_eq!((0..20).filter(|_| budget.try_withdraw(OF_AGENT, at(0))).count(), 10);
        for _ in 0..30 {
            budget.deposit(at(1));
        }
        assert_eq!((0..20).filter(|_| budget.try_withdraw(OF_AGENT, at(2))).count(), 3);
        let left = |secs| budget.left(OF_AGENT, at(secs));
        assert_eq!((left(9), left(10), left(12)), (0, 10, 10));
    }

    #[test]
    fn a_spent_budget_says_when_there_is_a_retry_again() {
        let mut budget = Budget::default();
        assert_eq!(budget.next_at(OF_AGENT, at(0)), at(0));
        while budget.try_withdraw(OF_AGENT, at(0)) {}
        let half_past = at(0) + Span::from_ms(500);
        assert_eq!(budget.next_at(OF_AGENT, half_past), at(10));
        assert!(budget.try_withdraw(OF_AGENT, at(10)));
        assert!(!budget.is_idle(at(19)) && budget.is_idle(at(20)));
    }

    #[test]
    fn orphans_go_at_fifty_a_second_after_ten_at_once() {
        let mut bucket = Bucket::default();
        let gone = |bucket: &mut Bucket, now| (0..100).filter(|_| bucket.try_take(now)).count();
        assert_eq!(gone(&mut bucket, at(0)), 10);
        assert_eq!(bucket.free_at(at(0)), at(0) + Span::from_ms(20));
        let later: usize = (1..=50).map(|step| gone(&mut bucket, at(0) + Span::from_ms(20 * step))).sum();
        assert_eq!(later, 50);
        assert_eq!(gone(&mut bucket, at(100)), 10);
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
                if is_first || budget.try_withdraw(OF_AGENT, now) {
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
