//! Runs attempts: takes a delivery, waits until its accept is out, calls the handler, and brings the result to the
//! gateway. It does not know by which way work comes.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reach_schemas::call::{Accept, DependencyState, Noted, Registered, Release};
use reach_schemas::{AgentCard, CapabilityName, Delivery, ErrorCode, Method, RawJson};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::attempts::{Admission, Attempts, Reporting, Seat};
use super::context::Context;
use super::handler::{AnyHandler, Task};
use super::health::Record;
use super::outcome::{HandlerError, Outcome};
use crate::client::{Client, RetryPolicy, is_passing};
use crate::error::{Error, Refusal, Result};

/// How long a handler whose work was called off may go on.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// A report larger than this may itself be what breaks connections ...
const LARGE: usize = 1 << 20;
/// ... so it is given up after so many of them were lost.
const LARGE_LOST_MAX: u32 = 4;

pub(super) struct Worker {
    pub(super) card: AgentCard,
    pub(super) handlers: HashMap<CapabilityName, AnyHandler>,
    pub(super) attempts: Arc<Attempts>,
    pub(super) client: Client,
    pub(super) health: Record,
    pub(super) dependencies: Mutex<BTreeMap<String, DependencyState>>,
    pub(super) is_draining: AtomicBool,
    /// The agent is gone: nothing more is tried.
    pub(super) closed: CancellationToken,
}

/// What becomes of a delivery: all but a refusal is answered with "I have it".
pub(super) enum Taken {
    /// It is to run.
    New(Seat),
    /// It runs already.
    Running,
    /// It has run already.
    Ended(Outcome),
}

