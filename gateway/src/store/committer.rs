//! Group commit: commands that arrive while the last batch is being made durable become the next batch. Nobody
//! sleeps to fill a batch, so a lone command pays one sync and many share one.

use std::sync::Arc;

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
        tokio::spawn(feed(store, queue));
        Self { waiting }
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

async fn feed(store: Arc<dyn Store>, mut queue: mpsc::Receiver<Waiting>) {
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, BATCH_MAX).await > 0 {
        let (commands, answers): (Vec<_>, Vec<_>) =
            waiting.drain(..).map(|waiting| (waiting.command, waiting.answer)).unzip();
        let applied = store.apply(commands).await;
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
