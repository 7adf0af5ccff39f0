//! The last step down a fallback chain: the task waits in a queue until a person takes it, under a lease with a fencing
//! token, and answers it, refuses it or puts it back. No agent is asked any more, and no attempt is counted.

use reach_schemas::{
    Decision, ErrorCode, Failure, FencingToken, HumanView, QueueName, Span, Stage, Take, TakeEnding, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::event::Word;
use super::phase::Phase;
use super::step::{Next, Refusal};
use super::{ATTEMPTS_MAX, State};

/// How long a person has at least, from when the task is put before people, unless it is set otherwise.
pub const WAIT: Span = Span::from_hours(24);

pub(super) const fn wait() -> Span {
    WAIT
}

/// What is known of a task that was put before people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Human {
    /// Where it waits, or waited.
    pub queue: QueueName,
    /// Since when.
    pub since: Timestamp,
    /// Who took it, oldest first; the last one may have it still.
    pub takes: Vec<Take>,
}

impl State {
    /// Who has it: a person whose lease has not run out at `now`.
    #[must_use]
    pub fn taken_by(&self, now: Timestamp) -> Option<&Take> {
        let until = self.phase.human_lease().flatten()?;
        if now < until { self.human.as_ref()?.takes.last() } else { None }
    }

    pub(super) fn human_view(&self) -> Option<HumanView> {
        let human = self.human.as_ref()?;
        Some(HumanView {
            queue: human.queue.clone(),
            since: human.since,
            lease_until: self.phase.human_lease().flatten(),
            unsure: self.unsure.clone(),
            takes: human.takes.clone(),
        })
    }
}

/// Puts the task before people. They have their time, whatever was left of the caller's.
pub(super) fn ask(next: &mut Next<'_>, queue: QueueName) {
    let wait = next.state.plan.as_ref().map_or(WAIT, |plan| plan.human_wait);
    next.state.deadline_at = next.state.deadline_at.max(next.now + wait);
    next.state.note(decision(next, &queue));
    next.state.human = Some(Human { queue, since: next.now, takes: Vec::new() });
    next.state.phase = Phase::Human { lease_until: None };
    next.effects.changed = true;
}

fn decision(next: &Next<'_>, queue: &QueueName) -> Decision {
    Decision {
        at: next.now,
        attempt: next.state.next_attempt(),
        stage: Stage::Human,
        chosen: None,
        considered: 0,
        candidates: Vec::new(),
        rejected: std::collections::BTreeMap::new(),
        intent: None,
        rule: None,
        suggestions: Vec::new(),
        queue: Some(queue.clone()),
        took_us: None,
    }
}

/// A lease has run out, and the task waits for somebody else; or its deadline has passed.
pub(super) fn due(next: &mut Next<'_>) {
    end_take(next, if is_over(next) { TakeEnding::TaskEnded } else { TakeEnding::Forgotten });
    if is_over(next) {
        let human = next.state.human.as_ref();
        let (queue, since) = human.map_or(("", next.now), |human| (human.queue.as_str(), human.since));
        let waited = next.now.since(since);
        let message = format!("no person answered it within {waited} in the queue {queue}");
        next.finish(Phase::Expired(Failure::new(ErrorCode::Expired, message)));
    } else {
        next.state.phase = Phase::Human { lease_until: None };
        next.effects.changed = true;
    }
}

fn is_over(next: &Next<'_>) -> bool {
    next.now >= next.state.deadline_at
}

/// Ends the take that is not over, if there is one.
pub(super) fn end_take(next: &mut Next<'_>, ending: TakeEnding) {
    let now = next.now;
    let last = next.state.human.as_mut().and_then(|human| human.takes.last_mut());
    if let Some(take) = last.filter(|take| take.ending.is_none()) {
        (take.ended_at, take.ending) = (Some(now), Some(ending));
    }
}

impl Next<'_> {
    pub(super) fn take(&mut self, by: String, lease: Span) -> Result<(), Refusal> {
        if self.state.phase.human_lease().is_none() {
            return Err(self.wrong_phase());
        }
        if is_over(self) {
            return Err(Refusal::NotOffered);
        }
        match self.state.taken_by(self.now) {
            Some(take) if take.by != by => return Err(Refusal::ClaimLost),
            Some(_) => {}
            None => self.begin_take(by),
        }
        let lease_until = (self.now + lease).min(self.state.deadline_at);
        self.state.phase = Phase::Human { lease_until: Some(lease_until) };
        self.effects.changed = true;
        Ok(())
    }

    fn begin_take(&mut self, by: String) {
        // One that nobody has looked at since its lease ran out.
        end_take(self, TakeEnding::Forgotten);
        self.state.token = FencingToken(self.state.token.0 + 1);
        let take = Take { token: self.state.token, by, taken_at: self.now, ended_at: None, ending: None };
        if let Some(human) = &mut self.state.human {
            if human.takes.len() >= ATTEMPTS_MAX {
                human.takes.remove(0);
            }
            human.takes.push(take);
        }
    }

    pub(super) fn hear(&mut self, token: FencingToken, word: Word) -> Result<(), Refusal> {
        if token != self.state.token {
            return Err(Refusal::StaleToken { newest: self.state.token });
        }
        match self.state.phase.human_lease() {
            Some(Some(_)) => {}
            Some(None) => return Err(Refusal::NotTaken),
            None => return Err(self.said_before(&word)),
        }
        match word {
            Word::Answer { result } => {
                end_take(self, TakeEnding::Answered);
                self.finish(Phase::Completed { result });
            }
            Word::Refuse { failure, nothing_happened } => {
                end_take(self, TakeEnding::Refused);
                if nothing_happened {
                    self.state.unsure.clear();
                }
                self.finish(Phase::DeadLettered(failure));
            }
            Word::Return => {
                end_take(self, TakeEnding::Returned);
                self.state.phase = Phase::Human { lease_until: None };
                self.effects.changed = true;
            }
        }
        Ok(())
    }

    /// The answer that stands may be given once more, by whoever did not hear that it was taken.
    fn said_before(&self, word: &Word) -> Refusal {
        let was_answered = || {
            let last = self.state.human.as_ref().and_then(|human| human.takes.last());
            last.is_some_and(|take| take.ending == Some(TakeEnding::Answered))
        };
        match (word, &self.state.phase) {
            (Word::Answer { result }, Phase::Completed { result: first }) if result == first && was_answered() => {
                Refusal::Already
            }
            (Word::Answer { .. } | Word::Refuse { .. } | Word::Return, _) => self.wrong_phase(),
        }
    }
}
