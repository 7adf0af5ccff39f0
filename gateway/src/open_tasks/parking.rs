//! What waits for an agent: under whom it is parked, what it is counted under, and who goes first.

use std::collections::BTreeSet;
use std::sync::Arc;

use reach_core::admission::Class;
use reach_core::bulkhead::Place;
use reach_core::task::Task;
use reach_core::task::preempt::{self, victim};
use reach_schemas::{AgentId, CapabilityName, FencingToken, PhaseName, Span, TaskId, Tier, Timestamp};

use super::{Inner, OpenTasks, Rank, rank, unlist};

/// Whoever has waited so long for a seat goes before newcomers; until then a newcomer may take one that is just free,
/// for the sake of those who need not wait at all.
const PATIENCE: Span = Span::from_ms(100);
/// How many of those that wait at an agent are looked at to tell.
const LOOKED_AT: usize = 4;

/// What a deferred task waits for.
#[derive(Debug, Clone)]
pub struct Parking {
    /// A change at one of these may help.
    pub agents: Vec<AgentId>,
    /// Whether a free seat is all that it lacks.
    pub for_seat: bool,
    /// For what.
    pub capability: CapabilityName,
    /// In which tier.
    pub tier: Tier,
    /// How long that takes, as a rule.
    pub takes: Span,
}

/// What a task that waits is counted under: whose it is, or if an operator asks, whom it is meant for.
fn class(task: &Task, capability: CapabilityName, tier: Tier, first: &AgentId) -> Class {
    let from = task.birth.submit.from_agent.as_ref();
    Class { tier, capability, namespace: from.unwrap_or(first).namespace(), priority: task.birth.priority() }
}

/// What a task that would be parked so is counted under. None: it waits for nobody.
#[must_use]
pub fn class_of(task: &Task, parking: &Parking) -> Option<Class> {
    let first = parking.agents.first()?;
    Some(class(task, parking.capability.clone(), parking.tier, first))
}

impl OpenTasks {
    /// An attempt ended; `is_done` if it was answered.
    pub fn ended(&self, capability: &CapabilityName, is_done: bool, now: Timestamp) {
        self.lock().waiting.ended(capability, is_done, now);
    }

    /// Has a deferred task looked at as soon as one of these agents has room.
    pub fn park(&self, task: &Task, parking: Parking) {
        let class = class_of(task, &parking);
        let Parking { agents, for_seat, tier, capability: _, takes: _ } = parking;
        let mut inner = self.lock();
        inner.unpark(task.id(), rank(task));
        inner.class(task.id(), class);
        for agent in &agents {
            inner.parked.entry((agent.clone(), tier)).or_default().insert(rank(task));
        }
        inner.parked_for.insert(task.id(), (agents, tier, for_seat));
    }

    /// Whether others wait for a seat there that go before the task: work as quick as it, or quicker.
    #[must_use]
    pub fn is_queued_at(&self, place: &Place, task: &Task, now: Timestamp) -> bool {
        let (own, inner) = (rank(task), self.lock());
        if inner.parked.is_empty() {
            return false;
        }
        let lines = inner.parked.range((place.agent_id.clone(), Tier::Fast)..=(place.agent_id.clone(), place.tier));
        let ahead = lines.flat_map(|(_, ranks)| ranks.iter().take(LOOKED_AT).take_while(|rank| **rank < own));
        let mut for_seat = ahead.filter(|rank| inner.parked_for.get(&rank.1).is_some_and(|(_, _, for_seat)| *for_seat));
        for_seat.any(|rank| {
            let since = inner.tasks.get(&rank.1).map(|task| task.birth.created_at);
            since.is_some_and(|since| now.since(since) >= PATIENCE)
        })
    }

    /// Agents at which tasks wait.
    #[must_use]
    pub fn waited_for(&self) -> BTreeSet<AgentId> {
        self.lock().parked.keys().map(|(agent, _)| agent.clone()).collect()
    }

