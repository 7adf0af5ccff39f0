//! What this gateway counts of its work. It is told once of each committed step, of each refusal and of each look of the
//! router, and answers what it has seen; what the figures mean is the core's affair.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reach_core::evaluation::Evaluation;
use reach_core::task::{Effects, Task};
use reach_schemas::{CapabilityName, ErrorCode, Submit, Timestamp};
use tokio::sync::OwnedMutexGuard;

/// What is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    evaluation: Mutex<Evaluation>,
    connections: AtomicU64,
    /// Held by the one who looks at everything.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// An open connection; dropping it ends the count of it.
#[derive(Debug)]
pub struct Connected(Arc<Metrics>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// The figures, to be read; nothing is counted meanwhile, so be quick.
    pub fn evaluation(&self) -> MutexGuard<'_, Evaluation> {
        self.evaluation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection was opened, by whoever it may be.
    #[must_use]
    pub fn connected(self: &Arc<Self>) -> Connected {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connected(Arc::clone(self))
    }

    /// How many connections are open.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Waits until nobody else looks at everything. Many who look at once would take the processors from those who work.
    pub async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// A step of a task was committed.
    pub fn stepped(&self, task: &Task, effects: &Effects, now: Timestamp) {
        self.evaluation().stepped(task, effects, now);
    }

    /// A request was refused, and no task came of it.
    pub fn refused(&self, submit: &Submit, code: ErrorCode, now: Timestamp) {
        self.evaluation().refused(submit, code, now);
    }

    /// The router took so many microseconds to answer.
    pub fn routed(&self, capability: Option<&CapabilityName>, took_us: u64, now: Timestamp) {
        self.evaluation().routed(capability, took_us, now);
    }
}

/// How much memory this process has, in bytes. None: the system does not say.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
