//! A task as callers see it.

use reach_schemas::error::{REACH_FALLBACK, REACH_OK};
use reach_schemas::{AgentId, AttemptView, ErrorCode, Explanation, Failure, Span, TaskRecord, TaskView};

use super::{Attempt, Phase, Task};

impl Task {
    /// The task as callers see it.
    #[must_use]
    pub fn view(&self) -> TaskView {
        let (state, submit) = (&self.state, &self.birth.submit);
        let last = state.attempts.last();
        TaskView {
            task_id: self.id(),
            phase: state.phase.name(),
            outcome: self.outcome().map(str::to_owned),
            replayed: false,
            result: state.phase.result().cloned(),
            failure: self.failure(),
            from_agent: submit.from_agent.clone(),
            to_agent: last.map(|attempt| attempt.agent_id.clone()).or_else(|| self.named_agent().cloned()),
            capability: last.map(|attempt| attempt.capability.clone()).or_else(|| state.target.capability.clone()),
            fallback_from: state.fallback_from.clone(),
            intent: submit.intent.clone(),
            mode: submit.mode,
            priority: self.birth.priority(),
            idempotency_key: submit.idempotency_key.clone(),
            token: state.token,
            attempts: state.attempts.iter().map(attempt_view).collect(),
            human: state.human_view(),
            progress: state.progress.clone(),
            created_at: self.birth.created_at,
            deadline_at: state.deadline_at,
            finished_at: state.finished_at,
            latency_ms: self.took().map(Span::as_ms),
            token_count: state.token_count,
        }
    }

    /// The agent that is named by who asks. What a fallback chain names is its owner's affair: the caller may not know of it.
    fn named_agent(&self) -> Option<&AgentId> {
        match self.state.fallback_from {
            None => self.state.target.to_agent.as_ref(),
            Some(_) => self.birth.submit.to_agent.as_ref(),
        }
    }

    /// The task and every decision that was taken for it.
    #[must_use]
    pub fn explanation(&self) -> Explanation {
        Explanation { task: self.view(), decisions: self.state.decisions.clone(), record: self.record() }
    }

    /// How long it took from being taken on, or last sent again, to its end. None: it has not ended.
    #[must_use]
    pub fn took(&self) -> Option<Span> {
        let begun_at = self.state.redriven_at.unwrap_or(self.birth.created_at);
        self.state.finished_at.map(|at| at.since(begun_at))
    }

    /// How it ended, in a few words. None: it has not.
    #[must_use]
    pub fn record(&self) -> Option<TaskRecord> {
        let (state, last) = (&self.state, self.state.attempts.last());
        Some(TaskRecord {
            reach_id: self.id(),
            from_agent: self.birth.submit.from_agent.clone(),
            to_agent: last.map(|attempt| attempt.agent_id.clone()).or_else(|| state.target.to_agent.clone()),
            method: last.map(|attempt| attempt.capability.clone()).or_else(|| state.target.capability.clone()),
            status_code: self.outcome()?.to_owned(),
            latency_ms: self.took()?.as_ms(),
            token_count: state.token_count,
            error_message: self.failure().map(|failure| failure.message),
            fallback_from: state.fallback_from.clone(),
        })
    }

    /// The word for how it ended. None: it has not.
    #[must_use]
    pub fn outcome(&self) -> Option<&'static str> {
        match &self.state.phase {
            Phase::Completed { .. } if self.state.fallback_from.is_some() || self.state.human.is_some() => {
                Some(REACH_FALLBACK)
            }
            Phase::Completed { .. } => Some(REACH_OK),
            Phase::Cancelled => Some(ErrorCode::Cancelled.outcome()),
            Phase::Failed(failure) | Phase::Expired(failure) | Phase::DeadLettered(failure) => {
                Some(failure.code.outcome())
            }
            Phase::Submitted { .. }
            | Phase::Human { .. }
            | Phase::Routed(_)
            | Phase::Delivered(_)
            | Phase::Accepted(_) => None,
        }
    }

    fn failure(&self) -> Option<Failure> {
        match &self.state.phase {
            Phase::Cancelled => Some(Failure::new(ErrorCode::Cancelled, "the task was cancelled")),
            Phase::Failed(failure) | Phase::Expired(failure) | Phase::DeadLettered(failure) => Some(failure.clone()),
            Phase::Submitted { .. }
            | Phase::Human { .. }
            | Phase::Routed(_)
            | Phase::Delivered(_)
            | Phase::Accepted(_)
            | Phase::Completed { .. } => None,
        }
    }
}

fn attempt_view(attempt: &Attempt) -> AttemptView {
    AttemptView {
        token: attempt.token,
        agent_id: attempt.agent_id.clone(),
        capability: attempt.capability.clone(),
        started_at: attempt.started_at,
        delivered_at: attempt.delivered_at,
        accepted_at: attempt.accepted_at,
        ended_at: attempt.ended_at,
        failure: attempt.failure.clone(),
    }
}
