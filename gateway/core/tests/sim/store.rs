//! The store, as plain as its contract: versions are compared, keys are unique, a call is atomic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reach_core::digest::Fingerprint;
use reach_core::task::Task;
use reach_schemas::{AgentCard, AgentId, IdempotencyKey, TaskId, Timestamp};

/// An idempotency key in its scope.
pub(crate) type KeyName = (String, IdempotencyKey);

/// An agent as it is kept.
pub(crate) struct Row {
    pub(crate) card: AgentCard,
    pub(crate) generation: u64,
    pub(crate) registered_at: Timestamp,
    pub(crate) draining: bool,
}

#[derive(Default)]
pub(crate) struct Store {
    pub(crate) tasks: BTreeMap<TaskId, Arc<Task>>,
    open: BTreeSet<TaskId>,
    due: BTreeSet<(Timestamp, TaskId)>,
    keys: BTreeMap<KeyName, (TaskId, Fingerprint)>,
    pub(crate) agents: BTreeMap<AgentId, Row>,
}

impl Store {
    /// Takes a task on with its key, or says whose key it is.
    pub(crate) fn insert(
        &mut self,
        task: Arc<Task>,
        key: Option<(KeyName, Fingerprint)>,
    ) -> Result<(), (TaskId, Fingerprint)> {
        if let Some((name, fingerprint)) = key {
            if let Some(standing) = self.keys.get(&name) {
                return Err(*standing);
            }
            self.keys.insert(name, (task.id(), fingerprint));
        }
        self.put(task);
        Ok(())
    }

    /// Puts a task's next state in the place of its last one, if that is what stands.
    pub(crate) fn commit(&mut self, next: Arc<Task>) -> bool {
        let stands = self.tasks.get(&next.id()).is_some_and(|stored| stored.version + 1 == next.version);
        if stands {
            self.put(next);
        }
        stands
    }

    fn put(&mut self, task: Arc<Task>) {
        let id = task.id();
        if let Some(at) = self.tasks.get(&id).and_then(|last| last.due_at()) {
            self.due.remove(&(at, id));
        }
        self.due.extend(task.due_at().map(|at| (at, id)));
        if task.state.phase.name().is_final() {
            self.open.remove(&id);
        } else {
            self.open.insert(id);
        }
        self.tasks.insert(id, task);
    }

    pub(crate) fn key(&self, name: &KeyName) -> Option<(TaskId, Fingerprint)> {
        self.keys.get(name).copied()
    }

    pub(crate) fn due(&self, by: Timestamp) -> Vec<TaskId> {
        self.due.iter().take_while(|(at, _)| *at <= by).map(|(_, id)| *id).collect()
    }

    pub(crate) fn open(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.open.iter().filter_map(|id| self.tasks.get(id))
    }
}
