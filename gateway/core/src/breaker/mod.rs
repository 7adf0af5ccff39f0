//! The circuit breaker of one capability of one agent: open is tripped, closed is flowing, half-open lets exactly
//! one trial through at a time. It counts what callers report and never calls anything itself.
//!
//! The rate that may close it is the rate of trials: tripping empties the window, and each trial since then goes into
//! it. After an agent passed its first trial the rate is 0 and the breaker closes. One that failed a trial before has
//! to pass several, one after another, until its failures are less than `close_below` of the window; as old results
//! leave the window, `window` passed trials in a row always suffice. A long outage is thus left step by step.

mod window;

use std::collections::VecDeque;

use reach_schemas::{BreakerPolicy, Span, Timestamp};
use serde::{Deserialize, Serialize};

use self::window::Window;

/// A breaker: what it is doing, and the results that count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Breaker {
    phase: Phase,
    /// Grows with each change of phase, so that a result can be told to belong to an earlier one.
    epoch: u64,
    /// How often it has opened since it was last closed.
    trips: u32,
    window: Window,
    /// When the failures happened that came one after another, newest last; as many as the policy asks for.
    run: VecDeque<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
enum Phase {
    #[default]
    Closed,
    /// Refuses until then, and is half-open with no trial out from then on.
    Open { until: Timestamp },
    /// Half-open with a trial out. If nothing is heard of it until then it has failed, and the breaker has been open
    /// from then until `reopen_until`; that is drawn beforehand so that looking needs no chance.
    Trial { until: Timestamp, reopen_until: Timestamp },
}

/// What a breaker is doing, as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Flowing.
    Closed,
    /// Tripped.
    Open {
        /// Until when.
        until: Timestamp,
        /// How often it has opened without having closed.
        trips: u32,
    },
    /// Trying.
    HalfOpen {
        /// When the trial that is out counts as lost. None: no trial is out.
        trial_until: Option<Timestamp>,
    },
}

impl State {
    /// The word for it in logs and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen { .. } => "half_open",
        }
    }
}

/// Whether a request may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may, as any other.
    Flow,
    /// It may, as the one trial.
    Trial,
    /// It may not.
    Refused {
        /// Ask again then.
        until: Timestamp,
    },
}

/// The right to send one request. It goes back with [`Breaker::record`], once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Permit {
    epoch: u64,
    is_trial: bool,
}

impl Permit {
    /// Whether the request is the one trial.
    #[must_use]
    pub const fn is_trial(self) -> bool {
        self.is_trial
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The agent did its part.
    Success,
    /// It did not.
    Failure,
    /// It tells nothing of the agent's health: cancelled, not authorized, session lost, or refused as overloaded.
    Neutral,
}

/// That a breaker opened or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It opened.
    Opened {
        /// Until when.
        until: Timestamp,
    },
    /// It closed.
    Closed,
}

