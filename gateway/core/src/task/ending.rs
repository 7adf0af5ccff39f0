//! How attempts end, and what becomes of the task then: another try, a step down its fallback chain, or the end.

use fastrand::Rng;
use reach_schemas::{CapabilityName, ErrorCode, Failure, Protocol, Span};

use super::chain::{ask_no_agent, fall_back};
use super::event::Trace;
use super::phase::Phase;
use super::step::{EndedAttempt, Next, Refusal};
use super::{human, preempt};
use crate::retry::doubled;

/// How an attempt ended, as breakers and history see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With a result.
    Succeeded,
    /// With an answer that is the caller's or the task's fault: the agent is well.
    Answered,
    /// Badly.
    Failed,
    /// Neither well nor badly: cancelled, given back, or never begun because the agent was full.
    Neutral,
}

impl Ending {
    /// Whether the agent answered, be it that the task cannot be done.
    #[must_use]
    pub const fn is_answered(self) -> bool {
        match self {
            Self::Succeeded | Self::Answered => true,
            Self::Failed | Self::Neutral => false,
        }
    }
}

/// What is done once an attempt has failed.
enum Onward {
    Retry { after: Span },
    Fallback,
    Final(Phase),
}

/// The wait before a retry: none before the first retry of what did not begin. For how long an agent asks to be left
/// alone is no wait of the task's: the router keeps away from that agent, and another may take it.
fn backoff(retries: u32, trace: Trace, rng: &mut Rng) -> Span {
    if retries <= 1 && matches!(trace, Trace::NotStarted | Trace::NeverSent) {
        return Span::ZERO;
    }
    doubled(retries, rng)
}

pub(super) fn end_attempt(next: &mut Next<'_>, ending: Ending, failure: Option<Failure>) {
    let now = next.now;
    let Some(attempt) = next.state.attempts.last_mut() else { return };
    attempt.ended_at = Some(now);
    let retry_after = failure.as_ref().and_then(|failure| failure.retry_after);
    let is_timeout = failure.as_ref().is_some_and(|failure| failure.code == ErrorCode::Timeout);
    attempt.failure = failure;
    next.effects.ended = Some(EndedAttempt {
        agent_id: attempt.agent_id.clone(),
        capability: attempt.capability.clone(),
        token: attempt.token,
        ending,
        took: now.since(attempt.started_at),
        is_timeout,
        retry_after,
    });
}

pub(super) fn failed(next: &mut Next<'_>, failure: Failure, trace: Trace, rng: &mut Rng) {
    // Whoever takes an agent's work back cannot know whether a pull came first. Here it is known.
    let trace = if trace == Trace::Unknown && is_parked(next) { Trace::NotStarted } else { trace };
    let ending = match (trace, failure.code) {
        (_, ErrorCode::Overloaded) | (Trace::NeverSent, _) => Ending::Neutral,
        (Trace::FailedForGood, code) if code != ErrorCode::InvalidResult => Ending::Answered,
        (Trace::NotStarted | Trace::FailedRetryable | Trace::FailedForGood | Trace::Unknown, _) => Ending::Failed,
    };
    end_attempt(next, ending, Some(failure.clone()));
    if trace == Trace::NotStarted && failure.code == ErrorCode::Overloaded {
        let after = pause(next, rng);
        if next.now + after < next.state.deadline_at {
            return give_back(next, after);
        }
    }
    onward(next, failure, trace, rng);
}

/// An attempt was stopped for the sake of another task: it counts as no try, and its task does not take the seat back at
/// once.
pub(super) fn stopped(next: &mut Next<'_>, failure: Failure, rng: &mut Rng) {
    next.stop();
    end_attempt(next, Ending::Neutral, Some(failure));
    let after = pause(next, rng).max(preempt::STANDS_BACK);
    give_back(next, after);
}

pub(super) fn released(next: &mut Next<'_>, rng: &mut Rng) {
    end_attempt(next, Ending::Neutral, None);
    let after = pause(next, rng);
    give_back(next, after);
}

