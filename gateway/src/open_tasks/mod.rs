//! What this gateway keeps in memory of open tasks: copies to spare a read, the times at which each is due, who may
//! claim which, and which wait for which agent. All of it can be lost: the store has the truth.

mod census;
mod parking;
mod places;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reach_core::admission::{Class, Waiting};
use reach_core::task::{Phase, Task};
use reach_schemas::{AgentId, FencingToken, Protocol, TaskId, Tier, Timestamp};
use tokio::sync::Notify;

pub use census::Census;
pub use parking::{Parking, class_of};
pub use places::Reserved;

/// The order in which work is given out: high priority first, then the older task.
type Rank = (Reverse<u8>, TaskId);

/// What is kept in memory of open tasks.
#[derive(Default)]
pub struct OpenTasks {
    inner: Mutex<Inner>,
    /// Rings when something is due earlier than before.
    pub due: Notify,
}

#[derive(Default)]
struct Inner {
    tasks: HashMap<TaskId, Arc<Task>>,
    due: BTreeSet<(Timestamp, TaskId)>,
    due_at: HashMap<TaskId, Timestamp>,
    /// Who may claim what.
    claimable: BTreeMap<AgentId, BTreeSet<Rank>>,
    claimable_by: HashMap<TaskId, Vec<AgentId>>,
    /// Which deferred tasks a change at which agent may help.
    parked: BTreeMap<(AgentId, Tier), BTreeSet<Rank>>,
    parked_for: HashMap<TaskId, (Vec<AgentId>, Tier, bool)>,
    /// All that waits for an agent, parked or to be claimed.
    waiting: Waiting,
    classes: HashMap<TaskId, Class>,
    /// What waits for a person, or is with one.
    before_people: BTreeSet<Rank>,
    /// Tasks that have a place here and are being stored just now.
    reserved: HashSet<TaskId>,
    bells: HashMap<AgentId, Arc<Notify>>,
    census: Census,
    /// Attempts that were out when this gateway started: their deliveries died with its last life.
    orphans: HashMap<TaskId, FencingToken>,
}

fn is_before_people(task: &Task) -> bool {
    task.state.phase.human_lease().is_some()
}

fn rank(task: &Task) -> Rank {
    (Reverse(task.birth.priority()), task.id())
}

/// Who may claim the task as it is.
fn claimants(task: &Task) -> Vec<AgentId> {
    match &task.state.phase {
        Phase::Submitted { offered, .. } => offered.iter().map(|offer| offer.agent_id.clone()).collect(),
        Phase::Routed(_) => task
            .live_attempt()
            .filter(|attempt| attempt.protocol == Protocol::Queue)
            .map(|attempt| vec![attempt.agent_id.clone()])
            .unwrap_or_default(),
        Phase::Human { .. }
        | Phase::Delivered(_)
        | Phase::Accepted(_)
        | Phase::Completed { .. }
        | Phase::Failed(_)
        | Phase::Cancelled
        | Phase::Expired(_)
        | Phase::DeadLettered(_) => Vec::new(),
    }
}

fn unlist<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Rank>>, key: &K, rank: Rank) {
    if let Some(ranks) = index.get_mut(key) {
        ranks.remove(&rank);
        if ranks.is_empty() {
            index.remove(key);
        }
    }
}

impl OpenTasks {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The copy of a task.
    #[must_use]
    pub fn get(&self, id: TaskId) -> Option<Arc<Task>> {
        self.lock().tasks.get(&id).cloned()
    }

    /// Forgets a copy that turned out to be old.
    pub fn forget(&self, id: TaskId) {
        self.lock().drop_copy(id);
    }

    /// Takes a task as it was committed. An older version than the one that is kept changes nothing.
    pub fn put(&self, task: &Arc<Task>) {
        let id = task.id();
        let claimants = claimants(task);
        let mut inner = self.lock();
        if inner.tasks.get(&id).is_some_and(|kept| kept.version >= task.version) {
            return;
        }
        let due_at = task.due_at();
        inner.reserved.remove(&id);
        inner.reschedule(id, due_at);
        inner.unpark(id, rank(task));
        inner.note_turn(task, &claimants);
        if is_before_people(task) {
            inner.before_people.insert(rank(task));
        } else {
            inner.before_people.remove(&rank(task));
        }
        let old = inner.claimable_by.remove(&id).unwrap_or_default();
        for agent in &old {
            unlist(&mut inner.claimable, agent, rank(task));
        }
        for agent in &claimants {
            inner.claimable.entry(agent.clone()).or_default().insert(rank(task));
            if let Some(bell) = inner.bells.get(agent) {
                bell.notify_waiters();
            }
        }
        if !claimants.is_empty() {
            inner.claimable_by.insert(id, claimants);
        }
        if inner.orphans.get(&id).is_some_and(|token| *token != task.state.token || due_at.is_none()) {
            inner.orphans.remove(&id);
        }
        inner.drop_copy(id);
        if due_at.is_some() {
            inner.census.add(task);
            inner.tasks.insert(id, Arc::clone(task));
        }
        let is_first = due_at.is_some_and(|at| inner.due.first().is_some_and(|(first, _)| *first >= at));
        drop(inner);
        if is_first {
            self.due.notify_one();
        }
    }

