//! The requests of one client that are worked on, so that a later message can call one off.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// By the text of their ids, as they came.
#[derive(Debug, Default)]
pub(super) struct InFlight(Mutex<HashMap<Box<str>, CancellationToken>>);

/// One request that is worked on. Dropping it ends that.
pub(super) struct Working<'a> {
    in_flight: &'a InFlight,
    id: Option<Box<str>>,
    cancelled: CancellationToken,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request. One whose id is in use cannot be called off; a client must not give an id twice.
    pub(super) fn begin(&self, id: &str) -> Working<'_> {
        let cancelled = CancellationToken::new();
        let mut working = self.lock();
        if working.contains_key(id) {
            return Working { in_flight: self, id: None, cancelled };
        }
        working.insert(id.into(), cancelled.clone());
        Working { in_flight: self, id: Some(id.into()), cancelled }
    }

    /// Calls a request off, if it is worked on.
    pub(super) fn cancel(&self, id: &str) {
        if let Some(cancelled) = self.lock().get(id) {
            cancelled.cancel();
        }
    }
}

impl Working<'_> {
    /// Is done once it is called off.
    pub(super) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            let mut working = self.in_flight.lock();
            working.remove(id);
            if working.is_empty() {
                // What a burst took is given back: most sessions are idle most of the time.
                working.shrink_to_fit();
            }
        }
    }
}