impl Worker {
    /// Decides what becomes of a delivery.
    pub(super) fn take(&self, delivery: &Delivery) -> std::result::Result<Taken, Refusal> {
        let refuse = |code, message: String| Refusal { task_id: Some(delivery.task_id), ..Refusal::new(code, message) };
        let me = &self.card.agent_id;
        if &delivery.agent_id != me {
            return Err(refuse(ErrorCode::AgentRefused, format!("this is {me}, not {}", delivery.agent_id)));
        }
        if !self.handlers.contains_key(&delivery.capability) {
            return Err(refuse(ErrorCode::AgentRefused, format!("{me} does not offer {}", delivery.capability)));
        }
        match self.attempts.admit((delivery.task_id, delivery.token)) {
            Admission::New(_) if self.is_draining() => {
                Err(refuse(ErrorCode::AgentRefused, format!("{me} is about to stop")))
            }
            Admission::New(seat) => Ok(Taken::New(seat)),
            Admission::Running => Ok(Taken::Running),
            Admission::Ended(outcome) => Ok(Taken::Ended(outcome)),
            Admission::Full => {
                let refusal = refuse(ErrorCode::Overloaded, format!("{me} is full"));
                Err(Refusal { retry_after: Some(Duration::from_secs(1)), ..refusal })
            }
            Admission::Stale => {
                Err(refuse(ErrorCode::StaleToken, "this attempt was told to stop, or a newer one is known".to_owned()))
            }
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Runs an attempt once `accepted` says that the gateway has been told, and reports how it ended.
    pub(super) async fn work(
        self: Arc<Self>,
        delivery: Delivery,
        seat: Seat,
        accepted: impl Future<Output = bool> + Send,
    ) {
        if let Some((outcome, reporting)) = self.run(delivery, seat, accepted).await {
            self.report(&outcome, &reporting).await;
        }
    }

    /// Runs an attempt; nothing if it could not be accepted. Until `Reporting` is dropped, the result counts as on its
    /// way.
    pub(super) async fn run(
        &self,
        delivery: Delivery,
        seat: Seat,
        accepted: impl Future<Output = bool> + Send,
    ) -> Option<(Outcome, Reporting)> {
        if !accepted.await {
            tracing::debug!(task_id = %delivery.task_id, "not begun, because the accept could not be sent");
            return None;
        }
        let begun = Instant::now();
        let outcome = self.call_handler(delivery, &seat).await;
        if !matches!(outcome, Outcome::Stopped) {
            self.health.note(outcome.is_success(), begun.elapsed());
        }
        let reporting = seat.end(outcome.clone());
        Some((outcome, reporting))
    }

    async fn call_handler(&self, delivery: Delivery, seat: &Seat) -> Outcome {
        let Some(handler) = self.handlers.get(&delivery.capability) else {
            return Outcome::Failed(HandlerError::not_started("no such capability"));
        };
        let context = Context::new(self.client.clone(), self.attempts.clone(), seat.cancel.clone(), &delivery);
        // A task of its own, so that a panic ends the attempt and not the agent.
        let mut running = tokio::spawn(handler(Task::new(delivery), context.clone()));
        let overdue = async {
            seat.cancel.cancelled().await;
            tokio::time::sleep(STOP_GRACE).await;
        };
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = overdue => {
                running.abort();
                running.await
            }
        };
        match ended {
            _ if seat.is_stopped() => Outcome::Stopped,
            Ok(Ok(result)) => Outcome::Completed(result, context.token_count()),
            Ok(Err(error)) => Outcome::Failed(error),
            Err(error) if error.is_panic() => Outcome::Failed(HandlerError::failed("the handler panicked")),
            Err(_) => Outcome::Failed(HandlerError::retryable("the agent stopped before the work was done")),
        }
    }

    /// Tells the gateway how an attempt ended, until it answers.
    pub(super) async fn report(&self, outcome: &Outcome, reporting: &Reporting) {
        let (task_id, token) = reporting.key();
        let Some((method, params)) = outcome.report(task_id, token) else { return };
        match self.tell(method, &params).await {
            Ok(()) => {}
            Err(error @ (Error::Invalid(_) | Error::Forbidden(_))) if method == Method::TaskComplete => {
                // Such a result will never be taken, and silence would only be found out at the deadline.
                tracing::warn!(%task_id, %error, "the gateway does not take the result");
                let failed = Outcome::Failed(HandlerError::failed(format!("the result was not taken: {error}")));
                if let Some((method, params)) = failed.report(task_id, token) {
                    let _nothing_more_to_do = self.tell(method, &params).await;
                }
            }
            Err(error) => tracing::debug!(%task_id, %error, "the gateway wants no result of this attempt"),
        }
    }

    /// Makes a call again and again until there is an answer. Only for calls that are fenced by their token.
    async fn tell(&self, method: Method, params: &RawJson) -> Result<()> {
        let policy = RetryPolicy::default();
        let (mut retry, mut lost) = (0, 0);
        loop {
            let noted: Result<Noted> = self.client.once(method, params, Duration::ZERO).await;
            match noted {
                Ok(_) => return Ok(()),
                Err(Error::Transport { sent: true, .. }) if params.get().len() > LARGE && lost >= LARGE_LOST_MAX => {
                    return Err(Refusal::new(ErrorCode::TooLarge, "the connection breaks whenever it is sent").into());
                }
                Err(error) if is_passing(&error) && !self.closed.is_cancelled() => {
                    tokio::time::sleep(policy.pause(retry, error.retry_after(), fastrand::f64())).await;
                    retry = retry.saturating_add(1);
                    lost += u32::from(matches!(error, Error::Transport { sent: true, .. }));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes on what was claimed. Its room is taken when this returns, so that the next claim asks for no more than is
    /// left; the work goes on apart.
    pub(super) fn take_on_claimed(self: &Arc<Self>, delivery: Delivery) {
        let taken = self.take(&delivery);
        tokio::spawn(self.clone().work_on_claimed(delivery, taken));
    }

    /// Works on what was claimed. The accept is a call of its own here.
    async fn work_on_claimed(self: Arc<Self>, delivery: Delivery, taken: std::result::Result<Taken, Refusal>) {
        let (task_id, token) = (delivery.task_id, delivery.token);
        match taken {
            Ok(Taken::New(seat)) => {
                let worker = self.clone();
                let accepted = async move {
                    let noted: Result<Noted> =
                        worker.client.invoke(Method::TaskAccept, &Accept { task_id, token }).await;
                    noted.inspect_err(|error| tracing::debug!(%task_id, %error, "not accepted")).is_ok()
                };
                self.work(delivery, seat, accepted).await;
            }
            Ok(Taken::Running) => {}
            Ok(Taken::Ended(outcome)) => self.report_again(&outcome, &delivery).await,
            Err(refusal) => {
                let message = Some(refusal.message);
                let release = Release { task_id, token, poison: false, message };
                let released: Result<Noted> = self.client.invoke(Method::TaskRelease, &release).await;
                if let Err(error) = released {
                    tracing::debug!(%task_id, %error, "not given back; its lease will run out");
                }
            }
        }
    }

    /// An attempt that has ended came again: perhaps its result did not get through.
    pub(super) async fn report_again(&self, outcome: &Outcome, delivery: &Delivery) {
        let reporting = self.attempts.reporting((delivery.task_id, delivery.token));
        self.report(outcome, &reporting).await;
    }

    /// From now on nothing is taken on. What runs and is not ours any more is stopped, and nobody is told how it ended.
    pub(super) fn give_up(&self, why: &Error) {
        self.is_draining.store(true, Ordering::Relaxed);
        if matches!(why, Error::Unauthenticated(_)) {
            self.attempts.stop_all();
        }
        if !self.closed.is_cancelled() {
            tracing::error!(agent_id = %self.card.agent_id, error = %why, "serves no more");
        }
    }

    /// Registers once.
    pub(super) async fn register(&self) -> Result<Registered> {
        self.client.once(Method::AgentRegister, &self.card, Duration::ZERO).await
    }

    /// Registers, however long it takes until the gateway is there.
    pub(super) async fn register_patiently(&self) -> Result<Registered> {
        let policy = RetryPolicy::default();
        let mut retry = 0;
        loop {
            let error = match self.register().await {
                Err(error) if is_passing(&error) => error,
                answer => return answer,
            };
            let pause = policy.pause(retry, error.retry_after(), fastrand::f64());
            tracing::warn!(agent_id = %self.card.agent_id, %error, ?pause, "not registered yet");
            tokio::time::sleep(pause).await;
            retry = retry.saturating_add(1);
        }
    }

    pub(super) fn dependency_status(&self) -> BTreeMap<String, DependencyState> {
        self.dependencies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
