//! What is written down of a step of a task: that it failed, that it was sent again, what a person did. A call that went
//! well has no row of its own: the task's own record tells all of it.

use reach_schemas::{AuditKind, Timestamp};

use super::event::Event;
use crate::digest::fingerprint;
use crate::task::event::Word;
use crate::task::{self, Task};

/// What somebody does to a task, as far as it is written down whatever comes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// A person takes it, by the name that they give.
    Take {
        /// Who.
        by: String,
    },
    /// The person answers.
    Answer,
    /// The person refuses.
    Refuse,
    /// The person puts it back.
    Return,
    /// It is sent again.
    Redrive,
    /// Anything else.
    Other,
}

impl Deed {
    /// What an event is.
    #[must_use]
    pub fn of(event: &task::Event) -> Self {
        match event {
            task::Event::Take { by, .. } => Self::Take { by: by.clone() },
            task::Event::Person { word: Word::Answer { .. }, .. } => Self::Answer,
            task::Event::Person { word: Word::Refuse { .. }, .. } => Self::Refuse,
            task::Event::Person { word: Word::Return, .. } => Self::Return,
            task::Event::Redrive { .. } => Self::Redrive,
            task::Event::Assign { .. }
            | task::Event::Offer { .. }
            | task::Event::Defer { .. }
            | task::Event::GiveUp { .. }
            | task::Event::Claim { .. }
            | task::Event::Delivered { .. }
            | task::Event::Accept { .. }
            | task::Event::Progress { .. }
            | task::Event::Renew { .. }
            | task::Event::Complete { .. }
            | task::Event::Fail { .. }
            | task::Event::Release { .. }
            | task::Event::Poison { .. }
            | task::Event::Preempt { .. }
            | task::Event::Cancel
            | task::Event::Due => Self::Other,
        }
    }
}

/// What is written down of a step. `by`: who had it taken; none: the task's own caller, or nobody.
#[must_use]
pub fn of_step(before: &Task, next: &Task, deed: &Deed, by: Option<&str>, now: Timestamp) -> Vec<Event> {
    let mut events = Vec::new();
    if let Some(kind) = kind_of(deed) {
        let actor = by.unwrap_or(&next.birth.scope);
        let event = about(Event::new(now, kind, actor), next);
        events.push(match person(deed, before) {
            Some(person) => event.because(format!("by {person}")),
            None => event,
        });
    }
    let was_final = before.state.phase.name().is_final();
    if let Some(failure) = next.state.phase.failure().filter(|_| !was_final) {
        let tries = next.state.attempts.len();
        let event = Event::new(now, AuditKind::ReachFailed, next.birth.scope.as_str()).failed(failure.code);
        let attempts = if tries == 1 { "attempt" } else { "attempts" };
        let event = event.because(format!("{} after {tries} {attempts}", next.state.phase.name().as_str()));
        events.push(about(event, next).with_digest(fingerprint(&next.birth.submit).0));
    }
    events
}

const fn kind_of(deed: &Deed) -> Option<AuditKind> {
    match deed {
        Deed::Take { .. } => Some(AuditKind::HumanTook),
        Deed::Answer => Some(AuditKind::HumanAnswered),
        Deed::Refuse => Some(AuditKind::HumanRefused),
        Deed::Return => Some(AuditKind::HumanReturned),
        Deed::Redrive => Some(AuditKind::TaskRedriven),
        Deed::Other => None,
    }
}

/// The person who does it.
fn person<'a>(deed: &'a Deed, before: &'a Task) -> Option<&'a str> {
    match deed {
        Deed::Take { by } => Some(by),
        Deed::Answer | Deed::Refuse | Deed::Return => {
            let last = before.state.human.as_ref().and_then(|human| human.takes.last());
            last.map(|take| take.by.as_str())
        }
        Deed::Redrive | Deed::Other => None,
    }
}

/// Which task, and who had it last or what it asks for.
fn about(event: Event, task: &Task) -> Event {
    let (state, event) = (&task.state, event.about(task.id()));
    let agent = state.attempts.last().map(|attempt| &attempt.agent_id).or(state.target.to_agent.as_ref());
    let asked = || state.target.capability.as_ref().map(|name| name.as_str());
    match agent.map(|agent| agent.as_str()).or_else(asked) {
        Some(target) => event.on(target),
        None => event,
    }
}
