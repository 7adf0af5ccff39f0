//! People: they look into the queues now and then, take what waits, and answer it, refuse it, put it back or forget it.

use std::sync::Arc;

use reach_core::task::event::Word;
use reach_core::task::{Event, Phase, Task};
use reach_schemas::{ErrorCode, FencingToken, RawJson, Span, TakeEnding, TaskId};

use crate::coverage::Covered;
use crate::gateway::Then;
use crate::reports::failed;
use crate::world::{Happening, World};

/// How many people there are.
const PEOPLE: usize = 2;
/// How long a person has a task before it is somebody else's again.
const LEASE: Span = Span::from_ms(1_500);
/// How long a task waits for a person.
pub(crate) const WAIT: Span = Span::from_ms(6_000);

/// The answer that tells under which take it was given.
pub(crate) fn answer(token: FencingToken) -> RawJson {
    RawJson::parse(&format!("[\"person\",{}]", token.0)).expect("a text and a number in brackets are JSON")
}

impl World {
    /// A person looks at what waits.
    pub(crate) fn person_looks(&mut self, person: usize) {
        let ms = if self.is_stormy() { self.between(300, 2_500) } else { self.between(100, 300) };
        self.after(ms, Happening::PersonLooks(person));
        let waiting: Vec<TaskId> =
            self.store.open().filter(|task| task.state.phase.human_lease().is_some()).map(|task| task.id()).collect();
        // Two may look at the same one.
        for _ in 0..waiting.len().min(3) {
            let (task, gateway) = (waiting[self.rng.usize(0..waiting.len())], self.any_gateway());
            self.send(|| Happening::Take { gateway, person, task });
        }
    }

    pub(crate) fn take(&mut self, gateway: usize, person: usize, task: TaskId) {
        if self.gateways[gateway].is_up {
            let event = Event::Take { by: format!("p{person}"), lease: LEASE };
            self.apply(gateway, task, event, Then::Taken(person), 0);
        }
    }

    /// The person has it, if the word of it gets through, and makes up their mind.
    pub(crate) fn person_has(&mut self, person: usize, task: &Arc<Task>) {
        let (id, token) = (task.id(), task.state.token);
        let manner = if self.is_stormy() { self.between(0, 9) } else { 9 };
        let word = match manner {
            // Forgotten.
            0 | 1 => return,
            2 => Word::Return,
            3 | 4 => Word::Refuse { failure: failed(ErrorCode::HumanRefused), nothing_happened: manner == 3 },
            _ => Word::Answer { result: answer(token) },
        };
        // Some are slower than their lease.
        let ms = if self.is_stormy() { self.between(50, 2_500) } else { self.between(50, 200) };
        let gateway = self.any_gateway();
        let name = self.name(id);
        self.log(format_args!("p{person} has t{name} #{}", token.0));
        for delay in self.journeys() {
            self.after(ms + delay, Happening::PersonSays { gateway, task: id, token, word: word.clone() });
        }
    }

    pub(crate) fn person_says(&mut self, gateway: usize, task: TaskId, token: FencingToken, word: Word) {
        if self.gateways[gateway].is_up {
            self.apply(gateway, task, Event::Person { token, word }, Then::Nothing, 0);
        }
    }

    /// Which of the paths that lead by people a step took.
    pub(crate) fn cover_people(&mut self, before: &Task, next: &Task, event: &Event) {
        let (was, is) = (&before.state, &next.state);
        let was_before_people = was.phase.human_lease().is_some();
        let is_before_people = is.phase.human_lease().is_some();
        if is_before_people && !was_before_people {
            self.cover(Covered::HumanAsked);
            if !is.unsure.is_empty() {
                self.cover(Covered::HumanAskedOfUnsureWrite);
            }
            if self.now >= was.deadline_at {
                self.cover(Covered::HumanAskedAfterDeadline);
            }
        }
        let ending = is.human.as_ref().and_then(|human| human.takes.last()).and_then(|take| take.ending);
        let path = match (event, ending) {
            (Event::Take { .. }, _) if is.token == was.token => Covered::HumanTookAgain,
            (Event::Person { .. }, Some(TakeEnding::Answered)) => Covered::HumanAnswered,
            (Event::Person { .. }, Some(TakeEnding::Refused)) => Covered::HumanRefused,
            (Event::Person { .. }, Some(TakeEnding::Returned)) => Covered::HumanReturned,
            (Event::Due, Some(TakeEnding::Forgotten)) if is_before_people => Covered::HumanForgot,
            (Event::Due, _) if was_before_people => Covered::NoHumanInTime,
            (Event::Cancel, _) if was_before_people => Covered::CancelledBeforePeople,
            _ => return,
        };
        self.cover(path);
    }

    /// What a person answered is the answer of whoever took it last, and nobody has it who should not.
    pub(crate) fn is_by_its_person(task: &Task) -> bool {
        let Some(human) = &task.state.human else { return true };
        let open = human.takes.iter().filter(|take| take.ending.is_none()).count();
        let last = human.takes.last();
        let is_answered = last.is_some_and(|take| take.ending == Some(TakeEnding::Answered));
        let fits = match &task.state.phase {
            Phase::Completed { result } => last.is_some_and(|take| is_answered && *result == answer(take.token)),
            Phase::Human { lease_until: Some(_) } => last.is_some_and(|take| take.token == task.state.token),
            Phase::Human { lease_until: None } | Phase::Cancelled | Phase::Expired(_) | Phase::DeadLettered(_) => true,
            Phase::Submitted { .. }
            | Phase::Routed(_)
            | Phase::Delivered(_)
            | Phase::Accepted(_)
            | Phase::Failed(_) => false,
        };
        let has_holder = task.state.phase.human_lease().flatten().is_some();
        fits && open == usize::from(has_holder) && human.takes.windows(2).all(|pair| pair[0].token < pair[1].token)
    }

    pub(crate) fn add_people(&mut self) {
        for person in 0..PEOPLE {
            let ms = self.between(500, 3_000);
            self.after(ms, Happening::PersonLooks(person));
        }
    }
}
