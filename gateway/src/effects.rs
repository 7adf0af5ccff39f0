//! What is done about a task once its step is durable. Nothing happens in the world before its commit, and every
//! effect here may be lost in a crash: `due_at` sees to it that somebody looks again.

mod deliveries;

use std::sync::Arc;
use std::time::Duration;

use reach_core::breaker::Change;
use reach_core::bulkhead::Seat;
use reach_core::schema;
use reach_core::task::{Effects, Event, Phase, Task, event::Trace};
use reach_schemas::call::{TaskRef, Working};
use reach_schemas::method::push;
use reach_schemas::{AgentId, CapabilityName, Endpoint, ErrorCode, Failure, FencingToken, Protocol, RawJson, TaskId};

use crate::adapter::{Adapter, Delivered};
use crate::bus::Note;
use crate::gateway::{Gateway, NotApplied};
use crate::spans::{Scope, Stepping};
use deliveries::{Delivering, Reached};

pub(crate) use deliveries::{Deliveries, Stage};

/// How much of a result that is refused is kept with the failure, in bytes, and how deeply nested.
const QUOTED_MAX: usize = 4096;
const QUOTED_DEPTH_MAX: usize = 64;

/// How often the end of an attempt is offered to a store that cannot take it just now, and how long each wait is.
const STORE_RETRY: Duration = Duration::from_millis(500);

/// The line `task ended`, with the fields of a task's record. A field that is missing says that there is nothing to say.
macro_rules! tell_end {
    ($level:ident, $task:expr) => {
        if let Some(record) = $task.record() {
            tracing::event!(
                target: "task",
                tracing::Level::$level,
                reach_id = %record.reach_id,
                from_agent = record.from_agent.as_ref().map(AgentId::as_str),
                to_agent = record.to_agent.as_ref().map(AgentId::as_str),
                method = record.method.as_ref().map(CapabilityName::as_str),
                status_code = record.status_code,
                latency_ms = record.latency_ms,
                token_count = record.token_count,
                error_message = record.error_message,
                fallback_from = record.fallback_from.as_ref().map(CapabilityName::as_str),
                "task ended"
            );
        }
    };
}

impl Gateway {
    /// Carries out what follows from a commit.
    pub(crate) fn carry_out(&self, task: &Arc<Task>, effects: Effects, stepping: Stepping) {
        self.spans.stepped(task, &effects, stepping);
        Scope::of_task(task).enter(|| self.carry_out_all(task, effects));
    }

    fn carry_out_all(&self, task: &Arc<Task>, effects: Effects) {
        let now = self.now();
        // Before the task can be routed again: the router must know of the seat that is free, the breaker that has
        // opened, and the agent that wants to be left alone.
        if let Some(ended) = &effects.ended {
            let seat = Seat { task_id: task.id(), token: ended.token };
            let change = {
                let mut rng = self.rng();
                self.fleet().ended(seat, ended, now, &mut rng)
            };
            if let Some(Change::Opened { until }) = change {
                tracing::warn!(agent = %ended.agent_id, capability = %ended.capability, %until, "circuit breaker opened");
            }
        }
        self.open.put(task);
        self.metrics.stepped(task, &effects, now);
        if effects.changed {
            log_end(task);
        }
        if let Some(ended) = &effects.ended {
            self.open.ended(&ended.capability, ended.ending.is_answered(), now);
            if effects.stop.is_none() {
                self.seat_came_free(&ended.agent_id);
            }
        }
        if effects.changed {
            self.waiters.wake(task);
            self.bus.publish(Note::Changed { task_id: task.id() });
        }
        for offered in &effects.offer {
            self.sessions.notify(&offered.agent_id, push::OFFER, &TaskRef { task_id: task.id() });
        }
        if let Some((agent, token)) = effects.stop {
            self.stop(task.id(), token, &agent);
        }
        if effects.deliver {
            self.start_delivery(Arc::clone(task));
        }
    }

    /// Has those that wait for a seat at an agent look again.
    fn seat_came_free(&self, agent: &AgentId) {
        self.open.unpark_for(agent, 1, self.now());
        self.open.ring(agent);
    }

    /// Gives up a delivery that is under way here, and tells the agent to stop. Whoever waits for its seat looks again once
    /// the agent has heard of it, or work would come to one that is still busy.
    fn stop(&self, task_id: TaskId, token: FencingToken, agent: &AgentId) {
        self.deliveries.give_up((task_id, token));
        let way = self.way_to(agent, None).filter(|(endpoint, _)| endpoint.protocol != Protocol::Queue);
        let (Some((endpoint, adapter)), Some(gateway)) = (way, self.me.upgrade()) else {
            self.sessions.notify(agent, push::CANCEL, &Working { task_id, token });
            self.seat_came_free(agent);
            return;
        };
        let agent = agent.clone();
        tokio::spawn(async move {
            adapter.cancel(&endpoint, &agent, task_id, token).await;
            gateway.seat_came_free(&agent);
        });
    }

    /// The endpoint of an agent and the adapter for it: of a protocol, or of the one it is reached by now.
    pub(crate) fn way_to(&self, agent: &AgentId, protocol: Option<Protocol>) -> Option<(Endpoint, Arc<dyn Adapter>)> {
        let endpoint = {
            let fleet = self.fleet();
            let node = fleet.node(agent)?;
            match protocol {
                Some(protocol) => node.card.endpoints.iter().find(|endpoint| endpoint.protocol == protocol).cloned()?,
                None => node.endpoint()?,
            }
        };
        let adapter = self.adapters.get(&endpoint.protocol).or_else(|| self.adapters.get(&Protocol::Websocket))?;
        Some((endpoint, Arc::clone(adapter)))
    }

