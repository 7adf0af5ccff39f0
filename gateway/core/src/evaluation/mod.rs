//! How well tasks reach their agents: counted from committed steps, over the last 15 minutes and since the start, for
//! the whole, for each capability, and for each capability of each agent. What each rate means is told in
//! [`reach_schemas::call::TaskFigures`].
//!
//! It decides nothing, and it may be lost: it starts anew with its gateway. Its room is bounded: so many capabilities
//! and pairs are told apart, the rest count as other; each keeps at most 90 slices of counts, and 15 slices of at most
//! 464 steps of times.

mod buckets;
mod counts;
mod latency;
mod series;
mod window;

use std::collections::{BTreeMap, VecDeque};

use reach_schemas::call::{AttemptFigures, CapabilityFigures, LatestRefusal, TaskFigures};
use reach_schemas::error::Fault;
use reach_schemas::{
    AgentId, CapabilityName, ErrorCode, FencingToken, Mode, PhaseName, Protocol, Span, Submit, Timestamp,
};

pub use self::buckets::Buckets;
pub use self::counts::{AttemptCounts, TaskCounts};
pub use self::latency::Latency;
use self::series::Series;
use self::window::Window;
use crate::task::ending::Ending;
use crate::task::{Effects, EndedAttempt, Phase, Task};

/// How far back rates and times look.
pub const WINDOW: Span = Span::from_mins(15);
/// How many capabilities are told apart.
pub const CAPABILITIES_MAX: usize = 256;
/// How many pairs of agent and capability are told apart.
pub const PAIRS_MAX: usize = 2048;
/// How many of the latest refusals are kept.
pub const REFUSALS_MAX: usize = 16;

/// The slices of counts: 90 of 10 s.
type Recent<T> = Window<T, 10_000, 90>;

/// The buckets of the time that choosing takes: 10 us to 100 ms.
const ROUTER_BOUNDS: &[u64] = &[10, 25, 50, 100, 250, 500, 1_000, 5_000, 25_000, 100_000];
/// The buckets of the time that agents and tasks take: 10 ms to 5 min, the tiers' promises among them.
const WORK_BOUNDS: &[u64] =
    &[10_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 15_000_000, 60_000_000, 300_000_000];

/// What is kept of tasks.
#[derive(Debug, Clone)]
pub struct Tasks {
    recent: Recent<TaskCounts>,
    /// Counts since the start.
    pub total: TaskCounts,
    /// How many ended how since the start, by phase and by the outcome's word.
    pub outcomes: BTreeMap<(PhaseName, &'static str), u64>,
    /// How long the gateway took to choose.
    pub router: Latency,
    /// How long agents took for an attempt.
    pub target: Latency,
    /// How long tasks took.
    pub whole: Latency,
}

/// What is kept of attempts.
#[derive(Debug, Clone)]
pub struct Attempts {
    recent: Recent<AttemptCounts>,
    /// Counts since the start.
    pub total: AttemptCounts,
    /// How long they took.
    pub target: Latency,
}

/// All that is counted.
#[derive(Debug, Clone)]
pub struct Evaluation {
    whole: Tasks,
    capabilities: Series<CapabilityName, Tasks>,
    pairs: Series<(AgentId, CapabilityName), Attempts>,
    refused: BTreeMap<ErrorCode, u64>,
    recently_refused: Recent<BTreeMap<ErrorCode, u64>>,
    latest_refusals: VecDeque<LatestRefusal>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            recent: Recent::default(),
            total: TaskCounts::default(),
            outcomes: BTreeMap::new(),
            router: Latency::new(ROUTER_BOUNDS),
            target: Latency::new(WORK_BOUNDS),
            whole: Latency::new(WORK_BOUNDS),
        }
    }
}

impl Default for Attempts {
    fn default() -> Self {
        Self { recent: Recent::default(), total: AttemptCounts::default(), target: Latency::new(WORK_BOUNDS) }
    }
}

impl Default for Evaluation {
    fn default() -> Self {
        Self {
            whole: Tasks::default(),
            capabilities: Series::new(CAPABILITIES_MAX),
            pairs: Series::new(PAIRS_MAX),
            refused: BTreeMap::new(),
            recently_refused: Recent::default(),
            latest_refusals: VecDeque::new(),
        }
    }
}

impl Evaluation {
    /// The router was asked, and took so long.
    pub fn routed(&mut self, capability: Option<&CapabilityName>, took_micros: u64, now: Timestamp) {
        self.of(capability, now, |tasks| tasks.router.record(took_micros, now));
    }

    /// A step of a task was committed: the task as it is since, and what followed. To be told of each step once.
    pub fn stepped(&mut self, task: &Task, effects: &Effects, now: Timestamp) {
        if effects.began && task.state.tries_used > 1 {
            self.count(first_asked(task), now, |counts| counts.retries += 1);
        }
        if let Some(ended) = &effects.ended {
            self.attempt_ended(task, ended, now);
        }
        if effects.changed && task.state.phase.name().is_final() {
            self.task_ended(task, effects.ended.as_ref(), now);
        }
    }

