//! A store in memory: for work that need not outlive the process, and as the plainest reading of the contract that
//! the others are compared with.

mod audit;
mod outbox;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::ready;
use outbox::Outbox;
use reach_core::audit::{Checkpoint, Mark, Verifier};
use reach_core::task::Task;
use reach_schemas::{AgentId, AuditRow, IdempotencyKey, TaskId, Timestamp, WebhookId};

use super::{
    AgentRow, Altered, Answer, AuditLog, AuditQuery, Command, Counts, Document, IdentityRow, Key, KeyRow, OutboxAsk,
    OutboxCounts, OutboxDue, OutboxQuery, OutboxRow, Outcome, Query, Store, finished_at,
};

/// A store that is gone when it is dropped.
#[derive(Debug, Default)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
}

type KeyName = (String, IdempotencyKey);

#[derive(Debug, Default)]
struct Tables {
    open: BTreeMap<TaskId, Task>,
    done: BTreeMap<TaskId, Task>,
    due: BTreeSet<(Timestamp, TaskId)>,
    finished: BTreeSet<(Timestamp, TaskId)>,
    keys: BTreeMap<KeyName, KeyRow>,
    key_of: BTreeMap<TaskId, KeyName>,
    agents: BTreeMap<AgentId, AgentRow>,
    documents: BTreeMap<String, Document>,
    identities: BTreeMap<(&'static str, String), IdentityRow>,
    outbox: Outbox,
    audit: audit::Log,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn answer<T: Send + 'static>(&self, read: impl FnOnce(&mut Tables) -> T) -> Answer<'static, T> {
        // A panic under the lock would be a bug of ours in one request; the tables are changed only after all
        // checks, so the others may go on.
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        ready(Ok(read(&mut tables))).boxed()
    }
}

impl Store for MemoryStore {
    fn apply(&self, batch: Vec<Command>) -> Answer<'_, Vec<Outcome>> {
        self.answer(|tables| batch.into_iter().map(|command| tables.apply(command)).collect())
    }

    fn load(&self, id: TaskId) -> Answer<'_, Option<Task>> {
        self.answer(|tables| tables.find(id).cloned())
    }

    fn load_by_key<'a>(&'a self, scope: &'a str, key: &'a IdempotencyKey) -> Answer<'a, Option<KeyRow>> {
        self.answer(|tables| tables.keys.get(&(scope.to_owned(), key.clone())).cloned())
    }

    fn due(&self, by: Timestamp, limit: u32) -> Answer<'_, Vec<(Timestamp, TaskId)>> {
        self.answer(|tables| tables.due.iter().take_while(|(at, _)| *at <= by).take(limit as usize).copied().collect())
    }

    fn open_after(&self, after: Option<TaskId>, limit: u32) -> Answer<'_, Vec<Task>> {
        self.answer(|tables| {
            let fits = |task: &&Task| after.is_none_or(|after| task.id() > after);
            tables.open.values().filter(fits).take(limit as usize).cloned().collect()
        })
    }

    fn list(&self, query: Query) -> Answer<'_, Vec<Task>> {
        self.answer(|tables| tables.list(&query))
    }

    fn count(&self, query: Query) -> Answer<'_, u64> {
        self.answer(|tables| {
            let all = tables.open.values().chain(tables.done.values());
            all.filter(|task| query.fits(task)).take(query.limit as usize).count() as u64
        })
    }

    fn agents(&self) -> Answer<'_, Vec<AgentRow>> {
        self.answer(|tables| tables.agents.values().cloned().collect())
    }

    fn document<'a>(&'a self, name: &'a str) -> Answer<'a, Option<Document>> {
        self.answer(|tables| tables.documents.get(name).cloned())
    }

    fn identities(&self) -> Answer<'_, Vec<IdentityRow>> {
        self.answer(|tables| tables.identities.values().cloned().collect())
    }

    fn outbox_due(&self, ask: OutboxAsk) -> Answer<'_, OutboxDue> {
        self.answer(|tables| tables.outbox.due(&ask))
    }

    fn outbox_row(&self, id: WebhookId) -> Answer<'_, Option<OutboxRow>> {
        self.answer(|tables| tables.outbox.row(id))
    }

    fn outbox_list(&self, query: OutboxQuery) -> Answer<'_, Vec<OutboxRow>> {
        self.answer(|tables| tables.outbox.list(&query))
    }

    fn outbox_counts(&self) -> Answer<'_, OutboxCounts> {
        self.answer(|tables| tables.outbox.counts())
    }

    fn counts(&self) -> Answer<'_, Counts> {
        self.answer(|tables| {
            let mut done = BTreeMap::new();
            for task in tables.done.values() {
                *done.entry(task.state.phase.name()).or_default() += 1;
            }
            Counts { open: tables.open.len() as u64, done, keys: tables.keys.len() as u64, bytes: 0 }
        })
    }

    fn check(&self) -> Answer<'_, ()> {
        ready(Ok(())).boxed()
    }
}

