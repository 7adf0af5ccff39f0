//! Those who wait for a task, and those who follow it. They are told after the commit with the task itself; nobody polls.
//! Register first, then read: whatever happens in between is not missed. Who waits is shown the newest only; who follows is
//! given every change in turn.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reach_core::task::Task;
use reach_schemas::TaskId;
use tokio::sync::{Notify, watch};

/// How many changes of a task may wait until a follower takes them. At more the oldest goes, never the newest.
pub const CHANGES_MAX: usize = 64;

type Seen = Option<Arc<Task>>;

/// Everybody who waits.
#[derive(Default)]
pub struct Waiters {
    waiting: Mutex<HashMap<TaskId, Told>>,
}

/// Who is told of a task.
#[derive(Default)]
struct Told {
    waiters: Option<watch::Sender<Seen>>,
    followers: Vec<Arc<Changes>>,
}

/// Changes that one follower has not taken yet, oldest first.
#[derive(Default)]
struct Changes {
    waiting: Mutex<VecDeque<Arc<Task>>>,
    bell: Notify,
}

/// One who waits for one task. Dropping it ends the wait.
pub struct Waiter {
    task_id: TaskId,
    seen: watch::Receiver<Seen>,
    waiters: Arc<Waiters>,
}

/// One who follows one task. Dropping it ends that.
pub struct Follower {
    task_id: TaskId,
    changes: Arc<Changes>,
    /// The version of what was seen last: older changes are passed over.
    seen: u64,
    waiters: Arc<Waiters>,
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Told>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of a task from now on.
    #[must_use]
    pub fn register(self: &Arc<Self>, task_id: TaskId) -> Waiter {
        let mut waiting = self.lock();
        let sender = waiting.entry(task_id).or_default().waiters.get_or_insert_with(|| watch::Sender::new(None));
        Waiter { task_id, seen: sender.subscribe(), waiters: Arc::clone(self) }
    }

    /// Follows a task from now on.
    #[must_use]
    pub fn follow(self: &Arc<Self>, task_id: TaskId) -> Follower {
        let changes = Arc::new(Changes::default());
        self.lock().entry(task_id).or_default().followers.push(Arc::clone(&changes));
        Follower { task_id, changes, seen: 0, waiters: Arc::clone(self) }
    }

    /// Shows a task as it is now to all who wait for it. Called in the order of its commits.
    pub fn wake(&self, task: &Arc<Task>) {
        let waiting = self.lock();
        let Some(told) = waiting.get(&task.id()) else { return };
        if let Some(waiters) = &told.waiters {
            waiters.send_replace(Some(Arc::clone(task)));
        }
        for follower in &told.followers {
            follower.put(task);
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

    /// Changes who is told of a task, and forgets it where that is nobody.
    fn leave(&self, task_id: TaskId, change: impl FnOnce(&mut Told)) {
        let mut waiting = self.lock();
        let Some(told) = waiting.get_mut(&task_id) else { return };
        change(told);
        if told.waiters.is_none() && told.followers.is_empty() {
            waiting.remove(&task_id);
        }
    }
}

impl Changes {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Task>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, task: &Arc<Task>) {
        let mut waiting = self.lock();
        if waiting.len() == CHANGES_MAX {
            waiting.pop_front();
        }
        waiting.push_back(Arc::clone(task));
        drop(waiting);
        self.bell.notify_one();
    }
}

impl Waiter {
    /// The task once it is final.
    pub async fn finished(&mut self) -> Option<Arc<Task>> {
        loop {
            self.seen.changed().await.ok()?;
            let task = self.seen.borrow_and_update().clone()?;
            if task.state.phase.name().is_final() {
                return Some(task);
            }
        }
    }
}

impl Follower {
    /// Passes over changes up to this one: the task was read as it was then.
    #[must_use]
    pub fn after(mut self, task: &Task) -> Self {
        self.seen = task.version;
        self
    }

    /// The next change of the task. May be dropped and called again.
    pub async fn changed(&mut self) -> Arc<Task> {
        loop {
            let next = self.changes.lock().pop_front();
            match next {
                Some(task) if task.version > self.seen => {
                    self.seen = task.version;
                    return task;
                }
                Some(_) => {}
                None => self.changes.bell.notified().await,
            }
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.waiters.leave(self.task_id, |told| {
            // This receiver is still counted.
            told.waiters.take_if(|sender| sender.receiver_count() <= 1);
        });
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.waiters.leave(self.task_id, |told| told.followers.retain(|other| !Arc::ptr_eq(other, &self.changes)));
    }
}

#[cfg(test)]
mod tests {
    use reach_core::task::Birth;
    use reach_schemas::{RawJson, Span, Submit, Timestamp};

    use super::*;

    /// The task after so many commits, with that number as its progress.
    fn task(version: u64) -> Arc<Task> {
        let (id, created_at) = (TaskId::from_parts(1, 1), Timestamp::from_ms(1));
        let submit = Submit::default();
        let birth = Birth { id, scope: String::new(), has_scoped_key: true, submit, created_at };
        let mut task = Task::new(birth, Span::from_secs(1));
        (task.version, task.state.progress) = (version, RawJson::of(&version).ok());
        Arc::new(task)
    }

    fn taken(follower: &mut Follower) -> Vec<u64> {
        use futures_util::FutureExt;
        std::iter::from_fn(|| follower.changed().now_or_never().map(|task| task.version)).collect()
    }

    #[tokio::test]
    async fn whoever_follows_is_given_every_change_and_at_the_limit_loses_the_oldest() {
        let waiters = Arc::new(Waiters::default());
        let (mut one, read) = (waiters.follow(task(0).id()), waiters.follow(task(0).id()));
        (1..=3).for_each(|version| waiters.wake(&task(version)));
        let mut read = read.after(&task(2));
        assert_eq!(taken(&mut one), [1, 2, 3]);
        assert_eq!(taken(&mut read), [3], "what was read already is not told again");
        let many = 10 + CHANGES_MAX as u64;
        (4..4 + many).for_each(|version| waiters.wake(&task(version)));
        assert_eq!(taken(&mut one), (14..4 + many).collect::<Vec<_>>());
        drop((one, read));
        assert!(waiters.is_empty());
    }

    #[tokio::test]
    async fn nobody_is_told_of_a_task_any_more_once_all_have_left() {
        let waiters = Arc::new(Waiters::default());
        let (one, other) = (waiters.register(task(0).id()), waiters.register(task(0).id()));
        let follower = waiters.follow(task(0).id());
        drop(one);
        drop(follower);
        assert_eq!(waiters.len(), 1);
        drop(other);
        assert!(waiters.is_empty());
    }
}
