//! The one place where a task changes: a state and an event in, a new state and the effects out, or a refusal.

use fastrand::Rng;
use reach_schemas::{
    AgentId, CapabilityName, ErrorCode, FencingToken, PhaseName, Protocol, RawJson, Span, TakeEnding, Timestamp,
};

use super::ending::{self, Ending};
use super::event::{Assignment, Event, Offered, Trace};
use super::human;
use super::phase::{Hold, Phase};
use super::{ATTEMPTS_MAX, Attempt, Plan, State, Task};

/// How long a connected agent may take to say "I have it".
pub const ACCEPT_TIMEOUT: Span = Span::from_secs(5);

/// What became of a task, and what must be done about it once that is durable.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The new state.
    pub state: State,
    /// What to do after the commit.
    pub effects: Effects,
}

/// What to do after a commit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Effects {
    /// Deliver the live attempt.
    pub deliver: bool,
    /// Tell these agents that the task may be claimed.
    pub offer: Vec<Offered>,
    /// Tell these that it may no longer.
    pub withdraw: Vec<AgentId>,
    /// Tell the agent of this attempt to stop.
    pub stop: Option<(AgentId, FencingToken)>,
    /// Whether this step began an attempt.
    pub began: bool,
    /// The attempt that this step ended, for seats, breakers and history.
    pub ended: Option<EndedAttempt>,
    /// Whether waiters and subscribers have something to see.
    pub changed: bool,
}

/// An attempt that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedAttempt {
    /// Who had it.
    pub agent_id: AgentId,
    /// For what.
    pub capability: CapabilityName,
    /// Which.
    pub token: FencingToken,
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub took: Span,
    /// Whether it ended because it gave no answer in time.
    pub is_timeout: bool,
    /// For how long the agent asked to be left alone.
    pub retry_after: Option<Span>,
}

/// Why an event changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another attempt has taken over.
    #[error("the fencing token is stale: the newest is {}", newest.0)]
    StaleToken {
        /// The task's newest token.
        newest: FencingToken,
    },
    /// It cannot be done in this phase.
    #[error("the task is {}", phase.as_str())]
    WrongPhase {
        /// The task's phase.
        phase: PhaseName,
    },
    /// Another agent has claimed it.
    #[error("somebody else has claimed the task")]
    ClaimLost,
    /// It was not offered to this agent, or its deadline has passed since.
    #[error("the task was not offered to this agent, or no longer is")]
    NotOffered,
    /// No person has it: nobody took it, it was put back, or the lease ran out.
    #[error("nobody has taken the task, or the lease on it ran out; take it first")]
    NotTaken,
    /// It is so already; nothing is wrong.
    #[error("it is so already")]
    Already,
    /// Its time has not come.
    #[error("the task is not due yet")]
    NotDue,
}

/// Takes a task one step on.
///
/// # Errors
/// The event does not fit the task as it is: an older token, another phase, somebody else's claim.
pub fn step(task: &Task, event: Event, now: Timestamp, rng: &mut Rng) -> Result<Step, Refusal> {
    let mut next = Next { task, state: task.state.clone(), effects: Effects::default(), now };
    match event {
        Event::Assign { assignment, decision } => {
            next.state.note(decision);
            next.assign(assignment)?;
        }
        Event::Offer { to, plan, decision } => {
            next.state.note(decision);
            next.offer(to, plan)?;
        }
        Event::Defer { until, wanted, decision } => {
            next.state.note(decision);
            super::wait::defer(&mut next, until, wanted)?;
        }
        Event::GiveUp { failure, decision } => {
            next.waiting()?;
            next.state.note(decision);
            ending::nobody(&mut next, failure);
        }
        Event::Claim { agent_id, lease } => next.claim(&agent_id, lease)?,
        Event::Delivered { token } => next.delivered(token)?,
        Event::Accept { token } => next.accept(token)?,
        Event::Progress { token, progress } => next.progress(token, progress)?,
        Event::Renew { token } => next.renew(token)?,
        Event::Complete { token, result, token_count } => {
            next.complete(token, result)?;
            next.state.token_count = token_count;
        }
        Event::Fail { token, failure, trace } => {
            next.live(token)?;
            // It may be at it still, for nothing.
            if (trace, failure.code) == (Trace::Unknown, ErrorCode::Timeout) {
                next.stop();
            }
            ending::failed(&mut next, failure, trace, rng);
        }
        Event::Release { token } => {
            next.live(token)?;
            ending::released(&mut next, rng);
        }
        Event::Poison { token, failure } => {
            next.live(token)?;
            ending::poisoned(&mut next, failure);
        }
        Event::Preempt { token, priority } => {
            next.live(token)?;
            super::preempt::give_way(&mut next, priority, rng)?;
        }
        Event::Take { by, lease } => next.take(by, lease)?,
        Event::Person { token, word } => next.hear(token, word)?,
        Event::Cancel => next.cancel()?,
        Event::Due => ending::due(&mut next, rng)?,
        Event::Redrive { not_before, deadline_at } => next.redrive(not_before, deadline_at)?,
    }
    Ok(Step { state: next.state, effects: next.effects })
}

