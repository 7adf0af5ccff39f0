//! Everything that is measured, copied for a monitoring system. Those who work do not notice: what is copied is copied piece
//! by piece, each lock let go between two pieces, on a thread on which nobody works, and for one who looks at a time.

use std::sync::Arc;

use reach_core::access::Grant;
use reach_core::evaluation::{AttemptCounts, Buckets, TaskCounts};
use reach_core::fleet;
use reach_schemas::call::{Latency, TaskFigures};
use reach_schemas::{AgentId, CapabilityName, ErrorCode, Failure, PhaseName, Span, Timestamp};
use tokio::sync::OwnedMutexGuard;

use crate::gateway::Gateway;
use crate::open_tasks;
use crate::outbox::ToldCounts;
use crate::spans::Counts;
use crate::store::OutboxCounts;
use crate::store::committer::Batches;

/// How many agents, pairs or capabilities are looked at under one lock.
const PIECE: usize = 128;

/// Everything that is measured, as it is now: what a monitoring system takes away at one look. While it is there, nobody
/// else is given one.
#[derive(Debug)]
pub struct Snapshot {
    /// When it was taken.
    pub at: Timestamp,
    /// How long the gateway has been running.
    pub up_for: Span,
    /// The rates of the window.
    pub figures: TaskFigures,
    /// Tasks, by capability.
    pub tasks: Vec<TasksOf>,
    /// Attempts, by agent and capability, in their order; last, those that are not told apart.
    pub attempts: Vec<AttemptsOf>,
    /// Refusals, by reason.
    pub refusals: Vec<(ErrorCode, u64)>,
    /// Open tasks.
    pub open: open_tasks::Census,
    /// Agents, breakers, seats.
    pub fleet: fleet::Census,
    /// What the store took.
    pub batches: Batches,
    /// How webhooks were told since the start.
    pub webhooks_told: ToldCounts,
    /// Webhooks that have not reached their receivers. None: the store cannot be read just now.
    pub webhooks_kept: Option<OutboxCounts>,
    /// How many commands wait for the store.
    pub store_waiting: usize,
    /// How many tasks are waited for.
    pub waiters: usize,
    /// How many connections are open.
    pub connections: u64,
    /// How many of them an agent could be pushed work over.
    pub sessions: usize,
    /// What became of the spans of sampled traces.
    pub spans: Counts,
    /// How much memory the process has, in bytes.
    pub resident_bytes: Option<u64>,
    _turn: OwnedMutexGuard<()>,
}

