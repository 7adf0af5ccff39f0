//! How much work may wait, and whether what is offered could begin in time: asked before a task is taken on, so that
//! full is said early and nothing that was taken on is ever dropped. It counts what waits and what is done; it keeps no
//! work itself.

use std::collections::BTreeMap;

use reach_schemas::{CapabilityName, Namespace, Span, Tier, Timestamp};
use serde::{Deserialize, Serialize};

/// The shortest and the longest time after which a caller is asked to come back.
const RETRY_AFTER_MIN: Span = Span::from_secs(1);
const RETRY_AFTER_MAX: Span = Span::from_mins(1);
/// How far back a line's pace is measured, in slots of a second.
const SLOTS: usize = 10;
/// The same for the pace of just now; of the two the better one counts, for an agent that was away may just be back.
const SLOTS_NOW: u64 = 2;
/// A pace is believed only once so many have been done within that time.
const DONE_MIN: u32 = 5;
/// A wait is reckoned longer by this part of it.
const MARGIN: u64 = 4;
/// Of so many capabilities a line is kept; those in which nothing happens go first.
const LINES_MAX: usize = 10_000;

/// How many tasks may wait for an agent at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WaitingLimits {
    /// Of the tier `fast`.
    pub fast: u32,
    /// Of the tier `normal`.
    pub normal: u32,
    /// Of the tier `long`.
    pub long: u32,
    /// Of any one namespace, so that one tenant's flood leaves room for the others.
    pub namespace: u32,
}

/// What waits in `fast` has seconds to live; the other tiers may pile up half an hour of work of a busy fleet, of which no
/// namespace has more than a quarter.
impl Default for WaitingLimits {
    fn default() -> Self {
        Self { fast: 1_000, normal: 10_000, long: 10_000, namespace: 2_500 }
    }
}

impl WaitingLimits {
    const fn of(&self, tier: Tier) -> u32 {
        match tier {
            Tier::Fast => self.fast,
            Tier::Normal => self.normal,
            Tier::Long => self.long,
        }
    }
}

/// What a waiting task is counted under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its tier.
    pub tier: Tier,
    /// What it waits for.
    pub capability: CapabilityName,
    /// Whose it is: the namespace of the agent that asks, else the one that it is meant for.
    pub namespace: Namespace,
    /// 0 to 9, 9 first.
    pub priority: u8,
}

/// Why a task is not taken on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Crowded {
    /// As much work of its tier waits as may.
    #[error("{waiting} tasks of the tier {} wait, as many as may", tier_name(*.tier))]
    Tier {
        /// Which.
        tier: Tier,
        /// How many wait.
        waiting: u32,
        /// When to come back.
        retry_after: Span,
    },
    /// As much work of its namespace waits as may.
    #[error("{waiting} tasks of the namespace {namespace} wait, as many as may")]
    Namespace {
        /// Which.
        namespace: Namespace,
        /// How many wait.
        waiting: u32,
        /// When to come back.
        retry_after: Span,
    },
    /// It would not begin before its deadline.
    #[error(
        "{ahead} tasks wait for {capability} before it, and {done} were done in the last 10 s: it would wait {wait}, longer than it may"
    )]
    TooLate {
        /// What for.
        capability: CapabilityName,
        /// How many would go before it.
        ahead: u32,
        /// How many were done in the last 10 s.
        done: u32,
        /// How long it would wait.
        wait: Span,
        /// When to come back.
        retry_after: Span,
    },
}

impl Crowded {
    /// When there may be room.
    #[must_use]
    pub const fn retry_after(&self) -> Span {
        match self {
            Self::Tier { retry_after, .. }
            | Self::Namespace { retry_after, .. }
            | Self::TooLate { retry_after, .. } => *retry_after,
        }
    }
}

const fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Fast => "fast",
        Tier::Normal => "normal",
        Tier::Long => "long",
    }
}

/// All that waits, by tier, by namespace, and by what it waits for.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    by_tier: BTreeMap<Tier, u32>,
    by_namespace: BTreeMap<Namespace, u32>,
    lines: BTreeMap<CapabilityName, Line>,
}