    fn start_delivery(&self, task: Arc<Task>) {
        let (Some(gateway), Some(token)) = (self.me.upgrade(), task.live_attempt().map(|attempt| attempt.token)) else {
            return;
        };
        let (key, stage) = ((task.id(), token), Arc::new(Reached::default()));
        self.deliveries.enter(key, || {
            let reached = Arc::clone(&stage);
            let running = self.under_way.spawn(async move {
                Scope::of_task(&task).within(gateway.deliver(&task, &reached)).await;
                gateway.deliveries.leave(key);
            });
            Delivering { abort: running.abort_handle(), stage }
        });
    }

    /// Hands the live attempt of a task to its agent, and has what comes of it happen to the task.
    async fn deliver(&self, task: &Arc<Task>, reached: &Reached) {
        let (Some(attempt), Some(delivery)) = (task.live_attempt(), task.delivery()) else { return };
        let (token, agent) = (attempt.token, attempt.agent_id.clone());
        let delivered = match self.way_to(&agent, Some(attempt.protocol)) {
            _ if self.now() >= delivery.attempt_until => never_sent(&agent),
            Some((endpoint, adapter)) => {
                reached.with_adapter();
                adapter.deliver(&endpoint, delivery).await
            }
            None => crate::adapter::not_started(Failure::new(
                ErrorCode::Unreachable,
                format!("{agent} is not registered any more, or no longer speaks {}", attempt.protocol.as_str()),
            )),
        };
        reached.known();
        match delivered {
            Delivered::Done { result, token_count } => {
                let event = self.completion(task, token, result, token_count).unwrap_or_else(Misfit::into_event);
                self.settle(task, event).await;
            }
            Delivered::Accepted => self.settle(task, Event::Accept { token }).await,
            Delivered::Failed { failure, trace } => self.settle(task, Event::Fail { token, failure, trace }).await,
        }
    }

    /// What the result of an attempt means: the end of the task, or a failure if it does not fit the output schema.
    pub(crate) fn completion(
        &self,
        task: &Task,
        token: FencingToken,
        result: RawJson,
        token_count: Option<u64>,
    ) -> Result<Event, Misfit> {
        let violations = task.live_attempt().map(|attempt| {
            let fleet = self.fleet();
            let offer = fleet.node(&attempt.agent_id).and_then(|node| node.offer(&attempt.capability));
            offer.map(|offer| offer.result_violations(&result)).unwrap_or_default()
        });
        let violations = violations.unwrap_or_default();
        if violations.is_empty() {
            return Ok(Event::Complete { token, result, token_count });
        }
        let message = format!("the result cannot be taken: {}", violations.join("; "));
        let is_repeatable = task.state.plan.as_ref().is_some_and(|plan| plan.effect.is_repeatable());
        let trace = if is_repeatable { Trace::FailedRetryable } else { Trace::FailedForGood };
        let failure = Failure { data: Some(quoted(&result)), ..Failure::new(ErrorCode::InvalidResult, message) };
        Err(Misfit { token, failure, trace })
    }

    /// Has the end of a delivery happen to the task. What an agent answered is not thrown away because the store
    /// cannot take it just now: it is offered until the task's deadline; and what is known of a failure for as long as it
    /// takes, or another would have to call its outcome unknown.
    async fn settle(&self, task: &Task, event: Event) {
        let is_failure = matches!(event, Event::Fail { .. });
        let may_wait = || if is_failure { !self.stopping.is_cancelled() } else { self.now() < task.state.deadline_at };
        loop {
            match self.apply(task.id(), event.clone()).await {
                Ok(_) => return,
                Err(NotApplied::Store(error)) if may_wait() => {
                    tracing::warn!(%error, "the end of an attempt cannot be stored yet");
                    tokio::time::sleep(STORE_RETRY).await;
                }
                Err(error) => {
                    let failure = Failure::from(error);
                    tracing::info!(reason = %failure.message, "a late word on an attempt was refused");
                    return;
                }
            }
        }
    }
}

/// What became of a delivery whose time was over before its turn came: the commit that goes before it took longer, say.
fn never_sent(agent: &AgentId) -> Delivered {
    let message = format!("the time was over before it could be sent to {agent}: nothing was sent");
    Delivered::Failed { failure: Failure::new(ErrorCode::Timeout, message), trace: Trace::NeverSent }
}

/// Writes the one line of a task that has just ended. One that came to a result is told only if asked for: its record is
/// kept with the task and counted in the metrics, and a line a task would set the pace of quick work.
fn log_end(task: &Task) {
    if matches!(task.state.phase, Phase::Completed { .. }) {
        if tracing::enabled!(target: "task", tracing::Level::DEBUG) {
            tell_end!(DEBUG, task);
        }
    } else {
        tell_end!(INFO, task);
    }
}

/// A result that does not fit its output schema.
pub(crate) struct Misfit {
    token: FencingToken,
    /// Why.
    pub(crate) failure: Failure,
    trace: Trace,
}

impl Misfit {
    /// What it means for the attempt.
    pub(crate) fn into_event(self) -> Event {
        Event::Fail { token: self.token, failure: self.failure, trace: self.trace }
    }
}

/// A refused result as it is kept: whole if it is small, else the beginning of its text.
fn quoted(result: &RawJson) -> RawJson {
    let text = result.get();
    if text.len() <= QUOTED_MAX && schema::depth(text) <= QUOTED_DEPTH_MAX {
        return result.clone();
    }
    let beginning = &text[..text.floor_char_boundary(QUOTED_MAX)];
    RawJson::of(beginning).expect("a text can be written as JSON")
}
