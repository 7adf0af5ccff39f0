//! The two stores of a gateway, and which of them has a task: the durable one, and one in memory for what a killed
//! gateway may forget (`Task::may_stay_in_memory`). A task moves one way only, into the durable store, and a step that
//! it may not take in memory is itself the move. No other module asks where a task is.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::try_join_all;
use reach_core::audit;
use reach_core::task::Task;
use reach_schemas::{RawJson, TaskId, Timestamp};

use crate::store::{Command, Committer, Error, Key, OutboxRow, Outcome, Query, Store};
use crate::turns::{Turn, Turns};

/// How many completed tasks wait in memory to be written; with more, the oldest are forgotten unwritten.
const COMPLETED_MAX: usize = 8192;
/// How much they may take together, in bytes; the same beyond.
const COMPLETED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What a task is reckoned at beside its params and its result, in bytes.
const TASK_BYTES: usize = 4096;
/// How many tasks are written at once when everything is.
const PAGE: u32 = 256;

/// Both stores.
pub struct Stores {
    durable: Arc<dyn Store>,
    committer: Committer,
    memory: Arc<dyn Store>,
    kept: Mutex<Kept>,
    turns: Arc<Turns>,
}

/// What is known of the tasks in memory.
#[derive(Default)]
struct Kept {
    ids: HashSet<TaskId>,
    /// Those that are completed, the oldest first, with what each is reckoned at.
    completed: VecDeque<(TaskId, usize)>,
    bytes: usize,
}

/// What is told of a step, in its commit: to the world, and to the audit log.
#[derive(Debug, Default)]
pub struct Told {
    /// Messages that are to be sent.
    pub outbox: Vec<OutboxRow>,
    /// What is written down.
    pub audit: Vec<audit::Event>,
}

impl Told {
    /// Whether it is nothing.
    fn is_nothing(&self) -> bool {
        self.outbox.is_empty() && self.audit.is_empty()
    }
}

fn bytes_of(task: &Task) -> usize {
    let texts = [task.birth.submit.params.as_ref(), task.state.phase.result()];
    TASK_BYTES + texts.into_iter().flatten().map(|text: &RawJson| text.get().len()).sum::<usize>()
}

impl Kept {
    /// Which completed tasks there is no more room for.
    fn overflow(&mut self) -> Vec<TaskId> {
        let mut over = Vec::new();
        while self.completed.len() > COMPLETED_MAX || self.bytes > COMPLETED_BYTES_MAX {
            let Some((id, bytes)) = self.completed.pop_front() else { break };
            self.bytes -= bytes;
            self.ids.remove(&id);
            over.push(id);
        }
        over
    }

    /// Drops those from the front that have been written.
    fn written(&mut self, ids: &HashSet<TaskId>) {
        while let Some((id, bytes)) = self.completed.front().copied().filter(|(id, _)| ids.contains(id)) {
            self.completed.pop_front();
            self.bytes -= bytes;
            self.ids.remove(&id);
        }
    }
}

