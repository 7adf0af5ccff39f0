//! What agents say of the attempts they have, each word with its fencing token.

use std::sync::Arc;

use reach_core::access::Grant;
use reach_core::task::event::Trace;
use reach_core::task::{Event, Refusal, Task};
use reach_schemas::call::{Accept, Complete, Fail, Noted, Progress, Release};
use reach_schemas::{ErrorCode, Failure, RawJson, TaskId};

use crate::gateway::{Gateway, NotApplied, task_not_found};

/// The longest message that an agent may send with a failure, in bytes; what is longer is cut.
const MESSAGE_MAX: usize = 4 * 1024;

fn cut(message: String) -> String {
    match message.char_indices().find(|(at, _)| *at >= MESSAGE_MAX) {
        Some((at, _)) => format!("{}...", &message[..at]),
        None => message,
    }
}

fn noted(task: &Task) -> Noted {
    Noted { phase: task.state.phase.name(), attempt_until: task.state.phase.until() }
}

impl Gateway {
    /// The task that an agent speaks of. The agent must be the one that has its newest attempt.
    async fn spoken_of(&self, grant: &Grant, id: TaskId) -> Result<Arc<Task>, Failure> {
        let task = self.load(id).await?.ok_or_else(task_not_found)?;
        let agent = task.state.attempts.last().map(|attempt| attempt.agent_id.clone());
        match agent {
            Some(agent) if grant.acts_as(&agent).is_ok() => {
                let now = self.now();
                self.fleet().seen(&agent, now);
                Ok(task)
            }
            Some(_) | None => Err(task_not_found()),
        }
    }

    async fn report(&self, grant: Grant, id: TaskId, event: Event) -> Result<Noted, Failure> {
        let task = self.spoken_of(&grant, id).await?;
        match self.apply(id, event).await {
            Ok(task) => Ok(noted(&task)),
            Err(NotApplied::Refused(Refusal::Already)) => Ok(noted(&self.load(id).await?.unwrap_or(task))),
            Err(error) => Err(error.into()),
        }
    }

    /// The agent has it.
    ///
    /// # Errors
    /// The token is stale, or the task has ended.
    pub async fn accept(&self, grant: Grant, request: Accept) -> Result<Noted, Failure> {
        self.report(grant, request.task_id, Event::Accept { token: request.token }).await
    }

    /// The agent is still at it.
    ///
    /// # Errors
    /// The token is stale, or the task has ended.
    pub async fn progress(&self, grant: Grant, request: Progress) -> Result<Noted, Failure> {
        let event = Event::Progress { token: request.token, progress: request.progress };
        self.report(grant, request.task_id, event).await
    }

    /// The agent is done. Saying so twice does no harm.
    ///
    /// # Errors
    /// The token is stale, the task has ended, or the result does not fit the output schema (and then the attempt has
    /// failed).
    pub async fn complete(&self, grant: Grant, request: Complete) -> Result<Noted, Failure> {
        let task = self.spoken_of(&grant, request.task_id).await?;
        let null = || RawJson::of(&()).expect("null can be written as JSON");
        let result = request.result.unwrap_or_else(null);
        match self.completion(&task, request.token, result, request.token_count) {
            Ok(event) => self.report(grant, request.task_id, event).await,
            Err(misfit) => {
                let told = Failure { data: None, ..misfit.failure.clone() };
                self.report(grant, request.task_id, misfit.into_event()).await?;
                Err(told)
            }
        }
    }

    /// The agent did not succeed.
    ///
    /// # Errors
    /// The token is stale, or the task has ended.
    pub async fn fail(&self, grant: Grant, request: Fail) -> Result<Noted, Failure> {
        let trace = match (request.started, request.retryable) {
            (false, _) => Trace::NotStarted,
            (true, true) => Trace::FailedRetryable,
            (true, false) => Trace::FailedForGood,
        };
        let failure = Failure {
            data: request.data,
            retry_after: request.retry_after,
            ..Failure::new(ErrorCode::AgentFailed, cut(request.message))
        };
        self.report(grant, request.task_id, Event::Fail { token: request.token, failure, trace }).await
    }

    /// The agent gives it back, or says that it breaks whoever takes it.
    ///
    /// # Errors
    /// The token is stale, or the task has ended.
    pub async fn release(&self, grant: Grant, request: Release) -> Result<Noted, Failure> {
        let token = request.token;
        let event = if request.poison {
            let message =
                cut(request.message.unwrap_or_else(|| "the agent says that it breaks whoever takes it".to_owned()));
            Event::Poison { token, failure: Failure::new(ErrorCode::AgentFailed, message) }
        } else {
            Event::Release { token }
        };
        self.report(grant, request.task_id, event).await
    }
}
