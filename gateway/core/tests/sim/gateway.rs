//! What a gateway does with tasks: routes them, commits each step, and only then has effects. It may
//! die between any two of these.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reach_core::access::Caller;
use reach_core::breaker::Change;
use reach_core::bulkhead::Seat;
use reach_core::fleet::{Ask, Fleet, Offering, Route, Unroutable};
use reach_core::retry::Turn;
use reach_core::task::{Effects, EndedAttempt, Event, Phase, Refusal, Task, step};
use reach_schemas::{
    AgentId, CapabilityName, FencingToken, Mode, PhaseName, Protocol, Reason, Span, TaskId, Timestamp,
};

use crate::coverage::{Covered, of_end, of_event};
use crate::world::{Happening, Life, World};

/// How often a step is tried again when another commit was first.
const CONFLICTS_MAX: u32 = 8;

#[derive(Default)]
pub(crate) struct Gateway {
    pub(crate) is_up: bool,
    /// Grows with each crash.
    pub(crate) life: u32,
    /// How far its clock is ahead.
    pub(crate) ahead: Span,
    pub(crate) fleet: Fleet,
    /// Open tasks as it saw them last; another gateway may have moved on.
    pub(crate) cache: BTreeMap<TaskId, Arc<Task>>,
    pub(crate) dead: BTreeSet<AgentId>,
    /// Trials that this gateway's breakers have out, and until when.
    pub(crate) trials: BTreeMap<(AgentId, CapabilityName), (Seat, Timestamp)>,
    pub(crate) sweeps: u32,
    /// Attempts that were out when it came back.
    pub(crate) orphans: BTreeMap<TaskId, FencingToken>,
}

/// A step on its way into the store.
pub(crate) struct Commit {
    before: Arc<Task>,
    next: Arc<Task>,
    event: Event,
    effects: Effects,
    then: Then,
    tries: u32,
}

/// What follows from a step beside its effects.
#[derive(Debug, Clone)]
pub(crate) enum Then {
    Nothing,
    /// It was routed: what was taken for it goes back if it comes to nothing.
    Routed(Option<(Seat, AgentId, CapabilityName)>),
    /// It was claimed: the agent gets it.
    Claimed(usize),
    /// It was taken: the person has it.
    Taken(usize),
}

/// One effect.
pub(crate) enum Fx {
    Ended(EndedAttempt),
    Wake,
    Offer(AgentId),
    Stop(AgentId, FencingToken),
    Deliver,
}

impl World {
    pub(crate) fn clock(&self, gateway: usize) -> Timestamp {
        self.now + self.gateways[gateway].ahead
    }

    pub(crate) fn life(&self, gateway: usize) -> Life {
        (gateway, self.gateways[gateway].life)
    }

    pub(crate) fn is_living(&self, life: Life) -> bool {
        self.gateways[life.0].is_up && self.gateways[life.0].life == life.1
    }

    pub(crate) fn load(&self, gateway: usize, id: TaskId) -> Option<Arc<Task>> {
        self.gateways[gateway].cache.get(&id).or_else(|| self.store.tasks.get(&id)).cloned()
    }

    /// Keeps a task in mind, and looks at it when it is due.
    pub(crate) fn put(&mut self, gateway: usize, task: &Arc<Task>) {
        let Some(due_at) = task.due_at() else {
            self.gateways[gateway].cache.remove(&task.id());
            return;
        };
        self.gateways[gateway].cache.insert(task.id(), Arc::clone(task));
        let ms = due_at.since(self.clock(gateway)).as_ms();
        let life = self.life(gateway);
        self.after(ms, Happening::Wake(life, task.id()));
    }

    fn caller_of(&self, gateway: usize, task: &Task) -> Caller {
        let fleet = &self.gateways[gateway].fleet;
        task.birth.submit.from_agent.as_ref().map_or(Caller::OPERATOR, |agent| fleet.caller(agent))
    }