impl Stores {
    /// Over a durable store, the way in to it, and one in memory that is empty.
    #[must_use]
    pub fn new(durable: Arc<dyn Store>, committer: Committer, memory: Arc<dyn Store>) -> Self {
        Self { durable, committer, memory, kept: Mutex::default(), turns: Arc::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn to take a step of a task.
    pub async fn turn(&self, id: TaskId) -> Turn {
        self.turns.take(id).await
    }

    fn is_in_memory(&self, id: TaskId) -> bool {
        self.kept().ids.contains(&id)
    }

    async fn in_memory(&self, command: Command) -> Result<Outcome, Error> {
        self.memory.apply(vec![command]).await?.pop().ok_or(Error::Closed)
    }

    async fn forget(&self, ids: &[TaskId]) -> Result<(), Error> {
        self.memory.apply(ids.iter().copied().map(Command::Forget).collect()).await.map(drop)
    }

    /// A task, open or finished.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn load(&self, id: TaskId) -> Result<Option<Task>, Error> {
        // One that moves just now is written there before it is forgotten here.
        if self.is_in_memory(id)
            && let Some(task) = self.memory.load(id).await?
        {
            return Ok(Some(task));
        }
        self.durable.load(id).await
    }

    /// Takes a new task on; durably, unless its caller waits for it and a kill may forget it.
    ///
    /// # Errors
    /// It cannot be stored.
    pub async fn insert(
        &self,
        task: Task,
        key: Option<Key>,
        now: Timestamp,
        is_waited_for: bool,
    ) -> Result<Outcome, Error> {
        let id = task.id();
        let is_ephemeral = is_waited_for && key.is_none() && task.may_stay_in_memory();
        let command = Command::Insert { task, key, now, outbox: Vec::new() };
        if !is_ephemeral {
            return self.committer.submit(command).await;
        }
        self.kept().ids.insert(id);
        self.in_memory(command).await
    }

    /// Puts a task's next state in the place of its last one, wherever that is; what may not be in memory, or is to be
    /// told of, goes into the durable store with this very step.
    ///
    /// # Errors
    /// It cannot be stored, and stands as it stood.
    pub async fn commit(
        self: &Arc<Self>,
        turn: &Turn,
        next: &Task,
        was_final: bool,
        key_expires_at: Option<Timestamp>,
        now: Timestamp,
        told: Told,
    ) -> Result<Outcome, Error> {
        let is_in_memory = self.is_in_memory(next.id());
        if is_in_memory && (was_final || !told.is_nothing() || !next.may_stay_in_memory()) {
            return self.move_on(turn, next, now, told).await;
        }
        let Told { outbox, audit } = told;
        let command = Command::Commit { task: next.clone(), was_final, key_expires_at, outbox }.audited(audit);
        if is_in_memory { self.commit_in_memory(next, command).await } else { self.committer.submit(command).await }
    }

    async fn commit_in_memory(&self, next: &Task, command: Command) -> Result<Outcome, Error> {
        let outcome = self.in_memory(command).await?;
        if outcome == Outcome::Committed && next.state.phase.name().is_final() {
            let over = {
                let mut kept = self.kept();
                let bytes = bytes_of(next);
                kept.completed.push_back((next.id(), bytes));
                kept.bytes += bytes;
                kept.overflow()
            };
            if !over.is_empty() {
                self.forget(&over).await?;
            }
        }
        Ok(outcome)
    }

    /// Takes a step and the task with it into the durable store.
    async fn move_on(self: &Arc<Self>, turn: &Turn, next: &Task, now: Timestamp, told: Told) -> Result<Outcome, Error> {
        let current = self.memory.load(next.id()).await?.map(|task| task.version);
        if current.is_none_or(|version| version + 1 != next.version) {
            return Ok(Outcome::Conflict { current });
        }
        let outcome = self.write_and_forget(turn, next.clone(), now, told).await?;
        Ok(if outcome == Outcome::Inserted { Outcome::Committed } else { outcome })
    }

    /// Writes a task into the durable store, then forgets it here. It ends, and its turn with it, even if whoever asked
    /// for it has gone: half a move would be two tasks.
    async fn write_and_forget(
        self: &Arc<Self>,
        turn: &Turn,
        task: Task,
        now: Timestamp,
        told: Told,
    ) -> Result<Outcome, Error> {
        let (stores, turn) = (Arc::clone(self), turn.clone());
        let moved = tokio::spawn(async move {
            let id = task.id();
            let Told { outbox, audit } = told;
            let command = Command::Insert { task, key: None, now, outbox }.audited(audit);
            let outcome = stores.committer.submit(command).await?;
            stores.forget(&[id]).await?;
            stores.kept().ids.remove(&id);
            drop(turn);
            Ok(outcome)
        });
        moved.await.map_err(|_| Error::Closed)?
    }

    /// Makes an unfinished task durable, and answers it as it is then. None: it was not in memory.
    ///
    /// # Errors
    /// It cannot be stored, and stays where it is.
    pub async fn persist(self: &Arc<Self>, id: TaskId, now: Timestamp) -> Result<Option<Task>, Error> {
        if !self.is_in_memory(id) {
            return Ok(None);
        }
        let turn = self.turn(id).await;
        let task = self.memory.load(id).await?;
        if let Some(task) = task.as_ref().filter(|task| !task.state.phase.name().is_final()) {
            self.write_and_forget(&turn, task.clone(), now, Told::default()).await?;
        }
        Ok(task)
    }

    /// Tasks that fit the query, the newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self, query: Query) -> Result<Vec<Task>, Error> {
        // In this order, so that a task that moves meanwhile is found twice rather than never.
        let ephemeral = self.memory.list(query.clone()).await?;
        let limit = query.limit as usize;
        let mut found = self.durable.list(query).await?;
        if ephemeral.is_empty() {
            return Ok(found);
        }
        let written: HashSet<TaskId> = found.iter().map(Task::id).collect();
        found.extend(ephemeral.into_iter().filter(|task| !written.contains(&task.id())));
        found.sort_by_key(|task| std::cmp::Reverse(task.id()));
        found.truncate(limit);
        Ok(found)
    }