/// What waits for one capability, and how fast it is served.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    by_priority: [u32; 10],
    done: [(u64, u32); SLOTS],
    /// How many attempts are out.
    in_work: u32,
    /// Since when there has always been something, in work or waiting.
    busy_since: Timestamp,
    /// How many were done, and within what time, when there was last something: the best guess until it is known anew.
    before: Option<(u32, Span)>,
}

impl Line {
    fn done_in(&self, secs: u64, now: Timestamp) -> u32 {
        let newest = second(now);
        self.done.iter().filter(|(at, _)| at + secs > newest).map(|(_, count)| count).sum()
    }

    fn ahead_of(&self, priority: u8) -> u32 {
        self.by_priority.iter().skip(usize::from(priority)).sum()
    }

    fn is_idle(&self) -> bool {
        self.in_work == 0 && self.by_priority.iter().all(|count| *count == 0)
    }

    /// How long so many take to get their turn, at the pace of the last 10 s or the last two. None: there is no telling.
    fn wait_for(&self, count: u32, now: Timestamp) -> Option<Span> {
        let at_pace = |secs: u64| {
            let done = self.done_in(secs, now);
            // A line that began to move just now has not had all that time.
            let within = now.since(self.busy_since).as_ms().clamp(100, secs * 1000);
            (done >= DONE_MIN).then(|| Span::from_ms(u64::from(count) * within / u64::from(done)))
        };
        match (at_pace(SLOTS as u64), at_pace(SLOTS_NOW)) {
            (Some(steady), Some(now)) => Some(steady.min(now)),
            (steady, now) => steady.or(now).or_else(|| {
                let (done, within) = self.before?;
                Some(Span::from_ms(u64::from(count) * within.as_ms() / u64::from(done)))
            }),
        }
    }

    /// The pace of the time in which there was always something, at its end. None: too little was done to tell.
    fn last_pace(&self) -> Option<(u32, Span)> {
        let newest = self.done.iter().map(|(at, _)| *at).max()?;
        let done = self.done.iter().filter(|(at, _)| at + SLOTS as u64 > newest).map(|(_, count)| count).sum();
        let within = ((newest + 1) * 1000).saturating_sub(self.busy_since.as_ms()).clamp(100, SLOTS as u64 * 1000);
        (done >= DONE_MIN).then(|| (done, Span::from_ms(within)))
    }

    /// When the next of the line is likely to have its turn. At a pace that is too slow to be measured: as it looks.
    fn next_turn(&self, now: Timestamp) -> Span {
        let slow = || Span::from_ms(SLOTS as u64 * 1000 / u64::from(self.done_in(SLOTS as u64, now).max(1)));
        self.wait_for(1, now).unwrap_or_else(slow).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
    }
}

const fn second(now: Timestamp) -> u64 {
    now.as_ms() / 1000
}

impl Waiting {
    /// Whether a task that would have to wait may be taken on. `deadline_at` is given if it waits for its turn; what
    /// waits for something else, such as an agent that is away, has a wait that no pace tells.
    ///
    /// # Errors
    /// Too much waits already, or at the pace of the last 10 s it would not begin before `deadline_at`.
    pub fn admit(
        &self,
        class: &Class,
        limits: &WaitingLimits,
        deadline_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), Crowded> {
        let line = self.lines.get(&class.capability).copied().unwrap_or_default();
        let until_one_begins = || line.next_turn(now);
        let of_tier = self.of_tier(class.tier);
        if of_tier >= limits.of(class.tier) {
            let retry_after = until_one_begins();
            return Err(Crowded::Tier { tier: class.tier, waiting: of_tier, retry_after });
        }
        let of_namespace = self.by_namespace.get(&class.namespace).copied().unwrap_or(0);
        if of_namespace >= limits.namespace {
            let (namespace, retry_after) = (class.namespace.clone(), until_one_begins());
            return Err(Crowded::Namespace { namespace, waiting: of_namespace, retry_after });
        }
        let ahead = line.ahead_of(class.priority);
        // A pace is a guess, and a line hovers where it is just not refused: without a margin every second guess is wrong.
        let wait = line.wait_for(ahead + 1, now).map(|wait| wait + Span::from_ms(wait.as_ms() / MARGIN));
        match wait.zip(deadline_at) {
            Some((wait, deadline_at)) if now + wait > deadline_at => {
                let retry_after = (now + wait).since(deadline_at).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX);
                let (capability, done) = (class.capability.clone(), line.done_in(SLOTS as u64, now));
                Err(Crowded::TooLate { capability, ahead, done, wait, retry_after })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A task waits from now on.
    pub fn enter(&mut self, class: &Class) {
        *self.by_tier.entry(class.tier).or_default() += 1;
        *self.by_namespace.entry(class.namespace.clone()).or_default() += 1;
        self.line(&class.capability).by_priority[usize::from(class.priority.min(9))] += 1;
    }

    /// A task that waited no longer does, whatever became of it.
    pub fn leave(&mut self, class: &Class) {
        if let Some(count) = self.by_tier.get_mut(&class.tier) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.by_namespace.get_mut(&class.namespace) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_namespace.remove(&class.namespace);
            }
        }
        if let Some(line) = self.lines.get_mut(&class.capability) {
            let count = &mut line.by_priority[usize::from(class.priority.min(9))];
            *count = count.saturating_sub(1);
        }
    }

