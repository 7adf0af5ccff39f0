//! Group commit: commands that arrive while the last batch is being made durable become the next batch. Nobody
//! sleeps to fill a batch, so a lone command pays one sync and many share one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reach_core::evaluation::Buckets;
use tokio::sync::{mpsc, oneshot};

use super::{Command, Error, Outcome, Store};

/// How many commands may wait for their batch; one more is refused.
pub const WAITING_MAX: usize = 4096;
/// How many commands go into one batch.
pub const BATCH_MAX: usize = 1024;

/// The way in to a store for many callers at once.
#[derive(Debug, Clone)]
pub struct Committer {
    waiting: mpsc::Sender<Waiting>,
    batches: Arc<Mutex<Batches>>,
}

/// What is known of the batches since the start.
#[derive(Debug, Clone)]
pub struct Batches {
    /// How long each took to be durable, in microseconds.
    pub took: Buckets,
    /// How many commands each had.
    pub size: Buckets,
}

/// 100 us to 1 s: from memory to a disk that is in trouble.
const TOOK_BOUNDS: &[u64] = &[100, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000];
const SIZE_BOUNDS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

impl Default for Batches {
    fn default() -> Self {
        Self { took: Buckets::new(TOOK_BOUNDS), size: Buckets::new(SIZE_BOUNDS) }
    }
}

impl Batches {
    fn record(&mut self, commands: usize, took: Duration) {
        self.took.record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self.size.record(commands as u64);
    }
}

#[derive(Debug)]
struct Waiting {
    command: Command,
    answer: oneshot::Sender<Result<Outcome, Error>>,
}

impl Committer {
    /// Starts a task on the current runtime that feeds the store until the last clone is dropped and all is applied.
    ///
    /// # Panics
    /// Outside a runtime.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (waiting, queue) = mpsc::channel(WAITING_MAX);
        let batches = Arc::<Mutex<Batches>>::default();
        tokio::spawn(feed(store, queue, Arc::clone(&batches)));
        Self { waiting, batches }
    }

    /// What is known of the batches since the start.
    #[must_use]
    pub fn batches(&self) -> Batches {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many commands wait for their batch.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.max_capacity() - self.waiting.capacity()
    }

    /// Applies one command. Once this has been polled the command is on its way: dropping the future takes nothing
    /// back, it only forgoes the answer.
    ///
    /// # Errors
    /// [`Error::Busy`] at once if [`WAITING_MAX`] commands wait already; else what the store says, and then nothing
    /// has been changed.
    pub async fn submit(&self, command: Command) -> Result<Outcome, Error> {
        let (answer, outcome) = oneshot::channel();
        self.waiting.try_send(Waiting { command, answer }).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => Error::Busy { waiting_max: WAITING_MAX },
            mpsc::error::TrySendError::Closed(_) => Error::Closed,
        })?;
        outcome.await.map_err(|_| Error::Closed)?
    }
}

async fn feed(store: Arc<dyn Store>, mut queue: mpsc::Receiver<Waiting>, batches: Arc<Mutex<Batches>>) {
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, BATCH_MAX).await > 0 {
        let (commands, answers): (Vec<_>, Vec<_>) =
            waiting.drain(..).map(|waiting| (waiting.command, waiting.answer)).unzip();
        let (count, began) = (commands.len(), Instant::now());
        let applied = store.apply(commands).await;
        batches.lock().unwrap_or_else(PoisonError::into_inner).record(count, began.elapsed());
        answer(answers, applied);
    }
}

fn answer(answers: Vec<oneshot::Sender<Result<Outcome, Error>>>, applied: Result<Vec<Outcome>, Error>) {
    // A caller that has gone away misses its answer; what it asked for stands all the same.
    match applied {
        Ok(outcomes) => answers.into_iter().zip(outcomes).for_each(|(answer, outcome)| drop(answer.send(Ok(outcome)))),
        Err(error) => answers.into_iter().for_each(|answer| drop(answer.send(Err(error.clone())))),
    }
}
