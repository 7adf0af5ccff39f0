//! A task and its life. What never changes is in [`Birth`]; what does is in [`State`], and only
//! [`step()`](step::step) makes a new one. Nothing here reads a clock or touches the world.

mod chain;
mod claim;
pub mod ending;
mod ephemeral;
pub mod event;
pub mod human;
pub mod phase;
pub mod preempt;
pub mod spans;
pub mod step;
pub mod view;
mod wait;

use std::sync::Arc;

use reach_schemas::{
    AgentId, CapabilityName, Decision, Delivery, Effect, ErrorCode, Failure, FallbackStep, FencingToken, Mode,
    Namespace, Protocol, RawJson, Span, Submit, TaskId, Tier, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::idempotency::delivery_key;
use crate::retry::Turn;

pub use event::{Assignment, Event, Offered, Wanted};
pub use human::Human;
pub use phase::Phase;
pub use step::{Effects, EndedAttempt, Refusal, Step, step};

/// How many decisions a task keeps; the oldest but the first go when there are more.
pub const DECISIONS_MAX: usize = 12;
/// How many ended attempts a task keeps.
pub const ATTEMPTS_MAX: usize = 24;
/// How many tries a task has when its caller does not say.
pub const TRIES: u32 = 3;
/// How many tries a caller may ask for.
pub const TRIES_MAX: u32 = 10;

/// What a task is born with, and keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Birth {
    /// Its id.
    pub id: TaskId,
    /// Whose keys its key is among: the caller.
    pub scope: String,
    /// Whether agents are handed its key within its scope. One of a release that did not keeps its bare key: an agent may
    /// have done the work under it.
    #[serde(default)]
    pub has_scoped_key: bool,
    /// What the caller wrote.
    pub submit: Submit,
    /// When it was taken on.
    pub created_at: Timestamp,
}

impl Birth {
    /// How many tries it may have.
    #[must_use]
    pub fn tries(&self) -> u32 {
        self.submit.tries.unwrap_or(TRIES)
    }

    /// 0 to 9, 9 first.
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.submit.priority.unwrap_or(5)
    }

    /// The key that agents are handed: the caller's within its scope, or the task's id. It is the same for as long as the
    /// task is there.
    #[must_use]
    pub fn delivery_key(&self) -> String {
        match &self.submit.idempotency_key {
            None => self.id.to_string(),
            Some(key) if self.has_scoped_key => delivery_key(&self.scope, key.as_str()),
            Some(key) => key.to_string(),
        }
    }
}

/// A task: what it was born with, where it is, and how often it has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// What it was born with.
    pub birth: Arc<Birth>,
    /// Grows by one with every commit; a commit made on an older one is refused by the store.
    pub version: u64,
    /// Where it is.
    pub state: State,
}

/// Where a task is, and what it went through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Where it is in its life.
    pub phase: Phase,
    /// The newest fencing token.
    pub token: FencingToken,
    /// How many tries it has used since it was born, redriven, or went down its fallback chain.
    pub tries_used: u32,
    /// The newest token at the time when it was born, redriven, or last went down its fallback chain.
    #[serde(default)]
    pub begun_after: FencingToken,
    /// The newest token at the time when it was last redriven; 0 if it never was.
    #[serde(default)]
    pub redriven_after: FencingToken,
    /// What is asked for now; a fallback changes it.
    pub target: Target,
    /// What the chosen capability says of timeouts, repeats and fallbacks. None: never routed.
    pub plan: Option<Plan>,
    /// The capability whose fallback chain holds: the first that was given out and has one, since it was born or redriven.
    /// None: none so far, and the chain in the plan may be another's yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain_of: Option<CapabilityName>,
    /// How many fallback steps have been taken.
    pub fallbacks_taken: usize,
    /// The capability that was asked first, once a fallback has been taken.
    pub fallback_from: Option<CapabilityName>,
    /// Writes that may or may not have happened since it was born or redriven. None of them is sent again.
    #[serde(default)]
    pub unsure: Vec<CapabilityName>,
    /// The queue of people that it was put into since it was born or redriven, and who took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human: Option<Human>,
    /// What it waits for, if it waits and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// What was tried, oldest first; the last one may be live.
    pub attempts: Vec<Attempt>,
    /// What was decided, oldest first.
    pub decisions: Vec<Decision>,
    /// What the agent last said of its progress.
    pub progress: Option<RawJson>,
    /// Final by.
    pub deadline_at: Timestamp,
    /// When it became final.
    pub finished_at: Option<Timestamp>,
    /// When it was last sent again after it had ended. None: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriven_at: Option<Timestamp>,
    /// How many tokens of a language model the last attempt took, if its agent said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u64>,
}