    /// Notes that the live attempt of a task was begun before this gateway's start.
    pub fn orphan(&self, task: &Task) {
        if let Some(attempt) = task.live_attempt() {
            self.lock().orphans.insert(task.id(), attempt.token);
        }
    }

    /// Whether the newest attempt of a task is one that this gateway's start found.
    #[must_use]
    pub fn is_orphan(&self, task: &Task) -> bool {
        self.lock().orphans.get(&task.id()).is_some_and(|token| *token == task.state.token)
    }

    /// Has a task looked at at a time, though nothing about it was committed.
    pub fn schedule(&self, id: TaskId, at: Timestamp) {
        self.lock().reschedule(id, Some(at));
        self.due.notify_one();
    }

    /// Takes out what is due by now, at most so many, and says when the next is.
    pub fn take_due(&self, now: Timestamp, limit: usize) -> (Vec<TaskId>, Option<Timestamp>) {
        let mut inner = self.lock();
        let mut taken = Vec::new();
        while taken.len() < limit {
            match inner.due.first().copied() {
                Some((at, id)) if at <= now => {
                    inner.due.pop_first();
                    inner.due_at.remove(&id);
                    taken.push(id);
                }
                Some(_) | None => break,
            }
        }
        let next = inner.due.first().map(|(at, _)| *at);
        (taken, next)
    }

    /// What an agent may claim, best first.
    #[must_use]
    pub fn claimable(&self, agent: &AgentId, limit: usize) -> Vec<TaskId> {
        let inner = self.lock();
        inner.claimable.get(agent).into_iter().flatten().take(limit).map(|(_, id)| *id).collect()
    }

    /// How many an agent may claim.
    #[must_use]
    pub fn claimable_count(&self, agent: &AgentId) -> usize {
        self.lock().claimable.get(agent).map_or(0, BTreeSet::len)
    }

    /// Rings whenever there is something new for the agent to claim.
    #[must_use]
    pub fn bell(&self, agent: &AgentId) -> Arc<Notify> {
        Arc::clone(self.lock().bells.entry(agent.clone()).or_default())
    }

    /// Has an agent that waits for work look again: it has room.
    pub fn ring(&self, agent: &AgentId) {
        if let Some(bell) = self.lock().bells.get(agent) {
            bell.notify_waiters();
        }
    }

    /// The attempts that an agent has, by task.
    #[must_use]
    pub fn held_by(&self, agent: &AgentId) -> Vec<(TaskId, FencingToken)> {
        let inner = self.lock();
        let held = inner.tasks.values().filter_map(|task| {
            let attempt = task.live_attempt()?;
            (&attempt.agent_id == agent).then_some((task.id(), attempt.token))
        });
        held.collect()
    }

    /// How many there are of which kind.
    #[must_use]
    pub fn census(&self) -> Census {
        let inner = self.lock();
        Census { before_people: inner.before_people.len(), ..inner.census.clone() }
    }

    /// Those that wait for a person, or are with one, best first.
    #[must_use]
    pub fn before_people(&self) -> Vec<TaskId> {
        self.lock().before_people.iter().map(|(_, id)| *id).collect()
    }

    /// The last moment that an operator has spread tasks until which fit and have not gone yet.
    pub fn spread_until(&self, now: Timestamp, fits: impl Fn(&Task) -> bool) -> Option<Timestamp> {
        let inner = self.lock();
        let spread = inner.tasks.values().filter_map(|task| {
            let is_fresh = task.state.redriven_at.is_some() && task.state.redriven_after == task.state.token;
            match &task.state.phase {
                Phase::Submitted { not_before, .. } if is_fresh && *not_before > now && fits(task) => Some(*not_before),
                Phase::Submitted { .. }
                | Phase::Human { .. }
                | Phase::Routed(_)
                | Phase::Delivered(_)
                | Phase::Accepted(_)
                | Phase::Completed { .. }
                | Phase::Failed(_)
                | Phase::Cancelled
                | Phase::Expired(_)
                | Phase::DeadLettered(_) => None,
            }
        });
        spread.max()
    }

    /// All copies.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Task>> {
        self.lock().tasks.values().cloned().collect()
    }
}

impl Inner {
    fn drop_copy(&mut self, id: TaskId) {
        if let Some(old) = self.tasks.remove(&id) {
            self.census.take(&old);
        }
    }

    fn reschedule(&mut self, id: TaskId, at: Option<Timestamp>) {
        if let Some(old) = self.due_at.remove(&id) {
            self.due.remove(&(old, id));
        }
        if let Some(at) = at {
            self.due.insert((at, id));
            self.due_at.insert(id, at);
        }
    }
}
