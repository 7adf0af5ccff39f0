//! Deliveries that are under way in this gateway, so that they can be given up, and so that nobody says of an attempt that
//! its outcome is unknown while the one who sends it can still tell that it was never sent.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reach_schemas::{FencingToken, TaskId};
use tokio::task::AbortHandle;

/// Those that are under way, by attempt.
#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    of_attempt: Mutex<HashMap<(TaskId, FencingToken), Delivering>>,
}

/// One that is under way.
#[derive(Debug)]
pub(super) struct Delivering {
    pub(super) abort: AbortHandle,
    pub(super) stage: Arc<Reached>,
}

/// How far a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not come to its adapter: nothing was sent.
    Unsent,
    /// Its adapter has it, and will tell by the end of the attempt's time what is known.
    WithAdapter,
    /// What came of it is known, and being stored.
    Known,
}

/// The stage that a delivery has reached, shared by who delivers and who asks. It only grows.
#[derive(Debug, Default)]
pub(super) struct Reached(AtomicU8);

impl Reached {
    pub(super) fn with_adapter(&self) {
        self.0.store(1, Ordering::Release);
    }

    pub(super) fn known(&self) {
        self.0.store(2, Ordering::Release);
    }

    fn stage(&self) -> Stage {
        match self.0.load(Ordering::Acquire) {
            0 => Stage::Unsent,
            1 => Stage::WithAdapter,
            _ => Stage::Known,
        }
    }
}

impl Deliveries {
    fn lock(&self) -> MutexGuard<'_, HashMap<(TaskId, FencingToken), Delivering>> {
        self.of_attempt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes one, made while nobody else can look.
    pub(super) fn enter(&self, key: (TaskId, FencingToken), begin: impl FnOnce() -> Delivering) {
        let mut deliveries = self.lock();
        deliveries.insert(key, begin());
    }

    /// Forgets one that has ended.
    pub(super) fn leave(&self, key: (TaskId, FencingToken)) {
        self.lock().remove(&key);
    }

    /// Gives one up.
    pub(super) fn give_up(&self, key: (TaskId, FencingToken)) {
        if let Some(delivering) = self.lock().remove(&key) {
            delivering.abort.abort();
        }
    }

    /// How far the delivery of an attempt is. None: it is not under way here.
    pub(crate) fn stage(&self, key: (TaskId, FencingToken)) -> Option<Stage> {
        self.lock().get(&key).map(|delivering| delivering.stage.stage())
    }
}
