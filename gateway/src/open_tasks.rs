//! What this gateway keeps in memory of open tasks: copies to spare a read, the times at which each is due, who may
//! claim which, and which wait for which agent. All of it can be lost: the store has the truth.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reach_core::task::{Phase, Task};
use reach_schemas::call::Waiting;
use reach_schemas::{AgentId, FencingToken, PhaseName, Protocol, TaskId, Timestamp};
use tokio::sync::Notify;

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
    parked: BTreeMap<AgentId, BTreeSet<Rank>>,
    parked_for: HashMap<TaskId, Vec<AgentId>>,
    bells: HashMap<AgentId, Arc<Notify>>,
    census: Census,
}

/// How many there are of which kind.
#[derive(Debug, Clone, Default)]
pub struct Census {
    /// In which phase.
    pub phases: BTreeMap<PhaseName, u64>,
    /// Waiting for an agent.
    pub waiting: Waiting,
}

impl Census {
    fn add(&mut self, task: &Task) {
        *self.phases.entry(task.state.phase.name()).or_default() += 1;
        if let Some(waiting) = self.waits(task) {
            *waiting += 1;
        }
    }

    fn take(&mut self, task: &Task) {
        if let Some(count) = self.phases.get_mut(&task.state.phase.name()) {
            *count = count.saturating_sub(1);
        }
        if let Some(waiting) = self.waits(task) {
            *waiting = waiting.saturating_sub(1);
        }
    }

    /// Among whom the task waits for an agent, if it does.
    fn waits(&mut self, task: &Task) -> Option<&mut u64> {
        let tier = task.state.plan.as_ref().map(|plan| plan.tier);
        (task.state.phase.name() == PhaseName::Submitted).then(|| self.waiting.of(tier))
    }
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
        Phase::Delivered(_)
        | Phase::Accepted(_)
        | Phase::Completed { .. }
        | Phase::Failed(_)
        | Phase::Cancelled
        | Phase::Expired(_)
        | Phase::DeadLettered(_) => Vec::new(),
    }
}

fn unlist(index: &mut BTreeMap<AgentId, BTreeSet<Rank>>, agents: &[AgentId], rank: Rank) {
    for agent in agents {
        if let Some(ranks) = index.get_mut(agent) {
            ranks.remove(&rank);
            if ranks.is_empty() {
                index.remove(agent);
            }
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
        inner.reschedule(id, due_at);
        inner.unpark(id, rank(task));
        let old = inner.claimable_by.remove(&id).unwrap_or_default();
        unlist(&mut inner.claimable, &old, rank(task));
        for agent in &claimants {
            inner.claimable.entry(agent.clone()).or_default().insert(rank(task));
            if let Some(bell) = inner.bells.get(agent) {
                bell.notify_waiters();
            }
        }
        if !claimants.is_empty() {
            inner.claimable_by.insert(id, claimants);
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

    /// Has a deferred task looked at as soon as one of these agents has room.
    pub fn park(&self, task: &Task, agents: Vec<AgentId>) {
        let mut inner = self.lock();
        inner.unpark(task.id(), rank(task));
        for agent in &agents {
            inner.parked.entry(agent.clone()).or_default().insert(rank(task));
        }
        inner.parked_for.insert(task.id(), agents);
    }

    /// An agent has room for so many: the best of the tasks that wait for it are due now.
    pub fn unpark_for(&self, agent: &AgentId, room: usize, now: Timestamp) {
        let mut inner = self.lock();
        let ranks: Vec<Rank> = inner.parked.get(agent).into_iter().flatten().take(room).copied().collect();
        for rank in &ranks {
            inner.unpark(rank.1, *rank);
            inner.reschedule(rank.1, Some(now));
        }
        drop(inner);
        if !ranks.is_empty() {
            self.due.notify_one();
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
        self.lock().census.clone()
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

    fn unpark(&mut self, id: TaskId, rank: Rank) {
        if let Some(agents) = self.parked_for.remove(&id) {
            unlist(&mut self.parked, &agents, rank);
        }
    }
}
