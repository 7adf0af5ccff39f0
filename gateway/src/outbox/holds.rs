//! Lanes that rest because a receiver said so. In memory only: after a restart each is asked anew.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reach_schemas::{Timestamp, WebhookHold};

/// Lanes that want nothing before a time.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    of_lane: Mutex<BTreeMap<String, WebhookHold>>,
}

impl Holds {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, WebhookHold>> {
        self.of_lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lane rests. What was said last holds, be it shorter.
    pub(crate) fn hold(&self, lane: String, hold: WebhookHold) {
        self.lock().insert(lane, hold);
    }

    /// A lane rests no longer: the operator has something of it sent.
    pub(crate) fn lift(&self, lane: &str) {
        self.lock().remove(lane);
    }

    /// The rest that a lane has, if it is not over.
    pub(crate) fn of(&self, lane: &str, now: Timestamp) -> Option<WebhookHold> {
        self.lock().get(lane).filter(|hold| hold.until > now).cloned()
    }

    /// The lanes that rest, and until when. Those whose rest is over are forgotten.
    pub(crate) fn all(&self, now: Timestamp) -> Vec<(String, Timestamp)> {
        let mut lanes = self.lock();
        lanes.retain(|_, hold| hold.until > now);
        lanes.iter().map(|(lane, hold)| (lane.clone(), hold.until)).collect()
    }
}
