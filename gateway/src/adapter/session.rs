//! Agents that are connected to the gateway: work is pushed over the connection that they keep open. The agent answers
//! `task/deliver` when it has the work, and reports with `task/complete` or `task/fail` when it is done.

use std::sync::Arc;
use std::time::Duration;

use reach_core::task::event::Trace;
use reach_schemas::call::HealthReport;
use reach_schemas::method::push;
use reach_schemas::{
    AgentId, Delivery, Endpoint, ErrorCode, Failure, FencingToken, ProbePolicy, RawJson, Span, TaskId,
};
use serde::{Deserialize, Serialize};

use super::{Adapter, Answer, Delivered, excerpt, not_started};
use crate::clock::Clock;
use crate::sessions::{SessionError, Sessions};

/// How long an agent has to say that it has the work. It answers before it begins, so this is short.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Reaches agents over the connections that they keep open.
pub struct SessionAdapter {
    sessions: Arc<Sessions>,
    clock: Clock,
}

#[derive(Serialize)]
struct Stop {
    task_id: TaskId,
    token: FencingToken,
}

#[derive(Serialize)]
struct Probe {}

/// The error object that an agent answers with, as far as it can be read.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Refusal {
    code: Option<RawJson>,
    message: Option<String>,
    data: Option<RawJson>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RefusalData {
    code: Option<String>,
    retry_after: Option<Span>,
}

impl SessionAdapter {
    /// An adapter over these sessions, that gives up by this clock.
    #[must_use]
    pub fn new(sessions: Arc<Sessions>, clock: Clock) -> Self {
        Self { sessions, clock }
    }

    async fn hand_over(&self, delivery: Delivery) -> Delivered {
        let left = delivery.attempt_until.since(self.clock.now());
        let timeout = ANSWER_TIMEOUT.min(left.into());
        match self.sessions.request(&delivery.agent_id, push::DELIVER, &delivery, timeout).await {
            Ok(_) => Delivered::Accepted,
            Err(SessionError::Refused(error)) => not_started(refusal(&error)),
            Err(error @ SessionError::NotConnected) => not_started(failure(ErrorCode::Unreachable, &error)),
            // The agent may have the work.
            Err(error @ SessionError::Lost) => unknown(failure(ErrorCode::AgentLost, &error)),
            Err(error @ SessionError::Timeout(_)) => unknown(failure(ErrorCode::Timeout, &error)),
        }
    }
}

fn failure(code: ErrorCode, error: &SessionError) -> Failure {
    Failure::new(code, error.to_string())
}

fn unknown(failure: Failure) -> Delivered {
    Delivered::Failed { failure, trace: Trace::Unknown }
}

/// A refusal in our own form: full is full, and everything else is a refusal of the agent's.
fn refusal(error: &str) -> Failure {
    let refusal: Refusal = serde_json::from_str(error).unwrap_or_default();
    let data: RefusalData = refusal.data.as_ref().and_then(|data| data.read().ok()).unwrap_or_default();
    let number = refusal.code.and_then(|code| code.read::<i32>().ok());
    let is_full =
        data.code.as_deref() == Some(ErrorCode::Overloaded.name()) || number == Some(ErrorCode::Overloaded.number());
    let code = if is_full { ErrorCode::Overloaded } else { ErrorCode::AgentRefused };
    let message = excerpt(refusal.message.as_deref().unwrap_or("the agent refused the work and did not say why"));
    Failure { data: refusal.data, retry_after: data.retry_after, ..Failure::new(code, message) }
}

impl Adapter for SessionAdapter {
    fn deliver<'a>(&'a self, _: &'a Endpoint, delivery: Delivery) -> Answer<'a, Delivered> {
        Box::pin(self.hand_over(delivery))
    }

    fn cancel<'a>(&'a self, _: &'a Endpoint, agent: &'a AgentId, task: TaskId, token: FencingToken) -> Answer<'a, ()> {
        Box::pin(async move {
            self.sessions.notify(agent, push::CANCEL, &Stop { task_id: task, token });
        })
    }

    fn probe<'a>(
        &'a self,
        _: &'a Endpoint,
        agent: &'a AgentId,
        policy: &'a ProbePolicy,
    ) -> Answer<'a, Result<HealthReport, String>> {
        Box::pin(async move {
            let report = self.sessions.request(agent, push::PROBE, &Probe {}, policy.timeout.into()).await;
            // An agent may answer with anything: that it answers counts.
            report.map(|report| report.read().unwrap_or_default()).map_err(|error| match error {
                SessionError::Refused(error) => refusal(&error).message,
                SessionError::NotConnected | SessionError::Lost | SessionError::Timeout(_) => error.to_string(),
            })
        })
    }
}