/// What a task waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// For what, most likely.
    pub capability: CapabilityName,
    /// Since when none of those that offer it is well and there. None: one is, and is busy.
    pub out_since: Option<Timestamp>,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// This agent and no other.
    pub to_agent: Option<AgentId>,
    /// This capability.
    pub capability: Option<CapabilityName>,
    /// In words.
    pub intent: Option<String>,
    /// In this namespace only.
    pub namespace: Option<Namespace>,
}

/// What a capability's owner and the caller laid down for the attempts to come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What it does to the world.
    pub effect: Effect,
    /// Its tier.
    pub tier: Tier,
    /// How long one attempt may take without a sign of progress.
    pub attempt_timeout: Span,
    /// Whether another agent is tried before the fallback. None: unless a `write` may have started.
    pub lateral: Option<bool>,
    /// Whether work that has begun can be stopped.
    #[serde(default)]
    pub cancellable: bool,
    /// What to do once every try has failed.
    pub fallback: Vec<FallbackStep>,
    /// How long a person has at least, if the fallback comes to that.
    #[serde(default = "human::wait")]
    pub human_wait: Span,
}

/// One try of a task on one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its fencing token.
    pub token: FencingToken,
    /// Who was asked.
    pub agent_id: AgentId,
    /// For what.
    pub capability: CapabilityName,
    /// How the agent is reached.
    pub protocol: Protocol,
    /// When it was given out.
    pub started_at: Timestamp,
    /// When it arrived.
    pub delivered_at: Option<Timestamp>,
    /// When the agent said "I have it".
    pub accepted_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

impl Attempt {
    /// Whether its agent gave it back, or was too full to take it: it counts as no try. To be asked of tasks that go on.
    fn is_given_back(&self) -> bool {
        self.ended_at.is_some() && self.failure.as_ref().is_none_or(|failure| failure.code == ErrorCode::Overloaded)
    }
}

impl Task {
    /// A new task, waiting to be routed at once.
    #[must_use]
    pub fn new(birth: Birth, deadline: Span) -> Self {
        let submit = &birth.submit;
        let state = State {
            phase: Phase::Submitted { not_before: birth.created_at, offered: Vec::new() },
            token: FencingToken(0),
            tries_used: 0,
            begun_after: FencingToken(0),
            redriven_after: FencingToken(0),
            target: Target {
                to_agent: submit.to_agent.clone(),
                capability: submit.capability.clone(),
                intent: submit.intent.clone(),
                namespace: submit.namespace.clone(),
            },
            plan: None,
            chain_of: None,
            fallbacks_taken: 0,
            fallback_from: None,
            unsure: Vec::new(),
            human: None,
            waits: None,
            attempts: Vec::new(),
            decisions: Vec::new(),
            progress: None,
            deadline_at: birth.created_at + deadline,
            finished_at: None,
            redriven_at: None,
            token_count: None,
        };
        Self { birth: Arc::new(birth), version: 0, state }
    }

    /// How many bytes it carries of what others wrote: parameters, result, progress, and what agents sent with failures.
    #[must_use]
    pub fn carried(&self) -> usize {
        let of = |raw: Option<&RawJson>| raw.map_or(0, |raw| raw.get().len());
        let result = if let Phase::Completed { result } = &self.state.phase { result.get().len() } else { 0 };
        let failed = self.state.attempts.iter().filter_map(|attempt| attempt.failure.as_ref());
        let failures: usize = failed.map(|failure| failure.message.len() + of(failure.data.as_ref())).sum();
        of(self.birth.submit.params.as_ref()) + result + of(self.state.progress.as_ref()) + failures
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.birth.id
    }

