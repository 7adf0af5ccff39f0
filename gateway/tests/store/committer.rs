//! Group commit over a store that is slow, and one that fails.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::join_all;
use reach_core::audit::{Checkpoint, Mark, Verifier};
use reach_core::task::Task;
use reach_gateway::store::committer::WAITING_MAX;
use reach_gateway::store::memory::MemoryStore;
use reach_gateway::store::{
    AgentRow, Altered, Answer, AuditLog, AuditQuery, Command, Committer, Counts, Document, Error, IdentityRow, KeyRow,
    OutboxAsk, OutboxCounts, OutboxDue, OutboxQuery, OutboxRow, Outcome, Query, Store,
};
use reach_schemas::{AuditRow, IdempotencyKey, TaskId, Timestamp, WebhookId};
use tokio::sync::Semaphore;

use crate::make::{insert, insert_keyed, key, task};

/// A memory store that applies one batch for each permit, and keeps the sizes.
struct Slow {
    inner: MemoryStore,
    permits: Semaphore,
    sizes: Mutex<Vec<usize>>,
    is_full: bool,
}

impl Slow {
    fn new(is_full: bool) -> Arc<Self> {
        Arc::new(Self { inner: MemoryStore::new(), permits: Semaphore::new(0), sizes: Mutex::default(), is_full })
    }
}

impl Store for Slow {
    fn apply(&self, batch: Vec<Command>) -> Answer<'_, Vec<Outcome>> {
        async move {
            self.sizes.lock().unwrap().push(batch.len());
            self.permits.acquire().await.unwrap().forget();
            if self.is_full {
                Err(Error::Full { path: "/data/reach.db".into() })
            } else {
                self.inner.apply(batch).await
            }
        }
        .boxed()
    }
    fn load(&self, id: TaskId) -> Answer<'_, Option<Task>> {
        self.inner.load(id)
    }
    fn load_by_key<'a>(&'a self, scope: &'a str, key: &'a IdempotencyKey) -> Answer<'a, Option<KeyRow>> {
        self.inner.load_by_key(scope, key)
    }
    fn due(&self, by: Timestamp, limit: u32) -> Answer<'_, Vec<(Timestamp, TaskId)>> {
        self.inner.due(by, limit)
    }
    fn open_after(&self, after: Option<TaskId>, limit: u32) -> Answer<'_, Vec<Task>> {
        self.inner.open_after(after, limit)
    }
    fn list(&self, query: Query) -> Answer<'_, Vec<Task>> {
        self.inner.list(query)
    }
    fn count(&self, query: Query) -> Answer<'_, u64> {
        self.inner.count(query)
    }
    fn agents(&self) -> Answer<'_, Vec<AgentRow>> {
        self.inner.agents()
    }
    fn document<'a>(&'a self, name: &'a str) -> Answer<'a, Option<Document>> {
        self.inner.document(name)
    }
    fn identities(&self) -> Answer<'_, Vec<IdentityRow>> {
        self.inner.identities()
    }
    fn outbox_due(&self, ask: OutboxAsk) -> Answer<'_, OutboxDue> {
        self.inner.outbox_due(ask)
    }
    fn outbox_row(&self, id: WebhookId) -> Answer<'_, Option<OutboxRow>> {
        self.inner.outbox_row(id)
    }
    fn outbox_list(&self, query: OutboxQuery) -> Answer<'_, Vec<OutboxRow>> {
        self.inner.outbox_list(query)
    }
    fn outbox_counts(&self) -> Answer<'_, OutboxCounts> {
        self.inner.outbox_counts()
    }
    fn counts(&self) -> Answer<'_, Counts> {
        self.inner.counts()
    }
    fn check(&self) -> Answer<'_, ()> {
        self.inner.check()
    }
}

impl AuditLog for Slow {
    fn audit_head(&self) -> Answer<'_, Mark> {
        self.inner.audit_head()
    }
    fn audit_list(&self, query: AuditQuery) -> Answer<'_, Vec<AuditRow>> {
        self.inner.audit_list(query)
    }
    fn audit_check(&self, verifier: Verifier, rows: u32) -> Answer<'_, (Verifier, bool)> {
        self.inner.audit_check(verifier, rows)
    }
    fn audit_checkpoints(&self, after: u64, limit: u32) -> Answer<'_, Vec<Checkpoint>> {
        self.inner.audit_checkpoints(after, limit)
    }
    fn audit_checkpoint(&self) -> Answer<'_, Option<Checkpoint>> {
        self.inner.audit_checkpoint()
    }
    fn audit_altered(&self) -> Answer<'_, Altered> {
        self.inner.audit_altered()
    }
}

#[tokio::test]
async fn commands_that_wait_for_one_batch_are_the_next() {
    let slow = Slow::new(false);
    let committer = Committer::new(slow.clone());
    let first = tokio::spawn({
        let committer = committer.clone();
        async move { committer.submit(insert(task(0))).await }
    });
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    let others = join_all((1..=9).map(|n| committer.submit(insert_keyed(task(n), key("same", 1), 0))));
    let others = async {
        slow.permits.add_permits(2);
        others.await
    };
    let outcomes: Vec<Outcome> = others.await.into_iter().map(Result::unwrap).collect();
    assert_eq!(first.await.unwrap().unwrap(), Outcome::Inserted);
    assert_eq!(outcomes[0], Outcome::Inserted);
    assert!(outcomes[1..].iter().all(|outcome| matches!(outcome, Outcome::KeyTaken { .. })));
    assert_eq!(*slow.sizes.lock().unwrap(), [1, 9]);
}

#[tokio::test]
async fn an_error_goes_to_every_command_of_its_batch() {
    let slow = Slow::new(true);
    let committer = Committer::new(slow.clone());
    slow.permits.add_permits(9);
    let refused = join_all((0..5).map(|n| committer.submit(insert(task(n))))).await;
    assert!(refused.iter().all(|refused| matches!(refused, Err(Error::Full { .. }))), "{refused:?}");
}

#[tokio::test]
async fn when_too_many_wait_the_next_is_refused_at_once() {
    let slow = Slow::new(false);
    let committer = Committer::new(slow.clone());
    let mut waiting = Vec::new();
    let refused = loop {
        let mut next = Box::pin(committer.submit(insert(task(waiting.len() as u64))));
        if let Some(answer) = next.as_mut().now_or_never() {
            break answer;
        }
        waiting.push(next);
    };
    assert!(matches!(refused, Err(Error::Busy { waiting_max: WAITING_MAX })), "{refused:?}");
    assert_eq!(waiting.len(), WAITING_MAX);
    slow.permits.add_permits(9);
    let outcomes = join_all(waiting).await;
    assert!(outcomes.into_iter().all(|outcome| outcome.unwrap() == Outcome::Inserted));
}

#[tokio::test]
async fn a_caller_that_goes_away_takes_nothing_back() {
    let slow = Slow::new(false);
    let committer = Committer::new(slow.clone());
    assert!(committer.submit(insert(task(1))).now_or_never().is_none());
    slow.permits.add_permits(2);
    assert_eq!(committer.submit(insert(task(2))).await.unwrap(), Outcome::Inserted);
    assert_eq!(slow.load(task(1).id()).await.unwrap(), Some(task(1)));
}
