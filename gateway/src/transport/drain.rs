//! How a transport ends: it takes nothing new, lets what runs go on for a while, answers the rest, and then cuts.

use std::time::Duration;

use reach_schemas::{ErrorCode, Failure, Span};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::rpc::methods::{Context, dispatch};
use crate::rpc::{Call, Outcome, error_of};

/// How long the last answers may take to be sent.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// The steps of the end, each a token that is cancelled when it is reached.
#[derive(Debug, Clone)]
pub(super) struct Drain {
    /// Nothing new is taken in.
    pub(super) stop: CancellationToken,
    /// Whatever still runs is answered `shutting_down`.
    pub(super) overdue: CancellationToken,
    /// Connections are dropped.
    pub(super) cut: CancellationToken,
}

impl Drain {
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self { stop, overdue: CancellationToken::new(), cut: CancellationToken::new() }
    }

    /// Takes the steps after the first, as far as they are needed to have the tracker empty.
    pub(super) async fn finish(&self, tracker: &TaskTracker, timeout: Duration) {
        tracker.close();
        if tokio::time::timeout(timeout, tracker.wait()).await.is_ok() {
            return;
        }
        tracing::info!(connections = tracker.len(), "calls are still in flight; they are answered that we stop");
        self.overdue.cancel();
        if tokio::time::timeout(LAST_ANSWERS, tracker.wait()).await.is_err() {
            self.cut.cancel();
            tracker.wait().await;
        }
    }
}

/// What a caller is told whose call was not taken, or not finished, because the gateway stops.
pub(super) fn shutting_down() -> Failure {
    let message = "the gateway is about to stop; send the request again, with the same idempotency key, in a moment";
    Failure { retry_after: Some(Span::from_secs(1)), ..Failure::new(ErrorCode::ShuttingDown, message) }
}

/// Answers one call, unless it is not done when the gateway cannot wait any longer.
pub(super) async fn run(context: &Context, overdue: &CancellationToken, call: Call<'_>) -> Outcome {
    tokio::select! {
        biased;
        outcome = dispatch(context, call) => outcome,
        () = overdue.cancelled() => Err(error_of(shutting_down(), None)),
    }
}