impl AuditLog for MemoryStore {
    fn audit_head(&self) -> Answer<'_, Mark> {
        self.answer(|tables| tables.audit.head())
    }

    fn audit_list(&self, query: AuditQuery) -> Answer<'_, Vec<AuditRow>> {
        self.answer(|tables| tables.audit.list(&query))
    }

    fn audit_check(&self, verifier: Verifier, rows: u32) -> Answer<'_, (Verifier, bool)> {
        self.answer(|tables| tables.audit.check(verifier, rows))
    }

    fn audit_checkpoints(&self, after: u64, limit: u32) -> Answer<'_, Vec<Checkpoint>> {
        self.answer(|tables| tables.audit.checkpoints(after, limit))
    }

    fn audit_checkpoint(&self) -> Answer<'_, Option<Checkpoint>> {
        self.answer(|tables| tables.audit.checkpoint())
    }

    fn audit_altered(&self) -> Answer<'_, Altered> {
        self.answer(|_| Altered::none())
    }
}

impl Tables {
    fn apply(&mut self, command: Command) -> Outcome {
        match command {
            Command::Insert { task, key, now, outbox } => {
                let outcome = self.insert(task, key, now);
                self.tell(&outcome, outbox);
                outcome
            }
            Command::Commit { task, was_final, key_expires_at, outbox } => {
                let outcome = self.commit(task, was_final, key_expires_at);
                self.tell(&outcome, outbox);
                outcome
            }
            Command::NoteSending { id, sending } => {
                self.outbox.note(id, sending);
                Outcome::Done
            }
            Command::PutAgent(row) => {
                self.agents.insert(row.card.agent_id.clone(), row);
                Outcome::Done
            }
            Command::RemoveAgent(id) => {
                self.agents.remove(&id);
                Outcome::Done
            }
            Command::PutDocument(document) => self.put_document(document),
            Command::PutIdentity(row) => {
                self.identities.insert(name_of(&row), row);
                Outcome::Done
            }
            Command::TakeIdentity(row) => match self.identities.remove(&name_of(&row)) {
                Some(_) => Outcome::Done,
                None => Outcome::Conflict { current: None },
            },
            Command::Forget(id) => {
                self.take(id);
                if let Some(name) = self.key_of.remove(&id) {
                    self.keys.remove(&name);
                }
                Outcome::Done
            }
            Command::Purge { finished_before, keys_before, limit } => {
                let keys = self.purge_keys(keys_before, limit as usize);
                let tasks = self.purge_tasks(finished_before, limit as usize);
                let messages = count(self.outbox.purge(finished_before, limit as usize));
                Outcome::Purged { tasks, keys, messages }
            }
            Command::Audited { change, events } => {
                let has_object = self.has_object(&change);
                let outcome = self.apply(*change);
                if matches!(outcome, Outcome::Inserted | Outcome::Committed) || (outcome == Outcome::Done && has_object)
                {
                    self.audit.append(events);
                }
                outcome
            }
            Command::Audit(events) => {
                self.audit.append(events);
                Outcome::Done
            }
            Command::PinAudit(checkpoint) => {
                self.audit.pin(checkpoint);
                Outcome::Done
            }
        }
    }

    /// Whether there is something that a command can be done to.
    fn has_object(&self, command: &Command) -> bool {
        match command {
            Command::NoteSending { id, .. } => self.outbox.row(*id).is_some(),
            Command::RemoveAgent(id) => self.agents.contains_key(id),
            Command::Forget(id) => self.find(*id).is_some(),
            Command::TakeIdentity(row) => self.identities.contains_key(&name_of(row)),
            Command::Insert { .. }
            | Command::Commit { .. }
            | Command::PutAgent(_)
            | Command::PutDocument(_)
            | Command::PutIdentity(_)
            | Command::Purge { .. }
            | Command::Audited { .. }
            | Command::Audit(_)
            | Command::PinAudit(_) => true,
        }
    }

    fn put_document(&mut self, document: Document) -> Outcome {
        let current = self.documents.get(&document.name).map(|stands| stands.version);
        if current.unwrap_or(0) + 1 != document.version {
            return Outcome::Conflict { current };
        }
        self.documents.insert(document.name.clone(), document);
        Outcome::Committed
    }

