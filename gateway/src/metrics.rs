//! What this gateway counts of its work. It is told once of each committed step, of each refusal and of each look of the
//! router, and answers what it has seen; what the figures mean is the core's affair.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use reach_core::evaluation::Evaluation;
use reach_core::task::{Effects, Task};
use reach_schemas::{CapabilityName, ErrorCode, Submit, Timestamp};

/// What is counted.
#[derive(Debug)]
pub struct Metrics {
    evaluation: Mutex<Evaluation>,
    started: Instant,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { evaluation: Mutex::default(), started: Instant::now() }
    }
}

impl Metrics {
    /// The figures, to be read; nothing is counted meanwhile, so be quick.
    pub fn evaluation(&self) -> MutexGuard<'_, Evaluation> {
        self.evaluation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long it has been counting: since the gateway was made.
    #[must_use]
    pub fn up_for(&self) -> std::time::Duration {
        self.started.elapsed()
    }

    /// A step of a task was committed.
    pub fn stepped(&self, task: &Task, effects: &Effects, now: Timestamp) {
        self.evaluation().stepped(task, effects, now);
    }

    /// A request was refused, and no task came of it.
    pub fn refused(&self, submit: &Submit, code: ErrorCode, now: Timestamp) {
        self.evaluation().refused(submit, code, now);
    }

    /// The router was asked at `asked`, and has answered just now.
    pub fn routed(&self, capability: Option<&CapabilityName>, asked: Instant, now: Timestamp) {
        let took = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.evaluation().routed(capability, took, now);
    }
}