    /// A request was refused, and no task came of it.
    pub fn refused(&mut self, submit: &Submit, code: ErrorCode, now: Timestamp) {
        *self.refused.entry(code).or_default() += 1;
        *self.recently_refused.slice(now).entry(code).or_default() += 1;
        self.latest_refusals.truncate(REFUSALS_MAX - 1);
        self.latest_refusals.push_front(LatestRefusal {
            at: now,
            code,
            from_agent: submit.from_agent.clone(),
            to_agent: submit.to_agent.clone(),
            capability: submit.capability.clone(),
        });
        if code.fault() != Fault::Caller {
            self.whole.count(now, |counts| counts.refused += 1);
        }
    }

    fn attempt_ended(&mut self, task: &Task, ended: &EndedAttempt, now: Timestamp) {
        let counts = |counts: &mut AttemptCounts| match ended.ending {
            Ending::Succeeded | Ending::Answered => counts.answered += 1,
            Ending::Failed => counts.failed += 1,
            Ending::Neutral => counts.given_back += 1,
        };
        let micros = target_time(task, ended, now).as_ms().saturating_mul(1000);
        let pair = self.pairs.of(&(ended.agent_id.clone(), ended.capability.clone()), now);
        counts(pair.recent.slice(now));
        counts(&mut pair.total);
        if ended.ending != Ending::Neutral {
            pair.target.record(micros, now);
            self.of(first_asked(task), now, |tasks| tasks.target.record(micros, now));
        }
    }

    fn task_ended(&mut self, task: &Task, ended: Option<&EndedAttempt>, now: Timestamp) {
        let state = &task.state;
        let took = task.took().unwrap_or_default();
        let is_answered = ended.is_some_and(|ended| ended.ending.is_answered());
        let is_completed = matches!(state.phase, Phase::Completed { .. });
        let is_cancelled = matches!(state.phase, Phase::Cancelled);
        let promise = state.plan.as_ref().map_or(Span::ZERO, |plan| plan.attempt_timeout);
        let is_chosen = task.mode() == Mode::Direct && !state.attempts.is_empty() && !is_cancelled;
        let is_first = |ended: &EndedAttempt| {
            state.fallbacks_taken == 0 && ended.token == FencingToken(state.begun_after.0.saturating_add(1))
        };
        let outcome = (state.phase.name(), task.outcome().unwrap_or_default());
        let count = |counts: &mut TaskCounts| {
            counts.ended += 1;
            counts.cancelled += u64::from(is_cancelled);
            counts.answered += u64::from(is_answered);
            counts.completed += u64::from(is_completed);
            counts.timely += u64::from(is_completed && took <= promise);
            counts.routed += u64::from(is_chosen);
            counts.hits += u64::from(is_chosen && is_answered && ended.is_some_and(is_first));
            counts.fallbacks += u64::from(state.fallbacks_taken > 0);
        };
        self.of(first_asked(task), now, |tasks| {
            tasks.count(now, count);
            *tasks.outcomes.entry(outcome).or_default() += 1;
            if !is_cancelled {
                tasks.whole.record(took.as_ms().saturating_mul(1000), now);
            }
        });
    }

    fn count(&mut self, capability: Option<&CapabilityName>, now: Timestamp, count: impl Fn(&mut TaskCounts)) {
        self.of(capability, now, |tasks| tasks.count(now, &count));
    }

    /// Notes something about the whole, and about one capability.
    fn of(&mut self, capability: Option<&CapabilityName>, now: Timestamp, note: impl Fn(&mut Tasks)) {
        note(&mut self.whole);
        note(match capability {
            Some(capability) => self.capabilities.of(capability, now),
            None => self.capabilities.other_mut(),
        });
    }
}

impl Evaluation {
    /// The figures of all tasks.
    #[must_use]
    pub fn figures(&self, now: Timestamp) -> TaskFigures {
        self.whole.figures(now)
    }

    /// How many tasks ended in a second, over the last minute: five slices that are over, and the one that is not.
    #[must_use]
    pub fn ended_per_second(&self, now: Timestamp) -> f64 {
        let ended: u64 = self.whole.recent.last(6, now).map(|counts| counts.ended).sum();
        let passed_ms = 50_000 + now.as_ms() % 10_000;
        ended as f64 * 1e3 / passed_ms as f64
    }

    /// The figures of each capability of which something ended in the window.
    #[must_use]
    pub fn capability_figures(&self, now: Timestamp) -> Vec<CapabilityFigures> {
        let all = self.capabilities.iter().map(|(capability, tasks)| CapabilityFigures {
            capability: capability.cloned(),
            figures: tasks.figures(now),
        });
        let is_quiet = |figures: &TaskFigures| figures.asked + figures.cancelled == 0 && figures.target.is_none();
        all.filter(|one| !is_quiet(&one.figures)).collect()
    }