    /// Takes in what is to be told of a change that was made.
    fn tell(&mut self, outcome: &Outcome, rows: Vec<OutboxRow>) {
        if matches!(outcome, Outcome::Inserted | Outcome::Committed) {
            rows.into_iter().for_each(|row| self.outbox.put(row));
        }
    }

    fn find(&self, id: TaskId) -> Option<&Task> {
        self.open.get(&id).or_else(|| self.done.get(&id))
    }

    fn insert(&mut self, task: Task, key: Option<Key>, now: Timestamp) -> Outcome {
        let id = task.id();
        let named = key.map(|key| {
            let row = KeyRow { task_id: id, fingerprint: key.fingerprint, expires_at: key.expires_at };
            ((key.scope, key.key), row)
        });
        let standing = named.as_ref().and_then(|(name, _)| self.keys.get(name));
        let is_free = |row: &KeyRow| row.expires_at.is_some_and(|at| at <= now);
        if let Some(row) = standing.filter(|row| !is_free(row)) {
            return Outcome::KeyTaken { task_id: row.task_id, fingerprint: row.fingerprint };
        }
        if let Some(stored) = self.find(id) {
            return Outcome::Conflict { current: Some(stored.version) };
        }
        if let Some((name, row)) = named {
            if let Some(former) = self.keys.insert(name.clone(), row) {
                self.key_of.remove(&former.task_id);
            }
            self.key_of.insert(id, name);
        }
        self.put(task);
        Outcome::Inserted
    }

    fn commit(&mut self, task: Task, was_final: bool, key_expires_at: Option<Timestamp>) -> Outcome {
        let id = task.id();
        let table = if was_final { &self.done } else { &self.open };
        let stood = table.get(&id).filter(|stood| Some(stood.version) == task.version.checked_sub(1));
        let Some(stood) = stood else {
            return Outcome::Conflict { current: self.find(id).map(|stored| stored.version) };
        };
        let task = Task { birth: Arc::clone(&stood.birth), ..task };
        let is_final = task.state.phase.name().is_final();
        if is_final || was_final {
            let key = self.key_of.get(&id).and_then(|name| self.keys.get_mut(name));
            if let Some(row) = key {
                row.expires_at = key_expires_at.filter(|_| is_final);
            }
        }
        self.take(id);
        self.put(task);
        Outcome::Committed
    }

    /// Takes a task out of whichever table holds it.
    fn take(&mut self, id: TaskId) {
        if let Some(at) = self.open.remove(&id).and_then(|task| task.due_at()) {
            self.due.remove(&(at, id));
        }
        if let Some(at) = self.done.remove(&id).and_then(|task| finished_at(&task)) {
            self.finished.remove(&(at, id));
        }
    }

    /// Puts a task into the table that its phase belongs to.
    fn put(&mut self, task: Task) {
        let id = task.id();
        if let Some(at) = finished_at(&task) {
            self.finished.insert((at, id));
            self.done.insert(id, task);
        } else {
            self.due.extend(task.due_at().map(|at| (at, id)));
            self.open.insert(id, task);
        }
    }

    fn list(&self, query: &Query) -> Vec<Task> {
        let limit = query.limit as usize;
        let newest = |table: &BTreeMap<TaskId, Task>| -> Vec<Task> {
            table.values().rev().filter(|task| query.fits(task)).take(limit).cloned().collect()
        };
        let mut found = [newest(&self.open), newest(&self.done)].concat();
        found.sort_by_key(|task| std::cmp::Reverse(task.id()));
        found.truncate(limit);
        found
    }

    fn purge_keys(&mut self, before: Timestamp, limit: usize) -> u32 {
        let is_old = |row: &KeyRow| row.expires_at.is_some_and(|at| at < before);
        let mut old: Vec<_> = self.keys.iter().filter(|(_, row)| is_old(row)).collect();
        old.sort_by_key(|(name, row)| (row.expires_at, *name));
        let names: Vec<KeyName> = old.into_iter().take(limit).map(|(name, _)| name.clone()).collect();
        for row in names.iter().filter_map(|name| self.keys.remove(name)).collect::<Vec<_>>() {
            self.key_of.remove(&row.task_id);
        }
        count(names.len())
    }

    fn purge_tasks(&mut self, before: Timestamp, limit: usize) -> u32 {
        let old = self.finished.iter().take_while(|(at, _)| *at < before).map(|(_, id)| *id);
        let ids: Vec<TaskId> = old.filter(|id| !self.key_of.contains_key(id)).take(limit).collect();
        for id in &ids {
            self.take(*id);
        }
        count(ids.len())
    }
}

fn name_of(row: &IdentityRow) -> (&'static str, String) {
    let (kind, id) = row.key();
    (kind, id.to_owned())
}

/// At most `limit`, which was a `u32`.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
