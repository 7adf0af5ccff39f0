//! An agent that serves, and how it stops.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use reach_schemas::call::{AgentRef, DependencyState, Drained, Registered};
use reach_schemas::{AgentId, Method};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Health;
use super::http::{self, HttpAnswer};
use super::signal::shutdown_signal;
use super::worker::Worker;
use crate::client::Client;
use crate::error::{Error, Result};

/// How long each last word to the gateway may take.
const LAST_WORD: Duration = Duration::from_secs(5);
/// How long handlers that were told to stop, and their reports, may take.
const CUT_SHORT: Duration = Duration::from_secs(10);

/// An agent that serves. Dropping it stops the agent at once; [`AgentHandle::drain`] lets its work finish.
pub struct AgentHandle {
    pub(super) worker: Arc<Worker>,
    pub(super) registered: Registered,
    pub(super) answer_within: Duration,
    pub(super) stops: Stops,
    pub(super) ended: watch::Receiver<Option<Error>>,
}

/// What ends what.
#[derive(Clone, Default)]
pub(super) struct Stops {
    /// No new work.
    pub(super) intake: CancellationToken,
    /// Handlers stop.
    pub(super) work: CancellationToken,
    /// Connections and heartbeats stop.
    pub(super) all: CancellationToken,
}

impl std::fmt::Debug for AgentHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentHandle").field("agent_id", &self.worker.card.agent_id).finish_non_exhaustive()
    }
}

impl Stops {
    /// Ends everything.
    pub(super) fn cancel(&self) {
        self.intake.cancel();
        self.work.cancel();
        self.all.cancel();
    }
}

impl Drop for AgentHandle {
    fn drop(&mut self) {
        self.stops.cancel();
    }
}

impl AgentHandle {
    /// Who it is.
    #[must_use]
    pub fn agent_id(&self) -> &AgentId {
        &self.worker.card.agent_id
    }

    /// What the gateway understood of the card.
    #[must_use]
    pub fn registered(&self) -> &Registered {
        &self.registered
    }

    /// A client that shares the agent's connection, for asking other agents.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.worker.client
    }

    /// How it has been doing.
    #[must_use]
    pub fn health(&self) -> Health {
        self.worker.health.report(0)
    }

    /// How many tasks it works on now.
    #[must_use]
    pub fn load(&self) -> u32 {
        self.worker.attempts.counts().running
    }

    /// Reports the state of something that the agent needs, with the next heartbeat and from then on.
    pub fn set_dependency(&self, name: impl Into<String>, state: DependencyState) {
        self.worker.dependencies.lock().unwrap_or_else(PoisonError::into_inner).insert(name.into(), state);
    }

    /// Answers an HTTP request to the agent, for those who have a server of their own: `POST /` with a delivery,
    /// `DELETE /{task_id}?token=N` to stop an attempt, `GET /healthz`. `target` is the path with its query, relative to
    /// the address in the card; the gateway asks for `/healthz` at the root of that address's host.
    pub async fn answer_http(&self, method: &str, target: &str, body: &[u8]) -> HttpAnswer {
        http::answer(&self.worker, self.answer_within, method, target, body).await
    }

    /// Waits until the agent can serve no more: because the gateway will not have it, for example since another copy of the
    /// agent has come (`superseded`), or because it was stopped. By then its handlers were told to stop, and nothing more is
    /// sent. While the gateway is merely away, the agent goes on.
    pub async fn ended(&self) -> Error {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(error)) => error.clone(),
            Ok(None) | Err(_) => Error::maybe_sent("the agent was stopped"),
        }
    }

    /// Serves until SIGTERM or SIGINT, then drains, with 30 s for the work that runs.
    ///
    /// # Errors
    /// Why the agent can serve no more, if that comes first.
    pub async fn run_until_signal(self) -> Result<()> {
        tokio::select! {
            () = shutdown_signal() => {
                self.drain(Duration::from_secs(30)).await;
                Ok(())
            }
            error = self.ended() => Err(error),
        }
    }

    /// Takes no new work, lets what runs finish within `grace`, stops what has not, reports all of it, and leaves.
    /// Answers how many tasks were cut short.
    pub async fn drain(&self, grace: Duration) -> u32 {
        let Worker { card, attempts, client, is_draining, .. } = &*self.worker;
        tracing::info!(agent_id = %card.agent_id, running = attempts.counts().running, "draining");
        is_draining.store(true, Ordering::Relaxed);
        let finished = timeout(grace, async {
            self.last_word(Method::AgentDrain).await;
            self.stops.intake.cancel();
            attempts.idle().await;
        });
        let is_finished = finished.await.is_ok();
        self.stops.intake.cancel();
        let cut_short = if is_finished { 0 } else { attempts.counts().running };
        self.stops.work.cancel();
        if !is_finished && timeout(CUT_SHORT, attempts.idle()).await.is_err() {
            tracing::warn!(agent_id = %card.agent_id, unsent = attempts.counts().unsent, "left with results unsent");
        }
        self.last_word(Method::AgentDeregister).await;
        self.stops.all.cancel();
        client.close();
        cut_short
    }

    async fn last_word(&self, method: Method) {
        let params = AgentRef { agent_id: self.agent_id().clone() };
        let said = timeout(LAST_WORD, self.worker.client.invoke::<Drained>(method, &params)).await;
        if let Ok(Err(error)) = said {
            tracing::debug!(%error, "{} was not noted", method.name());
        }
    }
}