    /// An agent was given a task, one that waited or a new one.
    pub fn begun(&mut self, capability: &CapabilityName, now: Timestamp) {
        let line = self.line(capability);
        // Nothing is in work, and nothing waits or has been done of late: what was before says nothing of now.
        if line.in_work == 0 && (line.is_idle() || line.done_in(SLOTS as u64, now) == 0) {
            line.before = line.last_pace().or(line.before);
            (line.busy_since, line.done) = (now, [(0, 0); SLOTS]);
        }
        line.in_work += 1;
    }

    /// An attempt ended, and its seat is free; `is_done` if it was answered.
    pub fn ended(&mut self, capability: &CapabilityName, is_done: bool, now: Timestamp) {
        let (second, line) = (second(now), self.line(capability));
        line.in_work = line.in_work.saturating_sub(1);
        if is_done {
            let slot = &mut line.done[(second % SLOTS as u64) as usize];
            *slot = if slot.0 == second { (second, slot.1.saturating_add(1)) } else { (second, 1) };
        }
    }

    fn of_tier(&self, tier: Tier) -> u32 {
        self.by_tier.get(&tier).copied().unwrap_or(0)
    }

    fn line(&mut self, capability: &CapabilityName) -> &mut Line {
        if self.lines.len() >= LINES_MAX && !self.lines.contains_key(capability) {
            self.lines.retain(|_, line| !line.is_idle());
        }
        self.lines.entry(capability.clone()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WaitingLimits = WaitingLimits { fast: 3, normal: 100, long: 100, namespace: 5 };

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(1_000_000 + ms)
    }

    fn class(tier: Tier, capability: &str, namespace: &str, priority: u8) -> Class {
        Class { tier, capability: capability.parse().unwrap(), namespace: namespace.parse().unwrap(), priority }
    }

    #[test]
    fn each_tier_and_each_namespace_has_its_own_bound() {
        let mut waiting = Waiting::default();
        let far = Some(at(1_000_000));
        let (fast, slow) = (class(Tier::Fast, "a", "n", 5), class(Tier::Normal, "b", "n", 5));
        for _ in 0..3 {
            assert_eq!(waiting.admit(&fast, &LIMITS, far, at(0)), Ok(()));
            waiting.enter(&fast);
        }
        let refusal = waiting.admit(&fast, &LIMITS, far, at(0)).unwrap_err();
        assert_eq!(refusal.to_string(), "3 tasks of the tier fast wait, as many as may");
        for _ in 0..2 {
            assert_eq!(waiting.admit(&slow, &LIMITS, far, at(0)), Ok(()));
            waiting.enter(&slow);
        }
        let refusal = waiting.admit(&slow, &LIMITS, far, at(0)).unwrap_err();
        assert_eq!(refusal.to_string(), "5 tasks of the namespace n wait, as many as may");
        assert_eq!(waiting.admit(&class(Tier::Normal, "b", "other", 5), &LIMITS, far, at(0)), Ok(()));
        waiting.leave(&fast);
        assert_eq!(waiting.admit(&fast, &LIMITS, far, at(0)), Ok(()));
        assert_eq!((waiting.of_tier(Tier::Fast), waiting.of_tier(Tier::Normal)), (2, 2));
    }

    /// A line of `count` that an agent is done with one after another, `every` so many ms from `from` on.
    fn serve(waiting: &mut Waiting, work: &Class, from: u64, every: u64, count: u64) {
        waiting.begun(&work.capability, at(from));
        for step in 1..=count {
            waiting.begun(&work.capability, at(from + step * every));
            waiting.ended(&work.capability, true, at(from + step * every));
        }
    }

    #[test]
    fn what_could_not_begin_before_its_deadline_is_refused_with_the_time_that_it_lacks() {
        let mut waiting = Waiting::default();
        let (wide, work) = (WaitingLimits::default(), class(Tier::Normal, "work", "n", 5));
        // Thirty in ten seconds: three a second.
        serve(&mut waiting, &work, 0, 333, 30);
        for _ in 0..59 {
            waiting.enter(&work);
        }
        let now = at(9_999);
        assert_eq!(waiting.admit(&work, &wide, Some(now + Span::from_secs(26)), now), Ok(()));
        let refusal = waiting.admit(&work, &wide, Some(now + Span::from_secs(5)), now).unwrap_err();
        assert!((19_000..=21_000).contains(&refusal.retry_after().as_ms()), "{refusal:?}");
        assert!(matches!(refusal, Crowded::TooLate { ahead: 59, done: 30, .. }), "{refusal:?}");
        // A higher priority goes before all of them.
        let urgent = class(Tier::Normal, "work", "n", 6);
        assert_eq!(waiting.admit(&urgent, &wide, Some(now + Span::from_secs(5)), now), Ok(()));
    }

    #[test]
    fn without_a_pace_there_is_no_telling_and_the_task_is_taken_on() {
        let mut waiting = Waiting::default();
        let (wide, work) = (WaitingLimits::default(), class(Tier::Normal, "work", "n", 5));
        for _ in 0..500 {
            waiting.enter(&work);
        }
        serve(&mut waiting, &work, 0, 10, 4);
        assert_eq!(waiting.admit(&work, &wide, Some(at(41)), at(40)), Ok(()));
        serve(&mut waiting, &work, 50, 10, 20);
        assert!(waiting.admit(&work, &wide, Some(at(251)), at(250)).is_err());
        assert_eq!(waiting.admit(&work, &wide, None, at(250)), Ok(()));
        // What was done long ago says nothing of now.
        assert_eq!(waiting.admit(&work, &wide, Some(at(20_001)), at(20_000)), Ok(()));
    }

    #[test]
    fn many_seats_that_were_free_at_first_are_no_pace_and_a_new_rush_is_judged_by_the_last() {
        let mut waiting = Waiting::default();
        let (wide, work) = (WaitingLimits::default(), class(Tier::Normal, "work", "n", 5));
        for _ in 0..29 {
            waiting.enter(&work);
        }
        // Twelve begin at once and are done after 400 ms, again and again: thirty a second.
        for round in 0..5 {
            for _ in 0..12 {
                waiting.begun(&work.capability, at(round * 400));
            }
            for _ in 0..(if round == 4 { 0 } else { 12 }) {
                waiting.ended(&work.capability, true, at(round * 400 + 399));
            }
        }
        let now = at(1_600);
        assert_eq!(waiting.admit(&work, &wide, Some(now + Span::from_ms(1_300)), now), Ok(()));
        assert!(waiting.admit(&work, &wide, Some(now + Span::from_ms(1_200)), now).is_err());
        // All is done; a second later comes a rush of its own, of whose pace the last one tells.
        for _ in 0..29 {
            waiting.leave(&work);
        }
        for _ in 0..12 {
            waiting.ended(&work.capability, true, at(1_999));
        }
        waiting.begun(&work.capability, at(3_000));
        for _ in 0..29 {
            waiting.enter(&work);
        }
        assert_eq!(waiting.admit(&work, &wide, Some(at(4_300)), at(3_000)), Ok(()));
        let refused = waiting.admit(&work, &wide, Some(at(4_200)), at(3_000)).unwrap_err();
        assert!(refused.to_string().contains("it would wait 1s 250ms"), "{refused}");
        let unknown = class(Tier::Normal, "other", "n", 5);
        assert_eq!(waiting.admit(&unknown, &wide, Some(at(3_001)), at(3_000)), Ok(()), "its pace is not known yet");
    }
}
