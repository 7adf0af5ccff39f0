//! What must never be, looked at in every commit, every route and every execution; and what must be at the end.

use std::collections::BTreeMap;

use reach_core::bulkhead::Seat;
use reach_core::retry::Turn;
use reach_core::task::event::Trace;
use reach_core::task::{Assignment, Event, Phase, State, Task};
use reach_schemas::error::{REACH_FALLBACK, REACH_OK, Retry};
use reach_schemas::{
    AgentId, CapabilityName, Effect, ErrorCode, Failure, FallbackStep, FencingToken, IdempotencyKey, PhaseName,
    Protocol, Span, TaskId, Timestamp,
};

use crate::coverage::Covered;
use crate::reports::result;
use crate::setup::SHARES;
use crate::world::{Life, World};

/// How long a step may be on its way into the store.
const COMMIT: Span = Span::from_ms(5);

/// What the checks remember of a task.
#[derive(Debug, Default, Clone, Copy)]
struct Past {
    /// Grows with each redrive.
    generation: u32,
    /// Attempts of this generation and this step of the chain that were not given back.
    tries: u32,
}

/// A write that began at an agent.
#[derive(Debug)]
struct Execution {
    token: FencingToken,
    agent: usize,
    /// Whether the agent itself says that it failed and may be tried again.
    has_given_up: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Checks {
    pasts: BTreeMap<TaskId, Past>,
    generations: BTreeMap<(TaskId, FencingToken), u32>,
    writes: BTreeMap<(TaskId, u32, CapabilityName), Vec<Execution>>,
    keys: BTreeMap<(usize, IdempotencyKey), (TaskId, bool)>,
    results: BTreeMap<TaskId, String>,
    /// What each life of a gateway sent each agent: in which second, and whether as a retry.
    sent: BTreeMap<(Life, AgentId), Vec<(u64, bool)>>,
}

impl World {
    pub(crate) fn check_birth(&mut self, task: &Task) {
        let begun = u32::from(task.state.token.0 > 0);
        self.checks.pasts.insert(task.id(), Past { generation: 0, tries: begun });
        self.checks.generations.insert((task.id(), task.state.token), 0);
        self.check_state(task);
    }

    /// Looks at a step that stands now.
    pub(crate) fn check_step(&mut self, before: &Task, next: &Task, event: &Event) {
        let (was, is) = (&before.state, &next.state);
        let name = self.name(next.id());
        if was.phase.name().is_final() {
            let may = matches!(event, Event::Redrive { .. }) && was.phase.name() != PhaseName::Completed;
            if !may {
                self.fail(format!("t{name} left its final phase {} by {event:?}", was.phase.name().as_str()));
            }
        }
        let has_begun = is.token.0 == was.token.0 + 1;
        if is.token != was.token
            && !(has_begun && matches!(event, Event::Assign { .. } | Event::Claim { .. } | Event::Take { .. }))
        {
            self.fail(format!("t{name} went from token {} to {} by {event:?}", was.token.0, is.token.0));
        }
        if has_begun && self.now >= is.deadline_at + COMMIT {
            self.fail(format!("t{name} began an attempt after its deadline"));
        }
        self.check_who_spoke(was, event, name);
        self.check_chain(was, is, event, name);
        self.check_candour(next, name);
        self.count_tries(before, next, event, has_begun, name);
        self.check_state(next);
    }

    /// A chain that holds is not changed for another's, and a named agent is asked for what was asked first.
    fn check_chain(&mut self, was: &State, is: &State, event: &Event, name: usize) {
        if matches!(event, Event::Redrive { .. }) {
            return;
        }
        let chain = |state: &State| state.plan.as_ref().map(|plan| plan.fallback.clone());
        if was.chain_of.is_some() && (&was.chain_of, chain(was)) != (&is.chain_of, chain(is)) {
            self.fail(format!("t{name} lost the chain {:?} by {event:?}", chain(was)));
        }
        if was.chain_of.is_none() && is.chain_of.is_some() && was.token > was.redriven_after {
            self.cover(Covered::ChainFoundLate);
        }
        if let Event::Assign { assignment, .. } = event
            && was.chain_of.is_some()
            && was.fallbacks_taken == 0
            && Some(&assignment.plan.fallback) != chain(is).as_ref()
        {
            self.cover(Covered::ChainHeld);
        }
        let step = chain(is).and_then(|chain| chain.get(is.fallbacks_taken.checked_sub(1)?).cloned());
        if is.fallbacks_taken > was.fallbacks_taken && matches!(step, Some(FallbackStep::Agent(_))) {
            if is.target.capability != is.fallback_from {
                self.fail(format!("t{name} asks for {:?} in place of {:?}", is.target.capability, is.fallback_from));
            }
            if was.target.capability != is.target.capability {
                self.cover(Covered::FirstAskedAgain);
            }
        }
    }

