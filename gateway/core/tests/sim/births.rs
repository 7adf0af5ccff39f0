//! How a task comes to be: routed in memory, inserted with its key, and only then answered; or found to be there.

use std::sync::Arc;

use reach_core::bulkhead::Seat;
use reach_core::digest::{Fingerprint, fingerprint};
use reach_core::fleet::Unroutable;
use reach_core::idempotency::{Verdict, judge};
use reach_core::task::preempt::victim;
use reach_core::task::{Birth, Effects, Event, Task, step};
use reach_schemas::{AgentId, Span, Submit, TaskId};

use crate::caller::Answer;
use crate::coverage::{Covered, of_event};
use crate::gateway::Then;
use crate::store::KeyName;
use crate::world::{Happening, Life, World};

/// A new task on its way into the store.
pub(crate) struct Insert {
    task: Arc<Task>,
    effects: Effects,
    event: Event,
    key: Option<(KeyName, Fingerprint)>,
    submit: Submit,
    caller: usize,
    wish: usize,
    is_other: bool,
    /// Whose seats it waits for.
    waits_at: Vec<AgentId>,
}

impl World {
    /// Takes a request on.
    pub(crate) fn submit(&mut self, gateway: usize, caller: usize, wish: usize, is_other: bool) {
        if !self.gateways[gateway].is_up {
            return;
        }
        let now = self.clock(gateway);
        let submit = self.callers[caller].wishes[wish].request(is_other);
        let id = TaskId::from_parts(now.as_ms(), self.rng.u128(..));
        let scope = self.callers[caller].id.to_string();
        let birth = Birth { id, scope: scope.clone(), has_scoped_key: true, submit: submit.clone(), created_at: now };
        let task = Task::new(birth, submit.deadline.unwrap_or(Span::from_secs(20)));
        let key = submit.idempotency_key.clone().map(|key| ((scope, key), fingerprint(&submit)));
        let mut waits_at = Vec::new();
        let (event, then) = match self.route(gateway, &task) {
            Ok(routed) => routed,
            Err(Unroutable::NotNow { until, waiting_for, wanted, for_seat, decision, .. }) => {
                waits_at = if for_seat { waiting_for } else { Vec::new() };
                (Event::Defer { until, wanted: Some(*wanted), decision }, Then::Nothing)
            }
            Err(Unroutable::Never { .. }) => {
                let known = key.as_ref().and_then(|(name, print)| Some((self.store.key(name)?, *print)));
                match known {
                    Some((earlier, print)) => self.replay(gateway, earlier, &submit, print, (caller, wish, is_other)),
                    None => self.answer(gateway, caller, wish, Answer::Refused),
                }
                return;
            }
        };
        match step(&task, event.clone(), now, &mut self.rng) {
            Ok(step) => {
                let task = Arc::new(Task { state: step.state, ..task });
                let insert =
                    Insert { task, effects: step.effects, event, key, submit, caller, wish, is_other, waits_at };
                let (life, ms) = (self.life(gateway), self.between(0, 3));
                self.after(ms, Happening::Insert(life, Box::new(insert)));
            }
            Err(refusal) => {
                self.abandon(gateway, then);
                self.fail(format!("a new task refused its first step: {refusal}"));
            }
        }
    }

    pub(crate) fn insert(&mut self, life: Life, insert: Insert) {
        let gateway = life.0;
        if !self.is_living(life) {
            self.cover(Covered::CrashBeforeCommit);
            return;
        }
        let Insert { task, effects, event, key, submit, caller, wish, is_other, waits_at } = insert;
        let print = key.as_ref().map(|(_, print)| *print);
        match self.store.insert(Arc::clone(&task), key) {
            Ok(()) => {
                let name = self.name(task.id());
                let phase = task.state.phase.name().as_str();
                self.log(format_args!("g{gateway} t{name} is born {phase}, by c{caller} wish {wish}"));
                self.cover(of_event(&event));
                self.check_birth(&task);
                self.follow(gateway, &task, effects, true);
                self.answer(gateway, caller, wish, Answer::Task { id: task.id(), is_other });
                self.make_way(gateway, &task, &waits_at);
                self.may_die(life);
            }
            Err(earlier) => {
                if let Some(attempt) = task.live_attempt() {
                    let seat = Seat { task_id: task.id(), token: attempt.token };
                    let taken = (seat, attempt.agent_id.clone(), attempt.capability.clone());
                    self.abandon(gateway, Then::Routed(Some(taken)));
                }
                if let Some(print) = print {
                    self.replay(gateway, earlier, &submit, print, (caller, wish, is_other));
                }
            }
        }
    }

    /// Has a less urgent task that can be stopped make way for one that waits for a seat.
    fn make_way(&mut self, gateway: usize, task: &Task, waits_at: &[AgentId]) {
        let priority = task.birth.priority();
        let at_them =
            |task: &&Arc<Task>| task.live_attempt().is_some_and(|attempt| waits_at.contains(&attempt.agent_id));
        let working = self.gateways[gateway].cache.values().filter(at_them).map(AsRef::as_ref);
        if let Some((id, token)) = victim(working, priority) {
            self.apply(gateway, id, Event::Preempt { token, priority }, Then::Nothing, 0);
        }
    }

    /// Answers a request whose key names an earlier task.
    fn replay(
        &mut self,
        gateway: usize,
        (id, earlier): (TaskId, Fingerprint),
        submit: &Submit,
        print: Fingerprint,
        (caller, wish, is_other): (usize, usize, bool),
    ) {
        let Some(task) = self.load(gateway, id) else { return };
        let phase = task.state.phase.name();
        let answer = match judge(earlier, phase, submit, print) {
            Verdict::Replay => {
                self.cover(if phase.is_final() { Covered::ReplayOfFinished } else { Covered::ReplayJoined });
                Answer::Task { id, is_other }
            }
            Verdict::Retry => {
                self.cover(Covered::RetriedByCaller);
                let not_before = self.clock(gateway);
                let deadline_at = not_before + Span::from_secs(10);
                self.apply(gateway, id, Event::Redrive { not_before, deadline_at }, Then::Nothing, 0);
                Answer::Task { id, is_other }
            }
            Verdict::InFlight => {
                self.cover(Covered::InFlightRefused);
                Answer::Refused
            }
            Verdict::Reused => {
                self.cover(Covered::KeyConflict);
                Answer::Reused { is_other }
            }
        };
        self.answer(gateway, caller, wish, answer);
    }

    pub(crate) fn answer(&mut self, gateway: usize, caller: usize, wish: usize, answer: Answer) {
        self.log(format_args!("g{gateway} answers c{caller} wish {wish}: {}", answer.as_str()));
        self.send(|| Happening::Answered { caller, wish, answer });
    }
}
