//! The bus within one process: listeners are called where the hint is published.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, RwLock};

use reach_schemas::Timestamp;

use super::{Bus, Listener, Note};

/// A bus that reaches this process only.
#[derive(Default)]
pub struct Local {
    listeners: RwLock<Vec<Listener>>,
    leases: Mutex<BTreeMap<String, (String, Timestamp)>>,
}

impl Bus for Local {
    fn publish(&self, note: Note) {
        for listener in self.listeners.read().unwrap_or_else(PoisonError::into_inner).iter() {
            listener(note);
        }
    }

    fn subscribe(&self, listener: Listener) {
        self.listeners.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    fn lease(&self, name: &str, holder: &str, now: Timestamp, until: Timestamp) -> bool {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        match leases.get(name) {
            Some((held_by, held_until)) if held_by != holder && *held_until > now => false,
            Some(_) | None => {
                leases.insert(name.to_owned(), (holder.to_owned(), until));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_one_holder_s_until_it_runs_out() {
        let bus = Local::default();
        let at = Timestamp::from_ms;
        assert!(bus.lease("sweeper", "a", at(0), at(10)));
        assert!(!bus.lease("sweeper", "b", at(9), at(20)));
        assert!(bus.lease("sweeper", "a", at(9), at(12)));
        assert!(bus.lease("sweeper", "b", at(12), at(20)));
    }
}