/// What was not begun for want of room or will counts as no try, wherever it may go next.
fn give_back(next: &mut Next<'_>, after: Span) {
    next.state.tries_used = next.state.tries_used.saturating_sub(1);
    again(next, after);
}

/// What one agent gives back is sent on at once; what is given back again and again waits longer each time.
fn pause(next: &Next<'_>, rng: &mut Rng) -> Span {
    let own = next.state.attempts.iter().rev().take_while(|attempt| attempt.token > next.state.begun_after);
    let in_row = own.take_while(|attempt| attempt.is_given_back()).count();
    match u32::try_from(in_row).unwrap_or(u32::MAX) {
        0 | 1 => Span::ZERO,
        more => doubled(more - 1, rng),
    }
}

pub(super) fn poisoned(next: &mut Next<'_>, failure: Failure) {
    end_attempt(next, Ending::Answered, Some(failure.clone()));
    next.finish(Phase::DeadLettered(failure));
}

/// Nobody will ever fit what is asked for now: down the chain, or refused.
pub(super) fn nobody(next: &mut Next<'_>, failure: Failure) {
    // Whom a fallback chain names, the caller may not know of.
    let failure = match &next.state.fallback_from {
        Some(asked) if failure.code == ErrorCode::AgentNotFound => {
            let message = format!("nothing that stands in for {asked} is there for this caller");
            Failure::new(ErrorCode::NoCandidate, message)
        }
        Some(_) | None => failure,
    };
    if !fall_back(next) {
        next.finish(Phase::DeadLettered(failure));
    }
}

/// Its time has come: the deadline, or the end of an attempt that gave no sign.
pub(super) fn due(next: &mut Next<'_>, rng: &mut Rng) -> Result<(), Refusal> {
    let due_at = next.state.phase.due_at(next.state.deadline_at).ok_or_else(|| next.wrong_phase())?;
    if due_at > next.now {
        return Err(Refusal::NotDue);
    }
    match &next.state.phase {
        // The dispatcher routes it; there is nothing to change yet.
        Phase::Submitted { .. } if next.now < next.state.deadline_at => return Err(Refusal::Already),
        Phase::Submitted { offered, .. } => {
            next.effects.withdraw = offered.iter().map(|offer| offer.agent_id.clone()).collect();
            let failure = expired(next);
            if !ask_no_agent(next) {
                next.finish(Phase::Expired(failure));
            }
        }
        Phase::Human { .. } => human::due(next),
        Phase::Routed(_) | Phase::Delivered(_) | Phase::Accepted(_) => silent(next, rng),
        Phase::Completed { .. } | Phase::Failed(_) | Phase::Cancelled | Phase::Expired(_) | Phase::DeadLettered(_) => {
            return Err(next.wrong_phase());
        }
    }
    Ok(())
}

/// Whether the live attempt lies there until its agent pulls it: nothing can have begun.
fn is_parked(next: &Next<'_>) -> bool {
    matches!(next.state.phase, Phase::Routed(_))
        && next.state.attempts.last().is_some_and(|attempt| attempt.protocol == Protocol::Queue)
}

/// A live attempt gave no sign until its time was over.
fn silent(next: &mut Next<'_>, rng: &mut Rng) {
    let agent = next.state.attempts.last().map(|attempt| attempt.agent_id.to_string()).unwrap_or_default();
    let is_lease = next.state.phase.hold().is_some_and(|hold| hold.lease_until.is_some_and(|at| at <= next.now));
    let (trace, failure) = if is_parked(next) {
        (Trace::NotStarted, Failure::new(ErrorCode::Timeout, format!("{agent} did not pull the task in time")))
    } else if is_lease {
        (Trace::Unknown, Failure::new(ErrorCode::AgentLost, format!("{agent} did not renew its lease on the task")))
    } else {
        (Trace::Unknown, Failure::new(ErrorCode::Timeout, format!("{agent} did not answer in time")))
    };
    next.stop();
    failed(next, failure, trace, rng);
}