/// A state in the making.
pub(super) struct Next<'a> {
    pub(super) task: &'a Task,
    pub(super) state: State,
    pub(super) effects: Effects,
    pub(super) now: Timestamp,
}

impl Next<'_> {
    pub(super) fn wrong_phase(&self) -> Refusal {
        Refusal::WrongPhase { phase: self.state.phase.name() }
    }

    /// Holds only while the task waits for the dispatcher.
    pub(super) fn waiting(&self) -> Result<(), Refusal> {
        match &self.state.phase {
            Phase::Submitted { .. } => Ok(()),
            Phase::Human { .. }
            | Phase::Routed(_)
            | Phase::Delivered(_)
            | Phase::Accepted(_)
            | Phase::Completed { .. }
            | Phase::Failed(_)
            | Phase::Cancelled
            | Phase::Expired(_)
            | Phase::DeadLettered(_) => Err(self.wrong_phase()),
        }
    }

    /// Holds only while the attempt with this token is live.
    pub(super) fn live(&self, token: FencingToken) -> Result<Hold, Refusal> {
        if token != self.state.token {
            return Err(Refusal::StaleToken { newest: self.state.token });
        }
        self.state.phase.hold().copied().ok_or_else(|| self.wrong_phase())
    }

    /// The hold that a new sign of life gives.
    pub(super) fn run_until(&self) -> Timestamp {
        let timeout = self.state.plan.as_ref().map_or(Span::ZERO, |plan| plan.attempt_timeout);
        (self.now + timeout).min(self.state.deadline_at)
    }

    pub(super) fn begin(&mut self, agent_id: AgentId, capability: CapabilityName, protocol: Protocol) {
        self.state.token = FencingToken(self.state.token.0 + 1);
        self.state.tries_used += 1;
        self.state.waits = None;
        self.hold_chain(&capability);
        if self.state.attempts.len() >= ATTEMPTS_MAX {
            self.state.attempts.remove(0);
        }
        self.state.attempts.push(Attempt {
            token: self.state.token,
            agent_id,
            capability,
            protocol,
            started_at: self.now,
            delivered_at: None,
            accepted_at: None,
            ended_at: None,
            failure: None,
        });
        (self.state.progress, self.state.token_count) = (None, None);
        (self.effects.began, self.effects.changed) = (true, true);
    }

    pub(super) fn attempt(&mut self) -> Option<&mut Attempt> {
        self.state.attempts.last_mut()
    }

    fn assign(&mut self, assignment: Assignment) -> Result<(), Refusal> {
        self.waiting()?;
        let Assignment { agent_id, capability, protocol, plan } = assignment;
        self.lay_down(plan);
        self.begin(agent_id.clone(), capability.clone(), protocol);
        let run_until = match protocol {
            Protocol::Http | Protocol::Process | Protocol::Mcp => self.run_until(),
            Protocol::Websocket => (self.now + ACCEPT_TIMEOUT).min(self.run_until()),
            // It lies there until the agent pulls it; only the deadline ends that.
            Protocol::Queue => self.state.deadline_at,
        };
        self.state.phase = Phase::Routed(Hold { run_until, lease_until: None, lease_for: None });
        if protocol == Protocol::Queue {
            self.effects.offer.push(Offered { agent_id, capability });
        } else {
            self.effects.deliver = true;
        }
        Ok(())
    }

    fn offer(&mut self, to: Vec<Offered>, plan: Plan) -> Result<(), Refusal> {
        self.waiting()?;
        self.lay_down(plan);
        self.effects.offer.clone_from(&to);
        self.state.phase = Phase::Submitted { not_before: self.now, offered: to };
        Ok(())
    }

    fn delivered(&mut self, token: FencingToken) -> Result<(), Refusal> {
        let hold = self.live(token)?;
        if !matches!(self.state.phase, Phase::Routed(_)) {
            return Err(Refusal::Already);
        }
        let now = self.now;
        if let Some(attempt) = self.attempt() {
            attempt.delivered_at = Some(now);
        }
        self.state.phase = Phase::Delivered(hold);
        self.effects.changed = true;
        Ok(())
    }

    fn accept(&mut self, token: FencingToken) -> Result<(), Refusal> {
        let hold = self.live(token)?;
        if matches!(self.state.phase, Phase::Accepted(_)) {
            return Err(Refusal::Already);
        }
        let now = self.now;
        if let Some(attempt) = self.attempt() {
            attempt.delivered_at.get_or_insert(now);
            attempt.accepted_at = Some(now);
        }
        self.state.phase = Phase::Accepted(self.renewed(hold, true));
        self.effects.changed = true;
        Ok(())
    }

    /// The hold after a sign of life. A heartbeat renews the lease only; a word about the work renews both.
    fn renewed(&self, hold: Hold, has_moved: bool) -> Hold {
        let lease_until = hold.lease_for.map(|lease| (self.now + lease).min(self.state.deadline_at));
        let run_until = if has_moved { self.run_until() } else { hold.run_until };
        Hold { run_until, lease_until, lease_for: hold.lease_for }
    }

    fn progress(&mut self, token: FencingToken, progress: Option<RawJson>) -> Result<(), Refusal> {
        let hold = self.live(token)?;
        self.hold(self.renewed(hold, true));
        if progress.is_some() {
            self.state.progress = progress;
            self.effects.changed = true;
        }
        Ok(())
    }

    fn renew(&mut self, token: FencingToken) -> Result<(), Refusal> {
        let hold = self.live(token)?;
        let Some(lease) = hold.lease_for else { return Err(Refusal::Already) };
        // A lease of which more than half is left is not worth a commit.
        let left = hold.lease_until.map_or(Span::ZERO, |until| until.since(self.now));
        if left.times(2) > lease {
            return Err(Refusal::Already);
        }
        self.hold(self.renewed(hold, false));
        Ok(())
    }

    fn hold(&mut self, hold: Hold) {
        match &mut self.state.phase {
            Phase::Routed(held) | Phase::Delivered(held) | Phase::Accepted(held) => *held = hold,
            Phase::Submitted { .. }
            | Phase::Human { .. }
            | Phase::Completed { .. }
            | Phase::Failed(_)
            | Phase::Cancelled
            | Phase::Expired(_)
            | Phase::DeadLettered(_) => {}
        }
    }

    fn complete(&mut self, token: FencingToken, result: RawJson) -> Result<(), Refusal> {
        if let (true, Phase::Completed { result: first }) = (token == self.state.token, &self.state.phase) {
            return Err(if *first == result { Refusal::Already } else { self.wrong_phase() });
        }
        self.live(token)?;
        ending::end_attempt(self, Ending::Succeeded, None);
        self.finish(Phase::Completed { result });
        Ok(())
    }

    fn cancel(&mut self) -> Result<(), Refusal> {
        match &self.state.phase {
            Phase::Cancelled => return Err(Refusal::Already),
            Phase::Completed { .. } | Phase::Failed(_) | Phase::Expired(_) | Phase::DeadLettered(_) => {
                return Err(self.wrong_phase());
            }
            Phase::Submitted { offered, .. } => {
                self.effects.withdraw = offered.iter().map(|offer| offer.agent_id.clone()).collect();
            }
            Phase::Human { .. } => human::end_take(self, TakeEnding::TaskEnded),
            Phase::Routed(_) | Phase::Delivered(_) | Phase::Accepted(_) => {
                ending::end_attempt(self, Ending::Neutral, None);
                self.stop();
            }
        }
        self.finish(Phase::Cancelled);
        Ok(())
    }

    /// Has the agent of the newest attempt told to stop.
    pub(super) fn stop(&mut self) {
        self.effects.stop = self.state.attempts.last().map(|attempt| (attempt.agent_id.clone(), attempt.token));
    }

    fn redrive(&mut self, not_before: Timestamp, deadline_at: Timestamp) -> Result<(), Refusal> {
        match self.state.phase {
            Phase::Failed(_) | Phase::Expired(_) | Phase::DeadLettered(_) | Phase::Cancelled => {}
            Phase::Submitted { .. }
            | Phase::Human { .. }
            | Phase::Routed(_)
            | Phase::Delivered(_)
            | Phase::Accepted(_)
            | Phase::Completed { .. } => return Err(self.wrong_phase()),
        }
        let fresh = Task::new((*self.task.birth).clone(), Span::ZERO).state;
        self.state.phase = Phase::Submitted { not_before: not_before.max(self.now), offered: Vec::new() };
        self.state.target = fresh.target;
        (self.state.tries_used, self.state.fallbacks_taken) = (0, 0);
        (self.state.begun_after, self.state.redriven_after) = (self.state.token, self.state.token);
        (self.state.chain_of, self.state.fallback_from) = (None, None);
        (self.state.progress, self.state.finished_at) = (None, None);
        self.state.unsure.clear();
        (self.state.human, self.state.waits) = (None, None);
        (self.state.deadline_at, self.state.redriven_at) = (deadline_at, Some(self.now));
        self.effects.changed = true;
        Ok(())
    }

    /// Makes the task final.
    pub(super) fn finish(&mut self, phase: Phase) {
        self.state.phase = ending::as_it_is_known(phase, &self.state.unsure);
        self.state.finished_at = Some(self.now);
        self.effects.changed = true;
    }
}