    /// The figures of each agent that is told apart, over all and by capability.
    #[must_use]
    pub fn agent_figures(
        &self,
        now: Timestamp,
    ) -> BTreeMap<AgentId, (AttemptFigures, BTreeMap<CapabilityName, AttemptFigures>)> {
        let mut by_agent: BTreeMap<&AgentId, Vec<(&CapabilityName, &Attempts)>> = BTreeMap::new();
        for (label, attempts) in self.pairs.iter() {
            if let Some((agent, capability)) = label {
                by_agent.entry(agent).or_default().push((capability, attempts));
            }
        }
        let figures = by_agent.into_iter().map(|(agent, offers)| {
            let each: Vec<_> =
                offers.iter().map(|(name, attempts)| ((*name).clone(), attempt_figures([*attempts], now))).collect();
            let total = match each.as_slice() {
                [(_, only)] => only.clone(),
                _ => attempt_figures(offers.iter().map(|(_, attempts)| *attempts), now),
            };
            (
                agent.clone(),
                (total, each.into_iter().filter(|(_, figures)| *figures != AttemptFigures::default()).collect()),
            )
        });
        figures.collect()
    }

    /// How many tasks ended in which phase since the start.
    #[must_use]
    pub fn ended(&self) -> BTreeMap<PhaseName, u64> {
        let mut ended = BTreeMap::new();
        for ((phase, _), count) in &self.whole.outcomes {
            *ended.entry(*phase).or_default() += count;
        }
        ended
    }

    /// All tasks, since the start.
    #[must_use]
    pub const fn whole(&self) -> &Tasks {
        &self.whole
    }

    /// Tasks by capability, since the start, of those after this one; last, without one, those that are not told apart. So
    /// they can be copied piece by piece.
    pub fn capabilities(
        &self,
        after: Option<&CapabilityName>,
    ) -> impl Iterator<Item = (Option<&CapabilityName>, &Tasks)> {
        self.capabilities.after(after)
    }

    /// Attempts by agent and capability, since the start, of those after this pair; last, without one, those that are not
    /// told apart. So they can be copied piece by piece.
    pub fn pairs(
        &self,
        after: Option<&(AgentId, CapabilityName)>,
    ) -> impl Iterator<Item = (Option<&(AgentId, CapabilityName)>, &Attempts)> {
        self.pairs.after(after)
    }

    /// How many requests were refused since the start, by reason.
    #[must_use]
    pub const fn refusals(&self) -> &BTreeMap<ErrorCode, u64> {
        &self.refused
    }

    /// How many were refused in the window, by reason.
    #[must_use]
    pub fn recent_refusals(&self, now: Timestamp) -> BTreeMap<ErrorCode, u64> {
        let mut sum = BTreeMap::new();
        for (code, count) in self.recently_refused.live(now).flatten() {
            *sum.entry(*code).or_default() += count;
        }
        sum
    }

    /// The latest refusals, newest first.
    pub fn latest_refusals(&self) -> impl Iterator<Item = &LatestRefusal> {
        self.latest_refusals.iter()
    }
}

impl Tasks {
    fn count(&mut self, now: Timestamp, count: impl Fn(&mut TaskCounts)) {
        count(self.recent.slice(now));
        count(&mut self.total);
    }

    fn figures(&self, now: Timestamp) -> TaskFigures {
        let counts = self.recent.live(now).fold(TaskCounts::default(), TaskCounts::add);
        TaskFigures {
            router: latency::figures([&self.router], now),
            target: latency::figures([&self.target], now),
            whole: latency::figures([&self.whole], now),
            ..counts.figures()
        }
    }
}

impl Attempts {
    /// Counts of the window.
    #[must_use]
    pub fn recent(&self, now: Timestamp) -> AttemptCounts {
        self.recent.live(now).fold(AttemptCounts::default(), AttemptCounts::plus)
    }
}

fn attempt_figures<'a>(of: impl IntoIterator<Item = &'a Attempts> + Clone, now: Timestamp) -> AttemptFigures {
    let slices = of.clone().into_iter().flat_map(|attempts| attempts.recent.live(now));
    let counts = slices.fold(AttemptCounts::default(), AttemptCounts::plus);
    let target = latency::figures(of.into_iter().map(|attempts| &attempts.target), now);
    AttemptFigures { target, ..counts.figures() }
}

/// The capability that the task's caller asked for, or that it was first routed to.
fn first_asked(task: &Task) -> Option<&CapabilityName> {
    let (state, submit) = (&task.state, &task.birth.submit);
    let first = || state.attempts.first().map(|attempt| &attempt.capability);
    submit.capability.as_ref().or(state.fallback_from.as_ref()).or_else(first)
}

/// How long the agent had the attempt: what lay there for it to pull was not yet its.
fn target_time(task: &Task, ended: &EndedAttempt, now: Timestamp) -> Span {
    let attempt = task.state.attempts.iter().rfind(|attempt| attempt.token == ended.token);
    let pulled_at =
        attempt.filter(|attempt| attempt.protocol == Protocol::Queue).and_then(|attempt| attempt.delivered_at);
    pulled_at.map_or(ended.took, |at| now.since(at))
}