    /// No end of a task invites its caller to send a write again that may have happened.
    fn check_candour(&mut self, task: &Task, name: usize) {
        let Some(failure) = task.state.phase.failure().filter(|failure| failure.retry() == Retry::Later) else {
            return;
        };
        let generation = self.checks.pasts.get(&task.id()).map_or(0, |past| past.generation);
        let mut writes = self.checks.writes.iter().filter(|((id, of, _), _)| (*id, *of) == (task.id(), generation));
        if writes.any(|(_, writes)| writes.iter().any(|write| !write.has_given_up)) {
            self.fail(format!("t{name} ended as {}, though its write has begun", failure.code.name()));
        }
    }

    /// Only the live attempt's word counts.
    fn check_who_spoke(&mut self, was: &reach_core::task::State, event: &Event, name: usize) {
        let token = match event {
            Event::Complete { token, .. }
            | Event::Fail { token, .. }
            | Event::Release { token }
            | Event::Poison { token, .. }
            | Event::Preempt { token, .. }
            | Event::Accept { token }
            | Event::Delivered { token }
            | Event::Progress { token, .. }
            | Event::Person { token, .. }
            | Event::Renew { token } => *token,
            Event::Assign { .. }
            | Event::Offer { .. }
            | Event::Defer { .. }
            | Event::GiveUp { .. }
            | Event::Claim { .. }
            | Event::Take { .. }
            | Event::Cancel
            | Event::Due
            | Event::Redrive { .. } => return,
        };
        if matches!(event, Event::Person { .. }) {
            let taken = was.phase.human_lease().flatten().map(|_| was.token);
            if taken != Some(token) {
                self.fail(format!("t{name} took {event:?} while #{taken:?} was with a person"));
            }
            return;
        }
        let live = was.live_attempt().map(|attempt| attempt.token);
        if live != Some(token) {
            self.fail(format!("t{name} took {event:?} while the live attempt was {live:?}"));
        }
    }

    fn count_tries(&mut self, before: &Task, next: &Task, event: &Event, has_begun: bool, name: usize) {
        let (was, is) = (&before.state, &next.state);
        let is_take = matches!(event, Event::Take { .. });
        let past = self.checks.pasts.entry(next.id()).or_default();
        if matches!(event, Event::Redrive { .. }) {
            *past = Past { generation: past.generation + 1, tries: 0 };
        } else if is.fallbacks_taken != was.fallbacks_taken {
            past.tries = 0;
        } else if is_given_back(event) {
            past.tries = past.tries.saturating_sub(1);
        } else if has_begun && !is_take {
            past.tries += 1;
        }
        let past = *past;
        if has_begun {
            self.checks.generations.insert((next.id(), is.token), past.generation);
        }
        let most = next.birth.tries();
        if past.tries > most {
            self.fail(format!("t{name} was tried {} times, at most {most} are allowed", past.tries));
        }
    }

    /// Looks at a state by itself.
    fn check_state(&mut self, task: &Task) {
        let (state, name) = (&task.state, self.name(task.id()));
        let is_final = state.phase.name().is_final();
        let open: Vec<_> = state.attempts.iter().filter(|attempt| attempt.ended_at.is_none()).collect();
        let wrong = if task.due_at().is_none() != is_final {
            "is open without a timer, or finished with one"
        } else if task.due_at().is_some_and(|due_at| due_at > state.deadline_at) {
            "is looked at only after its deadline"
        } else if state.finished_at.is_some() != is_final {
            "does not know whether it is finished"
        } else if open.len() != usize::from(state.phase.is_live()) {
            "has another number of live attempts than its phase says"
        } else if open.iter().any(|attempt| attempt.token != state.token) {
            "has a live attempt that is not its newest"
        } else if state.attempts.windows(2).any(|pair| pair[0].token >= pair[1].token) {
            "has tokens that do not grow"
        } else if !self.has_its_own_result(task) {
            "has a result that is not from its last attempt"
        } else if !Self::is_by_its_person(task) {
            "is not with the person who has it, or not by whoever answered it"
        } else {
            return;
        };
        self.fail(format!("t{name} {wrong}: {state:?}"));
    }

