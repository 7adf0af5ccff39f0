//! JSON-RPC over one WebSocket that all calls share. A link outlives its connections: it reconnects with jitter and
//! writes again what may be repeated.

mod board;
mod connection;

use std::sync::Arc;
use std::time::Duration;

use reach_schemas::RawJson;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::board::Board;
use self::connection::End;
use super::{Call, Target, rpc};
use crate::client::RetryPolicy;
use crate::error::{Error, Refusal, Result};

/// A connection that held for this long was a good one: after its loss the pauses begin anew.
const STEADY: Duration = Duration::from_secs(10);

/// The call that is made first on every connection; nothing else is written before it is answered.
pub(crate) type Greeting = Box<dyn Fn() -> Call + Send + Sync>;

/// What comes from the other side unasked, and what becomes of the connection.
pub(crate) enum Event {
    /// A connection is open, and this is the answer to the greeting.
    Open(Option<RawJson>),
    /// Something to answer, with [`Link::reply`].
    Request { id: RawJson, method: String, params: Option<RawJson>, connection: u64 },
    /// Something to know.
    Notification { method: String, params: Option<RawJson> },
    /// The connection is lost; another one is on its way.
    Lost,
    /// There will be no more connections.
    Ended(Error),
}

#[derive(Clone)]
enum Status {
    New,
    Open,
    Down(Error),
    Ended(Error),
}

pub(crate) struct Link {
    board: Arc<Board>,
    status: watch::Receiver<Status>,
    stop: CancellationToken,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// How a link greets and whom it tells; nobody, for a plain client.
#[derive(Default)]
pub(crate) struct Ears {
    pub(crate) greeting: Option<Greeting>,
    pub(crate) events: Option<mpsc::Sender<Event>>,
}

impl Link {
    /// Starts connecting. Must be called within a tokio runtime.
    pub(crate) fn open(target: Target, ears: Ears) -> Self {
        let board = Arc::new(Board::default());
        let (status, watched) = watch::channel(Status::New);
        let stop = CancellationToken::new();
        tokio::spawn(run(target, ears, board.clone(), status, stop.clone()));
        Self { board, status: watched, stop }
    }

    /// Waits for the first connection; fails as soon as a try for it has failed.
    pub(crate) async fn ready(&self) -> Result<()> {
        let mut status = self.status.clone();
        let known = status.wait_for(|status| !matches!(status, Status::New)).await;
        match known.as_deref() {
            Ok(Status::Open | Status::New) => Ok(()),
            Ok(Status::Down(error) | Status::Ended(error)) => Err(error.clone()),
            Err(_) => Err(closed()),
        }
    }

    /// Ends the connection; calls fail from now on.
    pub(crate) fn close(&self) {
        self.stop.cancel();
    }

    pub(crate) async fn call(&self, call: &Call) -> Result<RawJson> {
        let mut waiting = self.board.call(call)?;
        match timeout(call.timeout, &mut waiting.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(closed()),
            Err(_) => {
                let (sent, why) = (self.board.is_sent(waiting.id), self.why_down());
                if sent && why.is_none() {
                    return Err(Error::late("the gateway", call.timeout));
                }
                let message = format!("no answer to {} within {:?}", call.method, call.timeout);
                Err(Error::Transport { message, sent, source: why })
            }
        }
    }

    /// Answers a request of the other side. Resolves once the answer has been handed to the network, and fails if it
    /// never will be, because its connection is gone.
    pub(crate) fn reply(
        &self,
        connection: u64,
        id: &RawJson,
        answer: std::result::Result<RawJson, Refusal>,
    ) -> oneshot::Receiver<()> {
        let text = match answer {
            Ok(result) => rpc::respond(id, &result),
            Err(refusal) => rpc::refuse(id, &refusal),
        };
        self.board.reply(connection, text)
    }

    fn why_down(&self) -> Option<Arc<dyn std::error::Error + Send + Sync>> {
        match &*self.status.borrow() {
            Status::Down(error) | Status::Ended(error) => Some(Arc::new(error.clone())),
            Status::New | Status::Open => None,
        }
    }
}

/// We ended it ourselves: there is nothing to try again.
fn closed() -> Error {
    Error::Config("the client was closed".to_owned())
}

async fn run(target: Target, ears: Ears, board: Arc<Board>, status: watch::Sender<Status>, stop: CancellationToken) {
    let ended = tokio::select! {
        error = keep_connected(&target, &ears, &board, &status) => error,
        () = stop.cancelled() => closed(),
    };
    board.end(ended.clone());
    status.send_replace(Status::Ended(ended.clone()));
    if let Some(events) = ears.events {
        // Nobody listens any more only when the agent is being dropped.
        let _unheard = events.send(Event::Ended(ended)).await;
    }
}

/// Connects again and again; returns only when the gateway will not have us.
async fn keep_connected(target: &Target, ears: &Ears, board: &Board, status: &watch::Sender<Status>) -> Error {
    let policy = RetryPolicy { base: Duration::from_millis(100), ..RetryPolicy::default() };
    let mut failed = 0_u32;
    loop {
        let mut opened_at = None;
        let end = match connection::open(target).await {
            Ok(socket) => {
                let greeted = || {
                    opened_at = Some(Instant::now());
                    status.send_replace(Status::Open);
                };
                connection::converse(socket, board, ears.greeting.as_ref(), ears.events.as_ref(), greeted).await
            }
            Err(end) => end,
        };
        board.lost();
        let error = match end {
            End::Lost(error) => error,
            End::Refused(error) => return error,
        };
        status.send_replace(Status::Down(error.clone()));
        if let (Some(_), Some(events)) = (opened_at, &ears.events) {
            let _unheard = events.send(Event::Lost).await;
        }
        failed = if opened_at.is_some_and(|at| at.elapsed() >= STEADY) { 0 } else { failed.saturating_add(1) };
        let pause = policy.pause(failed.saturating_sub(1), error.retry_after(), fastrand::f64());
        if failed <= 1 {
            tracing::warn!(%error, "no connection to the gateway; will connect again and again");
        } else {
            tracing::debug!(%error, ?pause, "will connect again");
        }
        tokio::time::sleep(pause).await;
    }
}