    /// Asks the gateway's router. What comes of it as an event, and what was taken for it.
    pub(crate) fn route(&mut self, gateway: usize, task: &Task) -> Result<(Event, Then), Unroutable> {
        let (now, caller) = (self.clock(gateway), self.caller_of(gateway, task));
        let seat = Seat { task_id: task.id(), token: FencingToken(task.state.token.0 + 1) };
        let is_orphan = self.gateways[gateway].orphans.get(&task.id()) == Some(&task.state.token);
        let turn = task.state.turn(is_orphan);
        let ask = Ask {
            caller: &caller,
            target: &task.state.target,
            params: task.birth.submit.params.as_ref(),
            tried: task.state.tried().collect(),
            attempt: task.state.next_attempt(),
            turn,
            yields: None,
            attempt_timeout: task.birth.submit.attempt_timeout,
            seat,
        };
        let fleet = &mut self.gateways[gateway].fleet;
        match task.mode() {
            Mode::Direct => {
                let Route { assignment, decision } = fleet.route(&ask, now, &mut self.rng)?;
                self.check_breaker(gateway, seat, &assignment, now);
                self.check_budget(gateway, turn, &assignment, now);
                if turn == Turn::Orphan {
                    self.cover(Covered::OrphanSentAgain);
                }
                let taken = (seat, assignment.agent_id.clone(), assignment.capability.clone());
                Ok((Event::Assign { assignment, decision }, Then::Routed(Some(taken))))
            }
            mode @ (Mode::Queue | Mode::Broadcast) => {
                let Offering { to, plan, decision } = fleet.offer_to_all(&ask, mode, now, &mut self.rng)?;
                Ok((Event::Offer { to, plan, decision }, Then::Routed(None)))
            }
        }
    }

    pub(crate) fn abandon(&mut self, gateway: usize, then: Then) {
        let Then::Routed(Some((seat, agent, capability))) = then else { return };
        let now = self.clock(gateway);
        let it = &mut self.gateways[gateway];
        it.fleet.abandon(seat, &agent, &capability, now, &mut self.rng);
        it.trials.retain(|_, (trial, _)| *trial != seat);
        self.cover(Covered::RouteAbandoned);
    }

    /// Has something happen to a task: load, step, commit, then effects.
    pub(crate) fn apply(&mut self, gateway: usize, id: TaskId, event: Event, then: Then, tries: u32) {
        let Some(task) = self.load(gateway, id) else { return };
        let now = self.clock(gateway);
        match step(&task, event.clone(), now, &mut self.rng) {
            Ok(step) => {
                let next =
                    Arc::new(Task { birth: Arc::clone(&task.birth), version: task.version + 1, state: step.state });
                let commit = Commit { before: task, next, event, effects: step.effects, then, tries };
                let (life, ms) = (self.life(gateway), self.between(0, 3));
                self.after(ms, Happening::Commit(life, Box::new(commit)));
            }
            Err(refusal) => {
                let is_current = self.store.tasks.get(&id).is_none_or(|stored| stored.version == task.version);
                if is_current || tries >= CONFLICTS_MAX {
                    self.refused(gateway, &task, &event, refusal);
                    self.abandon(gateway, then);
                    return;
                }
                self.gateways[gateway].cache.remove(&id);
                if let Then::Routed(_) = then {
                    self.abandon(gateway, then);
                    self.look_again(gateway, id);
                } else {
                    self.apply(gateway, id, event, then, tries + 1);
                }
            }
        }
    }

    fn refused(&mut self, gateway: usize, task: &Arc<Task>, event: &Event, refusal: Refusal) {
        let name = self.name(task.id());
        self.log(format_args!("g{gateway} t{name} refuses {:?}: {refusal}", of_event(event)));
        let is_report = matches!(event, Event::Complete { .. } | Event::Fail { .. } | Event::Accept { .. });
        match refusal {
            Refusal::StaleToken { .. } | Refusal::NotTaken if matches!(event, Event::Person { .. }) => {
                self.cover(Covered::HumanWasTooLate);
            }
            Refusal::StaleToken { .. } => self.cover(Covered::StaleTokenRefused),
            Refusal::WrongPhase { .. } if is_report => self.cover(Covered::LateAnswerRefused),
            Refusal::Already if is_report => self.cover(Covered::DoubledReportIgnored),
            Refusal::ClaimLost if matches!(event, Event::Take { .. }) => self.cover(Covered::HumanTakeLost),
            Refusal::ClaimLost => self.cover(Covered::ClaimLost),
            Refusal::NotOffered if self.clock(gateway) >= task.state.deadline_at => {
                self.cover(Covered::ClaimAfterDeadlineRefused);
            }
            Refusal::WrongPhase { .. } | Refusal::NotTaken | Refusal::NotOffered | Refusal::Already => {}
            Refusal::NotDue => self.put(gateway, task),
        }
    }