/// Tasks of one capability, since the start.
#[derive(Debug)]
pub struct TasksOf {
    /// Which. None: those that are not told apart.
    pub capability: Option<CapabilityName>,
    /// Their counts.
    pub counts: TaskCounts,
    /// How many ended how.
    pub outcomes: Vec<((PhaseName, &'static str), u64)>,
    /// How long the router took, in microseconds.
    pub router: Buckets,
    /// How long the tasks took, in microseconds.
    pub whole: Buckets,
}

/// Attempts of one agent at one capability, since the start.
#[derive(Debug)]
pub struct AttemptsOf {
    /// Which. None: those that are not told apart.
    pub label: Option<(AgentId, CapabilityName)>,
    /// Their counts.
    pub counts: AttemptCounts,
    /// Those of the window.
    pub recent: AttemptCounts,
    /// How long they took, in microseconds.
    pub target: Buckets,
}

impl AttemptsOf {
    fn agent(&self) -> Option<&AgentId> {
        self.label.as_ref().map(|(agent, _)| agent)
    }
}

impl Snapshot {
    /// The times of the window, each with its name.
    #[must_use]
    pub const fn latencies(&self) -> [(&'static str, Option<Latency>); 3] {
        [("router", self.figures.router), ("target", self.figures.target), ("task", self.figures.whole)]
    }

    /// The share of attempts that each agent that is told apart answered in the window, if there were any.
    pub fn agent_success_rates(&self) -> impl Iterator<Item = (&AgentId, f64)> {
        let of_agent = self.attempts.chunk_by(|one, next| one.agent() == next.agent());
        of_agent.filter_map(|of| {
            let counts = of.iter().fold(AttemptCounts::default(), |sum, of| sum.plus(&of.recent));
            Some((of.first()?.agent()?, counts.success_rate()?))
        })
    }
}

/// All that is seen in one look after the other, each at what comes after the last that was seen. Between two, whoever
/// waits for what is looked at has it.
fn in_pieces<T>(look: impl Fn(Option<&T>) -> Vec<T>, is_last: impl Fn(&T) -> bool) -> Vec<T> {
    let mut all = look(None);
    while let Some(last) = all.last().filter(|last| !is_last(last)) {
        std::thread::yield_now();
        let piece = look(Some(last));
        all.extend(piece);
    }
    all
}

impl Gateway {
    /// Everything that is measured. It is copied for one who looks at a time; others wait until it is dropped.
    ///
    /// # Errors
    /// The gateway is stopping, or copying failed.
    pub async fn snapshot(self: &Arc<Self>, _: Grant) -> Result<Snapshot, Failure> {
        let turn = self.metrics.turn().await;
        let webhooks_kept = self.store.outbox_counts().await.ok();
        let gateway = Arc::clone(self);
        let copied = tokio::task::spawn_blocking(move || gateway.copy(webhooks_kept, turn));
        copied.await.map_err(|_| Failure::new(ErrorCode::Internal, "the figures cannot be copied"))
    }

    fn copy(&self, webhooks_kept: Option<OutboxCounts>, turn: OwnedMutexGuard<()>) -> Snapshot {
        let now = self.now();
        let (figures, refusals) = {
            let evaluation = self.metrics.evaluation();
            (evaluation.figures(now), evaluation.refusals().iter().map(|(code, count)| (*code, *count)).collect())
        };
        Snapshot {
            at: now,
            up_for: self.clock.up_for(),
            figures,
            tasks: self.tasks_by_capability(),
            attempts: self.attempts_by_pair(now),
            refusals,
            open: self.open.census(),
            fleet: self.fleet_census(now),
            batches: self.committer.batches(),
            webhooks_told: self.outbox.told.counts(),
            webhooks_kept,
            store_waiting: self.committer.waiting(),
            waiters: self.waiters.len(),
            connections: self.metrics.connections(),
            sessions: self.sessions.len(),
            spans: self.spans.counts(),
            resident_bytes: crate::metrics::resident_bytes(),
            _turn: turn,
        }
    }

    fn tasks_by_capability(&self) -> Vec<TasksOf> {
        let look = |last: Option<&TasksOf>| {
            let evaluation = self.metrics.evaluation();
            let piece = evaluation.capabilities(last.and_then(|of| of.capability.as_ref())).take(PIECE);
            let copy = piece.map(|(capability, tasks)| TasksOf {
                capability: capability.cloned(),
                counts: tasks.total,
                outcomes: tasks.outcomes.iter().map(|(outcome, count)| (*outcome, *count)).collect(),
                router: tasks.router.total().clone(),
                whole: tasks.whole.total().clone(),
            });
            copy.collect()
        };
        in_pieces(look, |of| of.capability.is_none())
    }

    fn attempts_by_pair(&self, now: Timestamp) -> Vec<AttemptsOf> {
        let look = |last: Option<&AttemptsOf>| {
            let evaluation = self.metrics.evaluation();
            let piece = evaluation.pairs(last.and_then(|of| of.label.as_ref())).take(PIECE);
            let copy = piece.map(|(label, attempts)| AttemptsOf {
                label: label.cloned(),
                counts: attempts.total,
                recent: attempts.recent(now),
                target: attempts.target.total().clone(),
            });
            copy.collect()
        };
        in_pieces(look, |of| of.label.is_none())
    }

    /// Agents, breakers and seats, counted so many agents at a time.
    pub(super) fn fleet_census(&self, now: Timestamp) -> fleet::Census {
        let (mut census, mut last) = (fleet::Census::empty(), None);
        loop {
            last = self.fleet().count(&mut census, last.as_ref(), PIECE, now);
            if last.is_none() {
                return census;
            }
            std::thread::yield_now();
        }
    }
}
