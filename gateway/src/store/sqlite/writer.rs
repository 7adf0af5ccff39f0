//! The one thread that writes: every batch that waits goes into one transaction and shares its sync.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use super::change::Change;
use super::failure::{failure, io_failure};
use crate::store::committer::WAITING_MAX;
use crate::store::{Error, Outcome};

/// No further batch joins a transaction that has so many changes.
const TRANSACTION_MAX: usize = 4096;

/// The way to the thread that writes.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Job {
    batch: Vec<Change>,
    answer: oneshot::Sender<Result<Vec<Outcome>, Error>>,
}

impl Writer {
    /// Starts the thread. It owns the connection and closes it at its end.
    pub(super) fn start(path: PathBuf, file: Connection) -> Result<Self, Error> {
        let (queue, jobs) = sync_channel(WAITING_MAX);
        let place = path.clone();
        let thread =
            thread::Builder::new().name("store-writer".to_owned()).spawn(move || run(&Thread { path, jobs }, file));
        let thread = thread.map_err(|error| io_failure(&place, error))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Writes a batch; durable on return.
    pub(super) async fn write(&self, batch: Vec<Change>) -> Result<Vec<Outcome>, Error> {
        let (answer, outcomes) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or(Error::Closed)?;
        queue.try_send(Job { batch, answer }).map_err(|refused| match refused {
            TrySendError::Full(_) => Error::Busy { waiting_max: WAITING_MAX },
            TrySendError::Disconnected(_) => Error::Closed,
        })?;
        outcomes.await.map_err(|_| Error::Closed)?
    }
}

impl Drop for Writer {
    /// What waits is still written; then the file is closed, so that it can be opened again at once.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // It has said on its own what made it panic, if it did.
            let _ = thread.join();
        }
    }
}

struct Thread {
    path: PathBuf,
    jobs: Receiver<Job>,
}

fn run(thread: &Thread, mut file: Connection) {
    while let Ok(first) = thread.jobs.recv() {
        let mut changes = first.batch.len();
        let mut group = vec![first];
        while changes < TRANSACTION_MAX
            && let Ok(job) = thread.jobs.try_recv()
        {
            changes += job.batch.len();
            group.push(job);
        }
        thread.settle(&mut file, group);
    }
}

impl Thread {
    /// Writes the batches together and answers each.
    fn settle(&self, file: &mut Connection, group: Vec<Job>) {
        match write_all(file, &group) {
            Ok(outcomes) => {
                for (job, outcomes) in group.into_iter().zip(outcomes) {
                    // A caller that has gone away misses its answer; what it asked for stands all the same.
                    let _ = job.answer.send(Ok(outcomes));
                }
            }
            Err(error) => self.refuse(file, group, failure(&self.path, error)),
        }
    }

    /// Nothing of the group was written. A row that cannot be read or written is the fault of one batch, so each is
    /// tried alone; a full or failing disk is nobody's, and trying again would only keep everybody waiting.
    fn refuse(&self, file: &mut Connection, group: Vec<Job>, error: Error) {
        if group.len() > 1 && matches!(error, Error::Corrupt { .. }) {
            group.into_iter().for_each(|job| self.settle(file, vec![job]));
            return;
        }
        tracing::warn!(%error, batches = group.len(), "the store refused a write");
        for job in group {
            let _ = job.answer.send(Err(error.clone()));
        }
    }
}

/// One transaction, durable on return. After an error nothing of it is left: dropping it rolls it back.
fn write_all(file: &mut Connection, group: &[Job]) -> rusqlite::Result<Vec<Vec<Outcome>>> {
    let transaction = file.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let write = |job: &Job| job.batch.iter().map(|change| change.write(&transaction)).collect();
    let outcomes = group.iter().map(write).collect::<rusqlite::Result<_>>()?;
    transaction.commit()?;
    Ok(outcomes)
}