    pub(crate) fn commit(&mut self, life: Life, commit: Commit) {
        let gateway = life.0;
        if !self.is_living(life) {
            self.cover(Covered::CrashBeforeCommit);
            return;
        }
        let Commit { before, next, event, effects, then, tries } = commit;
        let id = next.id();
        if !self.store.commit(Arc::clone(&next)) {
            self.cover(Covered::CommitConflict);
            self.gateways[gateway].cache.remove(&id);
            if let Then::Routed(_) = then {
                self.abandon(gateway, then);
                self.look_again(gateway, id);
            } else if tries < CONFLICTS_MAX {
                self.apply(gateway, id, event, then, tries + 1);
            }
            return;
        }
        let (name, phase) = (self.name(id), next.state.phase.name().as_str());
        let path = of_event(&event);
        self.log(format_args!("g{gateway} t{name} v{} {path:?}: {phase} #{}", next.version, next.state.token.0));
        self.cover_step(&before, &next, &event);
        self.check_step(&before, &next, &event);
        match then {
            Then::Claimed(agent) => self.hand_over(gateway, agent, &next),
            Then::Taken(person) => self.person_has(person, &next),
            Then::Nothing | Then::Routed(_) => {}
        }
        self.follow(gateway, &next, effects, false);
        self.may_die(life);
    }

    /// Right after a commit is the worst moment to die: not all of what follows from it has happened.
    pub(crate) fn may_die(&mut self, life: Life) {
        if self.mishap(self.weather.gateway_crash) {
            let ms = self.between(0, 3);
            self.after(ms, Happening::Crash(life));
        }
    }

    fn cover_step(&mut self, before: &Task, next: &Task, event: &Event) {
        self.cover(of_event(event));
        self.cover_people(before, next, event);
        self.look_at_weights(event);
        if let Some(end) = of_end(next.state.phase.name()) {
            self.cover(end);
        }
        let (was, is) = (&before.state, &next.state);
        let offered = matches!(&was.phase, Phase::Submitted { offered, .. } if !offered.is_empty());
        let is_parked = was.phase.name() == PhaseName::Routed
            && was.live_attempt().is_some_and(|attempt| attempt.protocol == Protocol::Queue);
        if is.phase.failure().is_some_and(|failure| failure.code == reach_schemas::ErrorCode::OutcomeUnknown) {
            self.cover(Covered::OutcomeUnknown);
        }
        if is.fallbacks_taken > was.fallbacks_taken {
            self.cover(Covered::FallbackTaken);
        }
        if is.phase.name() == PhaseName::Completed && is.fallback_from.is_some() {
            self.cover(Covered::FallbackAnswered);
        }
        let path = match (event, was.phase.name()) {
            (Event::Claim { .. }, PhaseName::Submitted) if next.mode() == Mode::Broadcast => {
                Some(Covered::BroadcastOneWinner)
            }
            (Event::Cancel, PhaseName::Submitted) if offered => Some(Covered::CancelledWhileOffered),
            (Event::Cancel, PhaseName::Submitted) => Some(Covered::CancelledWhileWaiting),
            (Event::Cancel, PhaseName::Routed) => Some(Covered::CancelledWhileRouted),
            (Event::Cancel, PhaseName::Accepted) => Some(Covered::CancelledWhileAccepted),
            (Event::Due, PhaseName::Routed) if is_parked => Some(Covered::NothingPulled),
            (Event::Due, PhaseName::Routed) => Some(Covered::AcceptTimedOut),
            (Event::Due, PhaseName::Delivered | PhaseName::Accepted)
                if was.phase.hold().is_some_and(|hold| hold.lease_until == Some(hold.until())) =>
            {
                Some(Covered::LeaseExpired)
            }
            (Event::Fail { failure, .. }, _) if failure.code == reach_schemas::ErrorCode::AgentLost => {
                Some(if is_parked { Covered::ParkedTakenBack } else { Covered::AgentDeadTakenBack })
            }
            _ => None,
        };
        if let Some(path) = path {
            self.cover(path);
        }
    }

    fn look_again(&mut self, gateway: usize, id: TaskId) {
        let life = self.life(gateway);
        self.after(1, Happening::Wake(life, id));
    }

