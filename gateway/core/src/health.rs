//! Whether an agent works, as its probes tell, whether it is overloaded, as it says itself, and how much of its share
//! it gets while it is new or just back. Two or three results in a row decide, never one, so that nothing flutters.

use reach_schemas::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// What a probe came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeOutcome {
    /// It was answered.
    Passed {
        /// After how long.
        took: Span,
    },
    /// It was not answered in time, or wrongly.
    Failed,
}

/// How many results, and which, change an agent's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HealthPolicy {
    /// A probe that takes longer is slow.
    pub slow_above: Span,
    /// A probe that takes so many times the agent's P99 is slow too.
    pub slow_factor: u64,
    /// A probe that takes no longer than this is never slow, however quick the agent is as a rule: three times two
    /// milliseconds are one hiccup of the network.
    pub never_slow_below: Span,
    /// So many slow probes, with none quick between, eject the agent.
    pub slow_in_row: u32,
    /// So many failed probes in a row eject the agent.
    pub failed_in_row: u32,
    /// So many quick probes in a row bring it back.
    pub passed_in_row: u32,
    /// So many reports in a row of as much load as it can take, or more, mark it overloaded; one below clears the mark.
    pub full_in_row: u32,
    /// How long a step of slow start lasts. The first is 10 % of the agent's share, each following 10 % more; after
    /// nine steps it has all.
    pub slow_start_step: Span,
}

impl Default for HealthPolicy {
    fn default() -> Self {
        Self {
            slow_above: Span::from_secs(5),
            slow_factor: 3,
            never_slow_below: Span::from_ms(100),
            slow_in_row: 2,
            failed_in_row: 3,
            passed_in_row: 2,
            full_in_row: 2,
            slow_start_step: Span::from_mins(10),
        }
    }
}

/// What a probe or report changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthChange {
    /// It gets no new work until probes pass again.
    Ejected,
    /// It gets work again, from slow start on.
    Restored,
    /// It says it has more than it can take.
    Overloaded,
    /// It no longer says so.
    Relieved,
}

/// The health of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    ejected_at: Option<Timestamp>,
    slow: u32,
    failed: u32,
    passed: u32,
    full: u32,
    is_overloaded: bool,
    /// When slow start began. It is over once all steps have passed.
    started_at: Timestamp,
}

impl Health {
    /// An agent that is new: nothing is held against it, and slow start begins.
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self { ejected_at: None, slow: 0, failed: 0, passed: 0, full: 0, is_overloaded: false, started_at: now }
    }

    /// Takes the outcome of a probe. `p99` is what the agent's work takes at most as a rule, if that is known.
    pub fn record(
        &mut self,
        outcome: ProbeOutcome,
        p99: Option<Span>,
        policy: &HealthPolicy,
        now: Timestamp,
    ) -> Option<HealthChange> {
        match outcome {
            // A failure is no sign that the agent is quick again: it does not end a row of slow ones.
            ProbeOutcome::Failed => {
                self.failed = self.failed.saturating_add(1);
                self.passed = 0;
            }
            ProbeOutcome::Passed { took } if is_slow(took, p99, policy) => {
                self.slow = self.slow.saturating_add(1);
                self.failed = 0;
                self.passed = 0;
            }
            ProbeOutcome::Passed { .. } => {
                self.slow = 0;
                self.failed = 0;
                self.passed = self.passed.saturating_add(1);
            }
        }
        let is_bad = self.slow >= policy.slow_in_row.max(1) || self.failed >= policy.failed_in_row.max(1);
        match self.ejected_at {
            None if is_bad => {
                self.ejected_at = Some(now);
                self.passed = 0;
                Some(HealthChange::Ejected)
            }
            Some(_) if self.passed >= policy.passed_in_row.max(1) => {
                self.ejected_at = None;
                self.start_slowly(now);
                Some(HealthChange::Restored)
            }
            None | Some(_) => None,
        }
    }

    /// Takes an agent's own report of its load.
    pub fn report_load(
        &mut self,
        current_load: u32,
        max_concurrency: u32,
        policy: &HealthPolicy,
    ) -> Option<HealthChange> {
        self.full = if current_load >= max_concurrency { self.full.saturating_add(1) } else { 0 };
        let was = self.is_overloaded;
        self.is_overloaded = self.full >= policy.full_in_row.max(1) || (was && self.full > 0);
        match (was, self.is_overloaded) {
            (false, true) => Some(HealthChange::Overloaded),
            (true, false) => Some(HealthChange::Relieved),
            (false, false) | (true, true) => None,
        }
    }

    /// Begins slow start anew, for an agent that is back from the dead.
    pub const fn start_slowly(&mut self, now: Timestamp) {
        self.started_at = now;
    }

    /// Whether its last probes leave doubt about it: some of them failed or were slow, or it is out.
    #[must_use]
    pub const fn is_in_doubt(&self) -> bool {
        self.ejected_at.is_some() || self.failed > 0 || self.slow > 0
    }

    /// How many probes failed in a row, and how many were slow with none quick between.
    #[must_use]
    pub const fn in_row(&self) -> (u32, u32) {
        (self.failed, self.slow)
    }

    /// Since when it gets no new work. None: it gets some.
    #[must_use]
    pub const fn ejected_at(&self) -> Option<Timestamp> {
        self.ejected_at
    }

    /// Whether it says that it has more than it can take.
    #[must_use]
    pub const fn is_overloaded(&self) -> bool {
        self.is_overloaded
    }

    /// The share of its work that it is to get: 0.1 in the first step of slow start, 0.1 more in each, and 1 from the
    /// tenth on. It weighs and never shuts out.
    #[must_use]
    pub fn slow_start_factor(&self, policy: &HealthPolicy, now: Timestamp) -> f64 {
        let steps = now.since(self.started_at).as_ms().checked_div(policy.slow_start_step.as_ms()).unwrap_or(9);
        (steps.min(9) + 1) as f64 / 10.0
    }
}

