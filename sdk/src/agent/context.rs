//! What a handler knows of the attempt that it works on, and what it can say about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reach_schemas::call::{Noted, Progress};
use reach_schemas::{Delivery, FencingToken, Method, RawJson, TaskId, Timestamp, Traceparent};
use serde::Serialize;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::attempts::Attempts;
use crate::client::Client;
use crate::error::{Error, Result};

/// How long a handler waits until its progress is noted.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(10);

/// What a handler knows of the attempt that it works on. Cloning is cheap.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    attempts: Arc<Attempts>,
    cancel: CancellationToken,
    task_id: TaskId,
    token: FencingToken,
    attempt: u32,
    idempotency_key: String,
    deadline_at: Timestamp,
    traceparent: Option<Traceparent>,
    tokens: AtomicU64,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Inner { task_id, token, attempt, .. } = &*self.inner;
        f.debug_struct("Context")
            .field("task_id", task_id)
            .field("token", token)
            .field("attempt", attempt)
            .finish_non_exhaustive()
    }
}

impl Context {
    pub(super) fn new(client: Client, attempts: Arc<Attempts>, cancel: CancellationToken, delivery: &Delivery) -> Self {
        let inner = Inner {
            client,
            attempts,
            cancel,
            task_id: delivery.task_id,
            token: delivery.token,
            attempt: delivery.attempt,
            idempotency_key: delivery.idempotency_key.clone(),
            deadline_at: delivery.deadline_at,
            traceparent: delivery.traceparent,
            tokens: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Tells how far the work is. This also gives the attempt its full time anew.
    ///
    /// # Errors
    /// [`Error::StaleToken`] and the like if the attempt is no longer ours; it is then stopped too. What happened on
    /// the way otherwise; the work can go on.
    pub async fn progress(&self, progress: &(impl Serialize + ?Sized)) -> Result<()> {
        let Inner { client, attempts, task_id, token, .. } = &*self.inner;
        let progress = Some(RawJson::of(progress).map_err(|error| Error::Config(format!("progress: {error}")))?);
        let params = Progress { task_id: *task_id, token: *token, progress };
        let noted =
            timeout(PROGRESS_TIMEOUT, client.once::<Noted>(Method::TaskProgress, &params, Duration::ZERO)).await;
        let noted = noted.unwrap_or_else(|_| Err(Error::maybe_sent("the progress was not noted in time")));
        noted.map(|_| ()).inspect_err(|error| {
            if matches!(error, Error::StaleToken(_) | Error::WrongPhase(_) | Error::NotFound(_)) {
                attempts.stop((*task_id, *token));
            }
        })
    }

    /// Counts tokens of a language model that the work took. Their sum goes with the result, into the task's record.
    pub fn count_tokens(&self, tokens: u64) {
        self.inner.tokens.fetch_add(tokens, Ordering::Relaxed);
    }

    /// How many were counted. None: none were.
    pub(super) fn token_count(&self) -> Option<u64> {
        Some(self.inner.tokens.load(Ordering::Relaxed)).filter(|tokens| *tokens > 0)
    }

    /// Whether the work has been called off.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancel.is_cancelled()
    }

    /// Waits until the work is called off: by the caller, because another attempt has taken over, or because this
    /// agent must stop. A few seconds later the handler's future is dropped.
    pub async fn cancelled(&self) {
        self.inner.cancel.cancelled().await;
    }

    /// When the whole task is over, by the gateway's clock.
    #[must_use]
    pub fn deadline_at(&self) -> Timestamp {
        self.inner.deadline_at
    }

    /// How long that is from now, as far as this machine's clock and the gateway's agree.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        let deadline = UNIX_EPOCH + Duration::from_millis(self.inner.deadline_at.as_ms());
        deadline.duration_since(SystemTime::now()).unwrap_or_default()
    }

    /// The same over all attempts of the task, and never that of another caller: who asked, and the key that it sent
    /// (`desk@sales/order-17`), or the task's id. Hand it on to whatever the work changes, so that a second attempt changes
    /// nothing twice.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.inner.idempotency_key
    }

    /// Which attempt this is, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.inner.attempt
    }

    /// This attempt's fencing token: it grows with each attempt of the task.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.inner.token
    }

    /// The task.
    #[must_use]
    pub fn task_id(&self) -> TaskId {
        self.inner.task_id
    }

    /// W3C `traceparent`: the trace that the task belongs to, and the span of this attempt. What the handler does hangs under
    /// it; so does what it asks of others with it ([`TaskRequest::traceparent`](crate::TaskRequest::traceparent)).
    #[must_use]
    pub fn traceparent(&self) -> Option<Traceparent> {
        self.inner.traceparent
    }

    /// A client that shares the agent's connection, for asking other agents.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }
}