    /// What follows from a commit, one thing after another: the gateway may die before each.
    pub(crate) fn follow(&mut self, gateway: usize, task: &Arc<Task>, effects: Effects, is_born: bool) {
        self.put(gateway, task);
        let Effects { deliver, offer, withdraw: _, stop, began: _, ended, changed } = effects;
        let mut all: Vec<Fx> = ended.map(Fx::Ended).into_iter().collect();
        all.extend(changed.then_some(Fx::Wake));
        all.extend(offer.into_iter().map(|offered| Fx::Offer(offered.agent_id)));
        all.extend(stop.map(|(agent, token)| Fx::Stop(agent, token)));
        all.extend(deliver.then_some(Fx::Deliver));
        let (life, mut ms) = (self.life(gateway), 0);
        for fx in all {
            ms += self.between(0, 2);
            self.after(ms, Happening::Effect(life, Arc::clone(task), fx, is_born));
        }
    }

    pub(crate) fn effect(&mut self, life: Life, task: &Arc<Task>, fx: Fx, is_born: bool) {
        let gateway = life.0;
        if !self.is_living(life) {
            if is_born {
                self.cover(Covered::CrashAfterInsert);
            }
            match fx {
                Fx::Deliver => self.cover(Covered::CrashAfterAssignBeforeDelivery),
                Fx::Wake if task.state.phase.name() == PhaseName::Completed => {
                    self.cover(Covered::CrashAfterCompleteBeforeWake);
                }
                Fx::Stop(..) => self.cover(Covered::CrashBeforeStop),
                Fx::Wake | Fx::Ended(_) | Fx::Offer(_) => {}
            }
            return;
        }
        match fx {
            Fx::Ended(ended) => self.attempt_ended(gateway, task.id(), &ended),
            Fx::Wake => self.tell_caller(task),
            Fx::Offer(agent) => {
                let (agent, task) = (self.agent_at[&agent], task.id());
                self.send(|| Happening::Offered { agent, gateway, task });
            }
            Fx::Stop(agent, token) => {
                let (agent, task) = (self.agent_at[&agent], task.id());
                self.send(|| Happening::Stop { agent, task, token });
            }
            Fx::Deliver => self.deliver(life, task),
        }
    }

    fn attempt_ended(&mut self, gateway: usize, task_id: TaskId, ended: &EndedAttempt) {
        let (now, seat) = (self.clock(gateway), Seat { task_id, token: ended.token });
        let it = &mut self.gateways[gateway];
        let change = it.fleet.ended(seat, ended, now, &mut self.rng);
        it.trials.retain(|_, (trial, _)| *trial != seat);
        match change {
            Some(Change::Opened { .. }) => self.cover(Covered::BreakerOpened),
            Some(Change::Closed) => self.cover(Covered::TrialPassed),
            None => {}
        }
    }

    /// A task may be due: routed if it waits, timed out if its attempt gave no sign.
    pub(crate) fn wake(&mut self, life: Life, id: TaskId) {
        let gateway = life.0;
        if !self.is_living(life) {
            return;
        }
        let Some(task) = self.load(gateway, id) else { return };
        let now = self.clock(gateway);
        let Some(due_at) = task.due_at().filter(|due_at| *due_at <= now) else { return };
        let is_waiting = matches!(&task.state.phase, Phase::Submitted { offered, .. } if offered.is_empty());
        if !is_waiting || due_at >= task.state.deadline_at || now >= task.state.deadline_at {
            self.apply(gateway, id, Event::Due, Then::Nothing, 0);
            return;
        }
        match self.route(gateway, &task) {
            Ok((event, then)) => self.apply(gateway, id, event, then, 0),
            Err(Unroutable::NotNow { until, wanted, decision, .. }) => {
                if decision.rejected.contains_key(Reason::RetryBudget.as_str()) {
                    self.cover(Covered::RetryHeldBack);
                }
                let until = until.max(now + Span::from_ms(100));
                self.apply(gateway, id, Event::Defer { until, wanted: Some(*wanted), decision }, Then::Routed(None), 0);
            }
            Err(Unroutable::Never { failure, decision }) => {
                self.apply(gateway, id, Event::GiveUp { failure, decision }, Then::Routed(None), 0);
            }
        }
    }
}