fn onward(next: &mut Next<'_>, failure: Failure, trace: Trace, rng: &mut Rng) {
    match decide(next, failure, trace, rng) {
        Onward::Retry { after } => again(next, after),
        Onward::Final(phase) => next.finish(phase),
        Onward::Fallback => {}
    }
}

fn decide(next: &mut Next<'_>, failure: Failure, trace: Trace, rng: &mut Rng) -> Onward {
    if trace == Trace::FailedForGood {
        return Onward::Final(Phase::Failed(failure));
    }
    let Some(plan) = &next.state.plan else { return Onward::Final(Phase::DeadLettered(failure)) };
    let is_unknown = trace == Trace::Unknown && !plan.effect.is_repeatable();
    if let (true, Some(attempt)) = (is_unknown, next.state.attempts.last())
        && !next.state.unsure.contains(&attempt.capability)
    {
        next.state.unsure.push(attempt.capability.clone());
    }
    // An agent that says it failed after it had begun does not say that nothing happened.
    let has_begun = trace == Trace::FailedRetryable && !plan.effect.is_repeatable();
    let is_lateral = plan.lateral.unwrap_or(true) && !is_unknown && !has_begun;
    let tries_left = next.state.tries_used < next.task.birth.tries();
    let after = backoff(next.state.tries_used, trace, rng);
    let is_in_time = next.now + after < next.state.deadline_at;
    if is_lateral && tries_left && is_in_time {
        return Onward::Retry { after };
    }
    let is_open = next.now < next.state.deadline_at;
    if if is_open { fall_back(next) } else { ask_no_agent(next) } {
        return Onward::Fallback;
    }
    if is_in_time || !tries_left {
        return Onward::Final(Phase::DeadLettered(failure));
    }
    let failure = Failure { code: ErrorCode::Expired, ..failure };
    Onward::Final(Phase::Expired(failure))
}

/// However a task ends that nobody has answered: if a write of it may have happened, that is what there is to say. Any
/// other word would let its caller send it again.
pub(super) fn as_it_is_known(phase: Phase, unsure: &[CapabilityName]) -> Phase {
    match phase {
        Phase::Expired(failure) | Phase::DeadLettered(failure) if !unsure.is_empty() => {
            let writes = unsure.iter().map(CapabilityName::as_str).collect::<Vec<_>>().join(", ");
            let message =
                format!("{}; the write {writes} may or may not have happened, and was not sent again", failure.message);
            let code = ErrorCode::OutcomeUnknown;
            Phase::DeadLettered(Failure { code, message, retry_after: None, ..failure })
        }
        // It is the agent that was full, not the gateway, which has taken the task on.
        Phase::DeadLettered(failure) if failure.code == ErrorCode::Overloaded => {
            Phase::DeadLettered(Failure { code: ErrorCode::AgentRefused, ..failure })
        }
        Phase::Submitted { .. }
        | Phase::Human { .. }
        | Phase::Routed(_)
        | Phase::Delivered(_)
        | Phase::Accepted(_)
        | Phase::Completed { .. }
        | Phase::Failed(_)
        | Phase::Cancelled
        | Phase::Expired(_)
        | Phase::DeadLettered(_) => phase,
    }
}

pub(super) fn again(next: &mut Next<'_>, after: Span) {
    next.state.phase = Phase::Submitted { not_before: next.now + after, offered: Vec::new() };
    next.effects.changed = true;
}

/// The failure of a task whose deadline passed while it waited.
fn expired(next: &Next<'_>) -> Failure {
    let waited = next.now.since(next.task.birth.created_at);
    let last = next.state.decisions.last().filter(|decision| decision.chosen.is_none());
    let mut failure = match next.state.attempts.last().and_then(|attempt| attempt.failure.as_ref()) {
        Some(earlier) => Failure::new(
            ErrorCode::Expired,
            format!("the deadline passed after {waited}; the last attempt failed: {}", earlier.message),
        ),
        None => Failure::new(ErrorCode::Expired, format!("the deadline passed after {waited} with no agent free")),
    };
    if let Some(decision) = last {
        failure.suggestions.clone_from(&decision.suggestions);
    }
    failure
}
