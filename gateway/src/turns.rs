//! Turns: the steps of one task are taken one after another within one gateway, each with its effects, so that whoever
//! waits for the task sees them in their order. Steps of different tasks do not wait for each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reach_schemas::TaskId;
use tokio::sync::{Mutex as Gate, OwnedMutexGuard};

/// Whose turn it is, for each task of which somebody takes a step just now.
#[derive(Default)]
pub struct Turns {
    gates: Mutex<HashMap<TaskId, Arc<Gate<()>>>>,
}

/// The turn to take a step of one task. It ends with the last of its clones.
#[derive(Clone)]
pub struct Turn {
    _taken: Arc<Taken>,
}

struct Taken {
    task_id: TaskId,
    turns: Arc<Turns>,
    /// None only while it is dropped.
    held: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    fn gates(&self) -> MutexGuard<'_, HashMap<TaskId, Arc<Gate<()>>>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn to take a step of a task. First come, first served.
    pub async fn take(self: &Arc<Self>, task_id: TaskId) -> Turn {
        let gate = Arc::clone(self.gates().entry(task_id).or_default());
        // Made before it is waited for: if the wait is given up, the gate goes all the same.
        let mut taken = Taken { task_id, turns: Arc::clone(self), held: None };
        taken.held = Some(gate.lock_owned().await);
        Turn { _taken: Arc::new(taken) }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.held = None;
        let mut gates = self.turns.gates();
        // Whoever holds it or waits for it has an own count.
        if gates.get(&self.task_id).is_some_and(|gate| Arc::strong_count(gate) == 1) {
            gates.remove(&self.task_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn id(n: u64) -> TaskId {
        TaskId::from_parts(n, 0)
    }

    #[test]
    fn one_at_a_time_for_each_task_until_the_last_clone_is_gone() {
        let turns = Arc::new(Turns::default());
        let first = turns.take(id(1)).now_or_never().expect("it is free");
        let clone = first.clone();
        assert!(turns.take(id(2)).now_or_never().is_some(), "another task does not wait");
        drop(first);
        assert!(turns.take(id(1)).now_or_never().is_none(), "a clone still holds it");
        drop(clone);
        assert!(turns.take(id(1)).now_or_never().is_some());
    }

    #[test]
    fn nothing_is_left_of_turns_that_are_over_or_were_given_up() {
        let turns = Arc::new(Turns::default());
        let first = turns.take(id(1)).now_or_never();
        let mut second = turns.take(id(1)).boxed();
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        assert_eq!(turns.gates().len(), 1, "somebody waits");
        drop(second);
        assert_eq!(turns.gates().len(), 0);
    }
}