    fn has_its_own_result(&self, task: &Task) -> bool {
        if task.state.human.is_some() {
            // A person's answer is looked at by itself.
            return true;
        }
        let (Phase::Completed { result: stored }, Some(last)) = (&task.state.phase, task.state.attempts.last()) else {
            return true;
        };
        // A fixed answer of its chain stands there where the last attempt failed, or came back unbegun and nobody was there.
        let step = task.state.fallbacks_taken.checked_sub(1);
        let step = step.and_then(|at| task.state.plan.as_ref()?.fallback.get(at));
        let is_fixed = step.is_some_and(|step| match step {
            FallbackStep::Static(result) => result == stored,
            FallbackStep::Instruction(text) => stored.get().contains(text),
            FallbackStep::Capability(_) | FallbackStep::Agent(_) | FallbackStep::Human(_) => false,
        });
        is_fixed || stored == &result(self.agent_at[&last.agent_id], last.token)
    }

    /// Nothing is sent through an open breaker, and a half-open one lets one through at a time.
    pub(crate) fn check_breaker(&mut self, gateway: usize, seat: Seat, to: &Assignment, now: Timestamp) {
        let Some(node) = self.gateways[gateway].fleet.node(&to.agent_id) else { return };
        let state = node.view(0, now).breakers.get(&to.capability).cloned().unwrap_or_default();
        let name = (to.agent_id.clone(), to.capability.clone());
        match state.as_str() {
            "open" => {
                self.fail(format!("g{gateway} routed {} to {} through an open breaker", to.capability, to.agent_id))
            }
            "half_open" => {
                let trial = (seat, now + to.plan.attempt_timeout);
                match self.gateways[gateway].trials.insert(name, trial) {
                    Some((_, until)) if now < until => {
                        self.fail(format!("g{gateway} sent {} a second trial while one is out", to.agent_id));
                    }
                    Some(_) => self.cover(Covered::TrialLost),
                    None => {}
                }
            }
            _ => {}
        }
    }

    /// Retries are a share of the first tries.
    pub(crate) fn check_budget(&mut self, gateway: usize, turn: Turn, to: &Assignment, now: Timestamp) {
        let is_retry = match turn {
            Turn::First => false,
            Turn::Retry if to.protocol != Protocol::Queue => true,
            Turn::Retry | Turn::Returned | Turn::Orphan => return,
        };
        let (life, second) = (self.life(gateway), now.as_ms() / 1000);
        let sent = self.checks.sent.entry((life, to.agent_id.clone())).or_default();
        sent.push((second, is_retry));
        let count = |retries: bool, secs: u64| {
            sent.iter().filter(|(at, is_retry)| *is_retry == retries && at + secs > second).count()
        };
        // The first tries that earned a retry may be up to 10 s older than it is.
        let (retries, firsts) = (count(true, 10), count(false, 20));
        let share = SHARES.agent;
        if retries > share.free as usize + firsts / share.firsts_per_retry as usize {
            self.fail(format!("g{gateway} sent {} {retries} retries in 10 s beside {firsts} first tries", to.agent_id));
        }
    }

    /// A write begins at an agent.
    pub(crate) fn check_write(&mut self, task: TaskId, token: FencingToken, agent: usize, name: &CapabilityName) {
        let generation = self.checks.generations.get(&(task, token)).copied().unwrap_or_default();
        let writes = self.checks.writes.entry((task, generation, name.clone())).or_default();
        let earlier = writes.iter().find(|write| !write.has_given_up).map(|write| (write.token.0, write.agent));
        let is_first = writes.is_empty();
        writes.push(Execution { token, agent, has_given_up: false });
        if let Some((earlier, first)) = earlier {
            let short = self.name(task);
            self.fail(format!(
                "the write {name} of t{short} began at a{agent} (#{}) after a{first} (#{earlier})",
                token.0
            ));
        } else if !is_first {
            self.cover(Covered::WriteTriedAgain);
        }
    }

