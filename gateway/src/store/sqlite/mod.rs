//! A store in one SQLite file: write-ahead log, synced at every commit, one thread that writes and a few that read.
//! It survives a killed process and a power cut, and is refused to a second gateway.

mod audit;
mod change;
mod entries;
mod failure;
mod list;
mod outbox;
mod query;
mod reader;
mod row;
mod schema;
mod writer;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use reach_core::audit::{Checkpoint, Mark, Verifier};
use reach_core::task::Task;
use reach_schemas::{AuditRow, IdempotencyKey, TaskId, Timestamp, WebhookId};

use super::{
    AgentRow, Altered, Answer, AuditLog, AuditQuery, Command, Counts, Document, Error, IdentityRow, KeyRow, OutboxAsk,
    OutboxCounts, OutboxDue, OutboxQuery, OutboxRow, Outcome, Query, Store,
};
pub use audit::AuditFile;
use change::Change;
use reader::Readers;
use writer::Writer;

/// Where the store is, and how big it may grow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteConfig {
    /// The file. It and its directories are made if they are not there; a lock and a log stand beside it.
    pub path: PathBuf,
    /// How many bytes the file may have, not counting its log. Beyond: [`Error::Full`]. None: as the disk allows.
    pub bytes_max: Option<u64>,
}

/// A store in one SQLite file. Dropping it waits until what was asked for is written.
pub struct SqliteStore {
    config: SqliteConfig,
    // The order matters: readers go first and the writer closes the file, before the lock is given back.
    readers: Readers,
    writer: Writer,
    _lock: schema::Lock,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("config", &self.config).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the file, or makes it, and brings it to the layout that this gateway knows. Blocks on the disk.
    ///
    /// # Errors
    /// [`Error::Locked`] at once if another gateway has it; [`Error::Foreign`], [`Error::Newer`],
    /// [`Error::Corrupt`], [`Error::ReadOnly`] and the others as they say.
    pub fn open(config: SqliteConfig) -> Result<Self, Error> {
        let lock = schema::lock(&config.path)?;
        let file = schema::open(&config)?;
        let readers = Readers::start(&config.path)?;
        let writer = Writer::start(config.path.clone(), file)?;
        Ok(Self { config, readers, writer, _lock: lock })
    }

    async fn write(&self, batch: Vec<Command>) -> Result<Vec<Outcome>, Error> {
        let changes = batch.into_iter().map(Change::try_from).collect::<Result<_, _>>().map_err(|error| {
            Error::Unavailable { place: self.config.path.display().to_string(), source: Arc::new(error) }
        })?;
        self.writer.write(changes).await
    }
}

impl Store for SqliteStore {
    fn apply(&self, batch: Vec<Command>) -> Answer<'_, Vec<Outcome>> {
        self.write(batch).boxed()
    }

    fn load(&self, id: TaskId) -> Answer<'_, Option<Task>> {
        async move {
            match self.readers.read_here(|file| query::load_open(file, id))? {
                Some(open) => Ok(Some(open)),
                None => self.readers.read(move |file| query::load(file, id)).await,
            }
        }
        .boxed()
    }

    fn load_by_key<'a>(&'a self, scope: &'a str, key: &'a IdempotencyKey) -> Answer<'a, Option<KeyRow>> {
        let (scope, key) = (scope.to_owned(), key.clone());
        self.readers.read(move |file| query::load_by_key(file, &scope, key.as_str())).boxed()
    }

    fn due(&self, by: Timestamp, limit: u32) -> Answer<'_, Vec<(Timestamp, TaskId)>> {
        self.readers.read(move |file| query::due(file, by, limit)).boxed()
    }

    fn open_after(&self, after: Option<TaskId>, limit: u32) -> Answer<'_, Vec<Task>> {
        self.readers.read(move |file| query::open_after(file, after, limit)).boxed()
    }

    fn list(&self, query: Query) -> Answer<'_, Vec<Task>> {
        self.readers.read(move |file| query::snapshot(file, |file| list::list(file, &query))).boxed()
    }

    fn count(&self, query: Query) -> Answer<'_, u64> {
        self.readers.read(move |file| query::snapshot(file, |file| list::count(file, &query))).boxed()
    }

    fn agents(&self) -> Answer<'_, Vec<AgentRow>> {
        self.readers.read(query::agents).boxed()
    }

    fn document<'a>(&'a self, name: &'a str) -> Answer<'a, Option<Document>> {
        let name = name.to_owned();
        self.readers.read(move |file| query::document(file, &name)).boxed()
    }

    fn identities(&self) -> Answer<'_, Vec<IdentityRow>> {
        self.readers.read(query::identities).boxed()
    }

    fn outbox_due(&self, ask: OutboxAsk) -> Answer<'_, OutboxDue> {
        self.readers.read(move |file| query::snapshot(file, |file| outbox::due(file, &ask))).boxed()
    }

    fn outbox_row(&self, id: WebhookId) -> Answer<'_, Option<OutboxRow>> {
        self.readers.read(move |file| outbox::row(file, id)).boxed()
    }

    fn outbox_list(&self, query: OutboxQuery) -> Answer<'_, Vec<OutboxRow>> {
        self.readers.read(move |file| outbox::list(file, &query)).boxed()
    }

    fn outbox_counts(&self) -> Answer<'_, OutboxCounts> {
        self.readers.read(|file| query::snapshot(file, outbox::counts)).boxed()
    }

    fn counts(&self) -> Answer<'_, Counts> {
        self.readers.read(|file| query::snapshot(file, query::counts)).boxed()
    }

    fn check(&self) -> Answer<'_, ()> {
        async move { self.writer.write(vec![Change::Probe]).await.map(drop) }.boxed()
    }
}

impl AuditLog for SqliteStore {
    fn audit_head(&self) -> Answer<'_, Mark> {
        self.readers.read(audit::head).boxed()
    }

    fn audit_list(&self, query: AuditQuery) -> Answer<'_, Vec<AuditRow>> {
        self.readers.read(move |file| audit::list(file, &query)).boxed()
    }

    fn audit_check(&self, verifier: Verifier, rows: u32) -> Answer<'_, (Verifier, bool)> {
        self.readers.read(move |file| audit::check(file, verifier, rows)).boxed()
    }

    fn audit_checkpoints(&self, after: u64, limit: u32) -> Answer<'_, Vec<Checkpoint>> {
        self.readers.read(move |file| audit::checkpoints(file, after, limit)).boxed()
    }

    fn audit_checkpoint(&self) -> Answer<'_, Option<Checkpoint>> {
        self.readers.read(audit::checkpoint).boxed()
    }

    fn audit_altered(&self) -> Answer<'_, Altered> {
        self.readers.read(|file| entries::altered(file, schema::LAYOUTS.len())).boxed()
    }
}
