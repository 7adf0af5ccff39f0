//! What is counted of tasks and of attempts, and the rates that are made of it.

use reach_schemas::call::{AttemptFigures, TaskFigures};

/// Counts of tasks that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskCounts {
    /// All that ended.
    pub ended: u64,
    /// Those that their callers called off.
    pub cancelled: u64,
    /// Those to which an agent gave the last word.
    pub answered: u64,
    /// Those with a result.
    pub completed: u64,
    /// Those with a result within the promise.
    pub timely: u64,
    /// `direct` ones that had an agent.
    pub routed: u64,
    /// `direct` ones that the agent chosen first answered.
    pub hits: u64,
    /// Those that went down their fallback chain.
    pub fallbacks: u64,
    /// Attempts begun that were not their task's first.
    pub retries: u64,
    /// Requests refused, their callers' own faults aside.
    pub refused: u64,
}

/// Counts of attempts that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttemptCounts {
    /// The agent answered.
    pub answered: u64,
    /// It did not, or not in time, or not with a result.
    pub failed: u64,
    /// Called off, given back, or not taken for want of room.
    pub given_back: u64,
}

/// A share; none of nothing.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl TaskCounts {
    pub(super) fn add(mut self, other: &Self) -> Self {
        self.ended += other.ended;
        self.cancelled += other.cancelled;
        self.answered += other.answered;
        self.completed += other.completed;
        self.timely += other.timely;
        self.routed += other.routed;
        self.hits += other.hits;
        self.fallbacks += other.fallbacks;
        self.retries += other.retries;
        self.refused += other.refused;
        self
    }

    /// The rates, without times.
    #[must_use]
    pub fn figures(&self) -> TaskFigures {
        let asked = self.ended - self.cancelled + self.refused;
        TaskFigures {
            asked,
            refused: self.refused,
            cancelled: self.cancelled,
            success_rate: share(self.answered, asked),
            completion_rate: share(self.completed, asked),
            timely_rate: share(self.timely, asked),
            hit_rate: share(self.hits, self.routed),
            fallbacks: self.fallbacks,
            retries: self.retries,
            router: None,
            target: None,
            whole: None,
        }
    }
}

impl AttemptCounts {
    /// Both together.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.answered += other.answered;
        self.failed += other.failed;
        self.given_back += other.given_back;
        self
    }

    /// The share that was answered of those that the agent had. None: it had none.
    #[must_use]
    pub fn success_rate(&self) -> Option<f64> {
        share(self.answered, self.answered + self.failed)
    }

    /// The rate, without times.
    #[must_use]
    pub fn figures(&self) -> AttemptFigures {
        let Self { answered, failed, given_back } = *self;
        AttemptFigures { answered, failed, given_back, success_rate: self.success_rate(), target: None }
    }
}