    /// Open tasks that are due at `by` or earlier, so many of each store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn due(&self, by: Timestamp, limit: u32) -> Result<Vec<(Timestamp, TaskId)>, Error> {
        let mut due = self.memory.due(by, limit).await?;
        due.extend(self.durable.due(by, limit).await?);
        Ok(due)
    }

    /// Writes completed tasks that are in memory only, the oldest first, and says how many. To be called by one at a
    /// time.
    ///
    /// # Errors
    /// They cannot be stored, and stay in memory.
    pub async fn write_completed(&self, limit: u32, now: Timestamp) -> Result<usize, Error> {
        let ids: Vec<TaskId> = self.kept().completed.iter().take(limit as usize).map(|(id, _)| *id).collect();
        let mut batch = Vec::with_capacity(ids.len());
        for id in &ids {
            let task = self.memory.load(*id).await?;
            batch.extend(task.map(|task| Command::Insert { task, key: None, now, outbox: Vec::new() }));
        }
        if !batch.is_empty() {
            self.durable.apply(batch).await?;
            self.kept().written(&ids.iter().copied().collect());
            self.forget(&ids).await?;
        }
        Ok(ids.len())
    }

    /// Writes everything that is in memory only. To be called when nothing new comes any more.
    ///
    /// # Errors
    /// It cannot be stored.
    pub async fn write_all(self: &Arc<Self>, now: Timestamp) -> Result<(), Error> {
        let mut after = None;
        loop {
            let page = self.memory.open_after(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id());
            try_join_all(page.iter().map(|task| self.persist(task.id(), now))).await?;
        }
        while self.write_completed(PAGE, now).await? > 0 {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> TaskId {
        TaskId::from_parts(n as u64, 0)
    }

    fn kept(tasks: impl Iterator<Item = (usize, usize)>) -> Kept {
        let completed: VecDeque<_> = tasks.map(|(n, bytes)| (id(n), bytes)).collect();
        let ids = completed.iter().map(|(id, _)| *id).collect();
        Kept { ids, bytes: completed.iter().map(|(_, bytes)| bytes).sum(), completed }
    }

    #[test]
    fn the_oldest_completed_tasks_go_when_there_are_too_many() {
        let mut kept = kept((0..COMPLETED_MAX + 2).map(|n| (n, 1)));
        assert_eq!(kept.overflow(), [id(0), id(1)]);
        assert_eq!((kept.completed.len(), kept.bytes, kept.ids.len()), (COMPLETED_MAX, COMPLETED_MAX, COMPLETED_MAX));
        assert_eq!(kept.overflow(), []);
    }

    #[test]
    fn the_oldest_completed_tasks_go_when_they_are_too_big() {
        let half = COMPLETED_BYTES_MAX / 2;
        let mut kept = kept([(1, half), (2, half), (3, 1)].into_iter());
        assert_eq!(kept.overflow(), [id(1)]);
        assert_eq!(kept.bytes, half + 1);
    }

    #[test]
    fn what_was_written_is_kept_no_longer_and_what_came_meanwhile_is() {
        let mut kept = kept((1..=4).map(|n| (n, 10)));
        // The first was forgotten for want of room while it was being written.
        kept.written(&[0, 1, 2].map(id).into());
        assert_eq!((kept.completed.len(), kept.bytes, kept.ids.contains(&id(2))), (2, 20, false));
        assert!(kept.ids.contains(&id(3)));
    }
}