fn is_slow(took: Span, p99: Option<Span>, policy: &HealthPolicy) -> bool {
    let is_slow_for_it = p99.is_some_and(|p99| took > p99.times(policy.slow_factor) && took > policy.never_slow_below);
    took > policy.slow_above || is_slow_for_it
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(mins: u64) -> Timestamp {
        Timestamp::from_ms(1_000_000) + Span::from_mins(mins)
    }

    /// One letter a probe: `q` quick, `s` slow, `f` failed; `E` and `R` behind it say that it ejected or restored.
    #[track_caller]
    fn check(script: &str) {
        let (mut health, policy) = (Health::new(at(0)), HealthPolicy::default());
        let mut said = String::new();
        for letter in script.chars().filter(|letter| letter.is_lowercase()) {
            let outcome = match letter {
                'q' => ProbeOutcome::Passed { took: Span::from_secs(1) },
                's' => ProbeOutcome::Passed { took: Span::from_secs(6) },
                _ => ProbeOutcome::Failed,
            };
            said.push(letter);
            said.extend(health.record(outcome, None, &policy, at(1)).map(|change| match change {
                HealthChange::Ejected => 'E',
                HealthChange::Restored => 'R',
                HealthChange::Overloaded | HealthChange::Relieved => '!',
            }));
        }
        assert_eq!(said, script);
    }

    #[test]
    fn two_slow_or_three_failed_probes_in_a_row_eject() {
        check("qssE");
        check("qfffE");
        check("sqsqsq");
        check("ffqffq");
        check("ffsff");
        check("sffsE");
    }

    #[test]
    fn two_quick_probes_in_a_row_bring_it_back() {
        check("fffEqqRqq");
        check("ssEqsqfqqR");
        check("fffEffffssqqR");
        check("fffEqqRfffEqqR");
    }

    #[test]
    fn slow_is_more_than_three_times_what_it_usually_takes_but_no_mere_hiccup() {
        let policy = HealthPolicy::default();
        let p99 = Some(Span::from_ms(200));
        assert!(is_slow(Span::from_ms(601), p99, &policy) && !is_slow(Span::from_ms(600), p99, &policy));
        assert!(!is_slow(Span::from_ms(90), Some(Span::from_ms(2)), &policy));
        assert!(!is_slow(Span::from_secs(5), Some(Span::from_secs(4)), &policy));
        assert!(is_slow(Span::from_ms(5_001), Some(Span::from_secs(4)), &policy));
    }

    #[test]
    fn two_full_reports_in_a_row_mark_it_overloaded_and_one_below_clears_it() {
        let (mut health, policy) = (Health::new(at(0)), HealthPolicy::default());
        let changes = [4, 3, 4, 5, 4, 3, 4].map(|load| health.report_load(load, 4, &policy));
        let (on, off) = (Some(HealthChange::Overloaded), Some(HealthChange::Relieved));
        assert_eq!(changes, [None, None, None, on, None, off, None]);
        assert!(!health.is_overloaded());
    }

    #[test]
    fn slow_start_gives_a_tenth_for_ten_minutes_and_a_tenth_more_after_each_ten() {
        let (health, policy) = (Health::new(at(0)), HealthPolicy::default());
        let factors = [0, 9, 10, 25, 89, 90, 9_000].map(|mins| health.slow_start_factor(&policy, at(mins)));
        assert_eq!(factors, [0.1, 0.1, 0.2, 0.3, 0.9, 1.0, 1.0]);
        let off = HealthPolicy { slow_start_step: Span::ZERO, ..policy };
        assert_eq!(health.slow_start_factor(&off, at(0)), 1.0);
    }

    #[test]
    fn one_that_is_just_back_starts_slowly_again() {
        let (mut health, policy) = (Health::new(at(0)), HealthPolicy::default());
        let quick = ProbeOutcome::Passed { took: Span::from_secs(1) };
        for outcome in [ProbeOutcome::Failed, ProbeOutcome::Failed, ProbeOutcome::Failed, quick] {
            health.record(outcome, None, &policy, at(200));
        }
        assert_eq!((health.ejected_at(), health.slow_start_factor(&policy, at(200))), (Some(at(200)), 1.0));
        health.record(quick, None, &policy, at(201));
        assert_eq!((health.ejected_at(), health.slow_start_factor(&policy, at(201))), (None, 0.1));
    }

    proptest! {
        #[test]
        fn an_agent_is_never_shut_out_by_slow_start_and_probes_always_bring_it_back(
            probes in prop::collection::vec(0_u64..12, 0..60), mins in 0_u64..10_000,
        ) {
            let (mut health, policy) = (Health::new(at(0)), HealthPolicy::default());
            let quick = ProbeOutcome::Passed { took: Span::from_secs(1) };
            for took in probes {
                let outcome = if took > 9 { ProbeOutcome::Failed } else { ProbeOutcome::Passed { took: Span::from_secs(took) } };
                health.record(outcome, None, &policy, at(1));
                prop_assert!((0.1..=1.0).contains(&health.slow_start_factor(&policy, at(mins))));
            }
            health.record(quick, None, &policy, at(1));
            health.record(quick, None, &policy, at(1));
            prop_assert_eq!(health.ejected_at(), None);
        }
    }
}