    /// The attempt at one of these agents that makes way for work of this priority, if one does.
    #[must_use]
    pub fn victim(&self, agents: &[AgentId], priority: u8) -> Option<(TaskId, FencingToken)> {
        if priority < preempt::GAP {
            return None;
        }
        let inner = self.lock();
        let at_them = |task: &&Arc<Task>| task.live_attempt().is_some_and(|attempt| agents.contains(&attempt.agent_id));
        victim(inner.tasks.values().filter(at_them).map(AsRef::as_ref), priority)
    }

    /// An agent has room for so many: the best of the tasks that wait for it are due now.
    pub fn unpark_for(&self, agent: &AgentId, room: usize, now: Timestamp) {
        self.unpark_those(agent, room, now, |_| true);
    }

    /// As [`Self::unpark_for`], for those that lack nothing but a seat.
    pub fn seat_free(&self, agent: &AgentId, room: usize, now: Timestamp) {
        self.unpark_those(agent, room, now, |for_seat| for_seat);
    }

    /// Of each tier the best, for they do not all need the same seats.
    fn unpark_those(&self, agent: &AgentId, room: usize, now: Timestamp, wanted: impl Fn(bool) -> bool) {
        let mut inner = self.lock();
        let is_wanted = |rank: &&Rank| inner.parked_for.get(&rank.1).is_some_and(|(_, _, for_seat)| wanted(*for_seat));
        let lines = inner.parked.range((agent.clone(), Tier::Fast)..=(agent.clone(), Tier::Long));
        let ranks: Vec<Rank> =
            lines.flat_map(|(_, ranks)| ranks.iter().filter(is_wanted).take(room)).copied().collect();
        for rank in &ranks {
            inner.unpark(rank.1, *rank);
            inner.reschedule(rank.1, Some(now));
        }
        drop(inner);
        if !ranks.is_empty() {
            self.due.notify_one();
        }
    }
}

/// Whether a task waits for an agent, and for no person.
fn is_deferred(task: &Task) -> bool {
    task.state.phase.name() == PhaseName::Submitted && task.state.phase.human_lease().is_none()
}

impl Inner {
    pub(super) fn unpark(&mut self, id: TaskId, rank: Rank) {
        if let Some((agents, tier, _)) = self.parked_for.remove(&id) {
            for agent in agents {
                unlist(&mut self.parked, &(agent, tier), rank);
            }
        }
    }

    /// Counts a task among those that wait, under this class; none: it does not wait.
    pub(super) fn class(&mut self, id: TaskId, class: Option<Class>) {
        if let Some(old) = self.classes.remove(&id) {
            self.waiting.leave(&old);
        }
        if let Some(class) = class {
            self.waiting.enter(&class);
            self.classes.insert(id, class);
        }
    }

    /// Counts a task that waits to be claimed among those that wait, and an attempt that has begun as a turn. One that waits
    /// for an agent goes on to be counted as it was, while the router looks at it too: what is counted and what waits never
    /// part.
    pub(super) fn note_turn(&mut self, task: &Task, claimants: &[AgentId]) {
        let plan = task.state.plan.as_ref();
        let waits = claimants.first().zip(plan).and_then(|(first, plan)| {
            let offered =
                task.state.phase.offered_to(first).or(task.state.attempts.last().map(|last| &last.capability));
            Some(class(task, offered?.clone(), plan.tier, first))
        });
        let was_working = |kept: &Arc<Task>| {
            kept.state.token == task.state.token && claimants.is_empty() && super::claimants(kept).is_empty()
        };
        let goes_on = self.tasks.get(&task.id()).is_some_and(was_working);
        if let Some(attempt) = task.live_attempt().filter(|_| claimants.is_empty() && !goes_on) {
            self.waiting.begun(&attempt.capability, attempt.delivered_at.unwrap_or(attempt.started_at));
        }
        if waits.is_some() || !is_deferred(task) {
            self.class(task.id(), waits);
        }
    }
}
