//! Those who wait for a task. They are woken after the commit with the task itself; nobody polls. Register first,
//! then read: whatever happens in between is not missed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reach_core::task::Task;
use reach_schemas::TaskId;
use tokio::sync::watch;

type Seen = Option<Arc<Task>>;

/// Everybody who waits.
#[derive(Default)]
pub struct Waiters {
    waiting: Mutex<HashMap<TaskId, watch::Sender<Seen>>>,
}

/// One who waits for one task. Dropping it ends the wait.
pub struct Waiter {
    task_id: TaskId,
    seen: watch::Receiver<Seen>,
    waiters: Arc<Waiters>,
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, watch::Sender<Seen>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for changes of a task from now on.
    #[must_use]
    pub fn register(self: &Arc<Self>, task_id: TaskId) -> Waiter {
        let seen = self.lock().entry(task_id).or_insert_with(|| watch::Sender::new(None)).subscribe();
        Waiter { task_id, seen, waiters: Arc::clone(self) }
    }

    /// Shows a task as it is now to all who wait for it.
    pub fn wake(&self, task: &Arc<Task>) {
        if let Some(sender) = self.lock().get(&task.id()) {
            sender.send_replace(Some(Arc::clone(task)));
        }
    }

    /// How many tasks are waited for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Waiter {
    /// The next change of the task.
    pub async fn changed(&mut self) -> Option<Arc<Task>> {
        self.seen.changed().await.ok()?;
        self.seen.borrow_and_update().clone()
    }

    /// The task once it is final.
    pub async fn finished(&mut self) -> Option<Arc<Task>> {
        loop {
            let task = self.changed().await?;
            if task.state.phase.name().is_final() {
                return Some(task);
            }
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self.waiters.lock();
        // This receiver is still counted.
        if waiting.get(&self.task_id).is_some_and(|sender| sender.receiver_count() <= 1) {
            waiting.remove(&self.task_id);
        }
    }
}