    /// An agent says of its own accord that its attempt failed and may be tried again.
    pub(crate) fn note_given_up(&mut self, task: TaskId, token: FencingToken) {
        let ours = self.checks.writes.iter_mut().filter(|((id, ..), _)| *id == task);
        for write in ours.flat_map(|(_, writes)| writes).filter(|write| write.token == token) {
            write.has_given_up = true;
        }
    }

    /// One key, one task; and of two requests under it, only one has it.
    pub(crate) fn check_key(&mut self, caller: usize, key: &IdempotencyKey, id: TaskId, is_other: bool) {
        let first = *self.checks.keys.entry((caller, key.clone())).or_insert((id, is_other));
        if first != (id, is_other) {
            self.fail(format!("the key {key} of c{caller} led to two tasks, or two requests"));
        }
    }

    /// A caller sees the same result whenever it looks.
    pub(crate) fn check_result(&mut self, task: &Task) {
        if let Phase::Completed { result } = &task.state.phase {
            let first = self.checks.results.entry(task.id()).or_insert_with(|| result.get().to_owned());
            if first != result.get() {
                let what = format!("a caller saw two results: {first} and {}", result.get());
                self.fail(what);
            }
        }
    }

    /// After the storm: every task has ended, what was asked in fine weather has been done, and what was taken is home.
    pub(crate) fn check_the_end(&mut self) {
        let open: Vec<TaskId> = self.store.open().map(|task| task.id()).collect();
        if let Some(id) = open.first() {
            let (name, state) = (self.name(*id), format!("{:?}", self.store.tasks[id].state.phase));
            self.fail(format!("{} tasks never ended, the first is t{name}: {state}", open.len()));
        }
        for caller in 0..self.callers.len() {
            for wish in 0..self.callers[caller].wishes.len() {
                self.check_wish(caller, wish);
            }
        }
        for gateway in 0..self.gateways.len() {
            if !self.recounts && self.gateways[gateway].fleet.out() != (0, 0) {
                let out = self.gateways[gateway].fleet.out();
                self.fail(format!("g{gateway} has {out:?} seats and permits out, without crash or recount"));
            }
            let now = self.clock(gateway) + Span::from_secs(1);
            self.gateways[gateway].fleet.recount([], now);
            let out = self.gateways[gateway].fleet.out();
            if out != (0, 0) {
                self.fail(format!("g{gateway} has {out:?} seats and permits out after a recount of nothing"));
            }
        }
    }

    fn check_wish(&mut self, caller: usize, wish: usize) {
        let it = &self.callers[caller].wishes[wish];
        if !it.is_in_fine_weather {
            return;
        }
        let task = it.task.and_then(|id| self.store.tasks.get(&id));
        let outcome = task.map(|task| task.view().outcome.unwrap_or_default());
        // Where others are not to be tried, an agent that two gateways filled is stood in for by the chain.
        let is_done = [Some(REACH_OK), Some(REACH_FALLBACK)].contains(&outcome.as_deref());
        if !is_done {
            let asked = it.submit.capability.clone();
            let why = task.map(|task| format!("{:?} {:?}", task.state.phase, task.state.attempts));
            self.fail(format!("in fine weather c{caller} asked for {asked:?} and got {outcome:?}: {why:?}"));
        }
    }
}

/// Whether an attempt ends so that it counts as no try.
fn is_given_back(event: &Event) -> bool {
    let is_full = |failure: &Failure, trace| trace == Trace::NotStarted && failure.code == ErrorCode::Overloaded;
    matches!(event, Event::Release { .. } | Event::Preempt { .. })
        || matches!(event, Event::Fail { failure, trace, .. } if is_full(failure, *trace))
}

/// Whether a capability does something that must not be done twice.
pub(crate) fn is_write(effect: Effect) -> bool {
    !effect.is_repeatable()
}