impl Breaker {
    /// What it is doing. Looking changes nothing.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> State {
        match self.phase {
            Phase::Closed => State::Closed,
            Phase::Open { until } if now < until => State::Open { until, trips: self.trips },
            Phase::Trial { until, .. } if now < until => State::HalfOpen { trial_until: Some(until) },
            Phase::Trial { reopen_until, .. } if now < reopen_until => {
                State::Open { until: reopen_until, trips: self.trips.saturating_add(1) }
            }
            Phase::Open { .. } | Phase::Trial { .. } => State::HalfOpen { trial_until: None },
        }
    }

    /// Whether a request may pass. Looking takes nothing.
    #[must_use]
    pub fn admission(&self, now: Timestamp) -> Admission {
        match self.state(now) {
            State::Closed => Admission::Flow,
            State::HalfOpen { trial_until: None } => Admission::Trial,
            State::Open { until, .. } | State::HalfOpen { trial_until: Some(until) } => Admission::Refused { until },
        }
    }

    /// Takes the right to send one request. A trial of which nothing is heard until `trial_until` has failed.
    ///
    /// # Errors
    /// The breaker is open, or the one trial is out: until when.
    pub fn take_permit(
        &mut self,
        trial_until: Timestamp,
        policy: &BreakerPolicy,
        now: Timestamp,
        rng: &mut fastrand::Rng,
    ) -> Result<Permit, Timestamp> {
        self.bury_lost_trial(policy, now);
        match self.admission(now) {
            Admission::Flow => Ok(Permit { epoch: self.epoch, is_trial: false }),
            Admission::Refused { until } => Err(until),
            Admission::Trial => {
                let until = trial_until.max(now + Span::from_ms(1));
                let reopen_until = until + open_for(policy, self.trips.saturating_add(1), rng);
                self.enter(Phase::Trial { until, reopen_until });
                Ok(Permit { epoch: self.epoch, is_trial: true })
            }
        }
    }

    /// Takes a permit back with what became of its request. One from before the last change of phase counts for
    /// nothing: it tells of an earlier time, or comes back a second time.
    pub fn record(
        &mut self,
        permit: Permit,
        outcome: Outcome,
        policy: &BreakerPolicy,
        now: Timestamp,
        rng: &mut fastrand::Rng,
    ) -> Option<Change> {
        self.bury_lost_trial(policy, now);
        if permit.epoch != self.epoch {
            return None;
        }
        match (self.phase, outcome) {
            (Phase::Open { .. }, _) | (Phase::Closed, Outcome::Neutral) => None,
            (Phase::Closed, Outcome::Success) => {
                self.run.clear();
                self.window.push(true, policy.window);
                None
            }
            (Phase::Closed, Outcome::Failure) => {
                self.count_failure(policy, now);
                self.should_open(policy).then(|| self.open(policy, now, rng))
            }
            (Phase::Trial { .. }, Outcome::Neutral) => {
                self.enter(Phase::Open { until: now });
                None
            }
            (Phase::Trial { .. }, Outcome::Success) => self.pass_trial(policy, now),
            (Phase::Trial { .. }, Outcome::Failure) => {
                self.window.push(false, policy.window);
                Some(self.open(policy, now, rng))
            }
        }
    }

    /// Ends the time for which it is open, for an agent that is known to be back: the next request is the trial. It does
    /// not close, since only work that passes shows that work passes, and how often it has tripped is not forgotten.
    /// Whether it was open.
    pub fn cut_short(&mut self, policy: &BreakerPolicy, now: Timestamp) -> bool {
        self.bury_lost_trial(policy, now);
        let is_open = matches!(self.phase, Phase::Open { until } if now < until);
        if is_open {
            self.enter(Phase::Open { until: now });
        }
        is_open
    }

    fn count_failure(&mut self, policy: &BreakerPolicy, now: Timestamp) {
        self.window.push(false, policy.window);
        self.run.push_back(now);
        while self.run.len() > policy.failures_in_row.max(1) as usize {
            self.run.pop_front();
        }
    }

    fn should_open(&self, policy: &BreakerPolicy) -> bool {
        let in_row = self.run.len() >= policy.failures_in_row.max(1) as usize
            && self
                .run
                .back()
                .zip(self.run.front())
                .is_some_and(|(last, first)| last.since(*first) <= policy.in_row_within);
        in_row || (self.window.len() >= policy.window_min && self.window.failure_rate() > policy.open_above)
    }

    fn open(&mut self, policy: &BreakerPolicy, now: Timestamp, rng: &mut fastrand::Rng) -> Change {
        if self.phase == Phase::Closed {
            self.window = Window::default();
        }
        self.run.clear();
        self.trips = self.trips.saturating_add(1);
        let until = now + open_for(policy, self.trips, rng);
        self.enter(Phase::Open { until });
        Change::Opened { until }
    }

    fn pass_trial(&mut self, policy: &BreakerPolicy, now: Timestamp) -> Option<Change> {
        self.window.push(true, policy.window);
        let rate = self.window.failure_rate();
        // A policy that asks for a rate below 0 could otherwise never be met.
        if rate < policy.close_below || rate == 0.0 {
            self.trips = 0;
            self.enter(Phase::Closed);
            Some(Change::Closed)
        } else {
            self.enter(Phase::Open { until: now });
            None
        }
    }

    /// Writes down what [`Breaker::state`] has been showing since the deadline of a trial that never came back.
    fn bury_lost_trial(&mut self, policy: &BreakerPolicy, now: Timestamp) {
        if let Phase::Trial { until, reopen_until } = self.phase
            && now >= until
        {
            self.window.push(false, policy.window);
            self.trips = self.trips.saturating_add(1);
            self.enter(Phase::Open { until: reopen_until });
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.epoch += 1;
    }
}

/// Doubled with each trip up to the limit, then equal jitter: half of it is fixed and half is chance, so that the
/// breakers of one outage do not all try again in the same instant.
fn open_for(policy: &BreakerPolicy, trips: u32, rng: &mut fastrand::Rng) -> Span {
    let doubled = policy.open_for.times(1 << trips.saturating_sub(1).min(32));
    let half = doubled.min(policy.open_for_max).as_ms() / 2;
    Span::from_ms((half + rng.u64(0..=half)).max(1))
}

#[cfg(test)]
mod tests;