    /// How it finds its agent.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.birth.submit.mode
    }

    /// The live attempt, if there is one.
    #[must_use]
    pub fn live_attempt(&self) -> Option<&Attempt> {
        self.state.live_attempt()
    }

    /// Whether something stands in for the work if nobody does it: a step of its fallback chain is left.
    #[must_use]
    pub fn has_fallback(&self) -> bool {
        self.state.next_fallback(|_| true).is_some()
    }

    /// When somebody must look at it again. None: it is final.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        self.state.phase.due_at(self.state.deadline_at)
    }

    /// The live attempt as its agent gets it.
    #[must_use]
    pub fn delivery(&self) -> Option<Delivery> {
        let attempt = self.live_attempt()?;
        let plan = self.state.plan.as_ref()?;
        let submit = &self.birth.submit;
        Some(Delivery {
            task_id: self.id(),
            token: attempt.token,
            attempt: u32::try_from(self.state.attempts.len()).unwrap_or(u32::MAX),
            agent_id: attempt.agent_id.clone(),
            capability: attempt.capability.clone(),
            effect: plan.effect,
            params: submit.params.clone(),
            intent: submit.intent.clone(),
            from_agent: submit.from_agent.clone(),
            idempotency_key: self.birth.delivery_key(),
            attempt_until: self.state.phase.until().unwrap_or(self.state.deadline_at),
            deadline_at: self.state.deadline_at,
            traceparent: Some(self.attempt_span(attempt.token)),
        })
    }
}

impl State {
    /// The live attempt, if there is one.
    #[must_use]
    pub fn live_attempt(&self) -> Option<&Attempt> {
        if self.phase.is_live() { self.attempts.last() } else { None }
    }

    /// Who has had it since it was born, redriven, or went down its fallback chain, oldest first.
    pub fn tried(&self) -> impl Iterator<Item = &AgentId> {
        let own = self.attempts.iter().filter(|attempt| attempt.token > self.begun_after);
        own.filter(|attempt| attempt.ended_at.is_some()).map(|attempt| &attempt.agent_id)
    }

    /// The number of the attempt that comes next, counted from 1.
    #[must_use]
    pub fn next_attempt(&self) -> u32 {
        u32::try_from(self.attempts.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// What its next attempt counts as, for the budgets of retries.
    #[must_use]
    pub fn turn(&self, is_orphan: bool) -> Turn {
        let was_tried = self.attempts.last().is_some_and(|attempt| attempt.token > self.begun_after);
        match (was_tried, self.tries_used) {
            (false, _) => Turn::First,
            (true, 0) => Turn::Returned,
            (true, _) if is_orphan => Turn::Orphan,
            (true, _) => Turn::Retry,
        }
    }

    /// Keeps a decision; of two refusals in a row only the newer one.
    pub(crate) fn note(&mut self, decision: Decision) {
        let is_refusal = |decision: &Decision| decision.chosen.is_none() && decision.queue.is_none();
        let repeats = self.decisions.last().is_some_and(is_refusal) && is_refusal(&decision);
        if repeats {
            self.decisions.pop();
        } else if self.decisions.len() >= DECISIONS_MAX {
            self.decisions.remove(1);
        }
        self.decisions.push(decision);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn born(key: Option<&str>) -> Birth {
        let submit = Submit { idempotency_key: key.map(|key| key.parse().unwrap()), ..Submit::default() };
        let (id, created_at) = (TaskId::from_parts(1, 1), Timestamp::from_ms(1));
        Birth { id, scope: "a@x".to_owned(), has_scoped_key: true, submit, created_at }
    }

    #[test]
    fn agents_are_handed_a_key_of_its_caller_or_the_tasks_id_whichever_release_took_it_on() {
        let (keyed, plain) = (born(Some("order-17")), born(None));
        assert_eq!((keyed.delivery_key(), plain.delivery_key()), ("a@x/order-17".to_owned(), plain.id.to_string()));
        let mut stored = serde_json::to_value(&keyed).unwrap();
        assert_eq!(serde_json::from_value::<Birth>(stored.clone()).unwrap(), keyed);
        stored.as_object_mut().unwrap().remove("has_scoped_key");
        let of_before = serde_json::from_value::<Birth>(stored).unwrap();
        assert_eq!(of_before.delivery_key(), "order-17", "an agent may have done it under this key");
    }
}
