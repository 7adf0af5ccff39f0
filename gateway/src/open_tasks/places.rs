//! Places for tasks that are about to be taken on. Whoever asks whether there is room and is told yes has the place from
//! then on, so that many who ask at once are not all told of the same one.

use std::sync::Arc;

use reach_core::admission::{Class, Crowded, WaitingLimits};
use reach_schemas::{TaskId, Timestamp};

use super::OpenTasks;

/// A place that is kept for a task while it is being stored. Dropped, it is given back, unless the task has come into it.
pub struct Reserved {
    open: Arc<OpenTasks>,
    id: TaskId,
    /// Somebody else stores the same task at the same time, and has the place.
    is_shared: bool,
}

impl OpenTasks {
    /// Keeps a place for a task, of so many at most. None: all are taken.
    #[must_use]
    pub fn reserve(self: &Arc<Self>, id: TaskId, most: usize) -> Option<Reserved> {
        let mut inner = self.lock();
        if inner.tasks.len() + inner.reserved.len() >= most {
            return None;
        }
        let is_shared = !inner.reserved.insert(id);
        drop(inner);
        Some(Reserved { open: Arc::clone(self), id, is_shared })
    }
}

impl Reserved {
    /// For which task.
    #[must_use]
    pub const fn id(&self) -> TaskId {
        self.id
    }

    /// Takes the task on as one that has to wait: it is counted among them from now on.
    ///
    /// # Errors
    /// Too much waits already, or its turn would come too late. Then it is not counted.
    pub fn admit(
        &self,
        class: Class,
        limits: &WaitingLimits,
        deadline_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), Crowded> {
        let mut inner = self.open.lock();
        inner.class(self.id, None);
        inner.waiting.admit(&class, limits, deadline_at, now)?;
        inner.class(self.id, Some(class));
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut inner = self.open.lock();
        if !self.is_shared && inner.reserved.remove(&self.id) {
            // It never came: nothing was stored.
            inner.class(self.id, None);
        }
    }
}
