//! What an operator sees at a glance: how well tasks reach their agents, and how everything is now.

use reach_core::access::Grant;
use reach_core::evaluation::{AttemptCounts, Buckets, TaskCounts, WINDOW};
use reach_core::fleet;
use reach_schemas::call::{AgentFigures, Latency, Nothing, Overview, TaskFigures};
use reach_schemas::{AgentId, CapabilityName, ErrorCode, PhaseName, Span, Timestamp};

use crate::gateway::Gateway;
use crate::open_tasks;
use crate::outbox::ToldCounts;
use crate::spans::Counts;
use crate::store::OutboxCounts;
use crate::store::committer::Batches;

impl Gateway {
    /// The figures of the last 15 minutes, and how everything is now.
    #[must_use]
    pub fn overview(&self, _: Grant, _: &Nothing) -> Overview {
        let now = self.now();
        let census = self.open.census();
        let breakers_open = {
            let fleet = self.fleet().census(now);
            fleet.breakers_open + fleet.breakers_half_open
        };
        let agents = self.agent_figures();
        let evaluation = self.metrics.evaluation();
        let refused = evaluation.recent_refusals(now).into_iter();
        Overview {
            at: now,
            up_for: self.clock.up_for(),
            window: WINDOW,
            total: evaluation.figures(now),
            ended_per_second: evaluation.ended_per_second(now),
            open: census.phases.into_iter().filter(|(_, count)| *count > 0).collect(),
            waiting: census.waiting,
            before_people: census.before_people as u64,
            breakers_open,
            agents,
            capabilities: evaluation.capability_figures(now),
            refused: refused.map(|(code, count)| (code.name().to_owned(), count)).collect(),
            latest_refusals: evaluation.latest_refusals().cloned().collect(),
        }
    }

    fn agent_figures(&self) -> Vec<AgentFigures> {
        let now = self.now();
        let mut figures = self.metrics.evaluation().agent_figures(now);
        let fleet = self.fleet();
        let of_node = |node: &fleet::Node| {
            let agent_id = node.card.agent_id.clone();
            let (total, capabilities) = figures.remove(&agent_id).unwrap_or_default();
            AgentFigures {
                state: node.state(now),
                in_flight: fleet.in_flight(&agent_id),
                max_concurrency: node.card.max_concurrency,
                queue: self.open.claimable_count(&agent_id) as u64,
                total,
                capabilities,
                breakers: node.breakers(now),
                agent_id,
            }
        };
        fleet.nodes().map(of_node).collect()
    }
}

/// Everything that is measured, as it is now: what a monitoring system takes away at one look.
#[derive(Debug)]
pub struct Snapshot {
    /// When it was taken.
    pub at: Timestamp,
    /// How long the gateway has been running.
    pub up_for: Span,
    /// The rates of the window.
    pub figures: TaskFigures,
    /// The rate of each agent in the window.
    pub agent_success_rates: Vec<(AgentId, f64)>,
    /// Tasks, by capability.
    pub tasks: Vec<TasksOf>,
    /// Attempts, by agent and capability.
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
    /// How long they took, in microseconds.
    pub target: Buckets,
}

impl Snapshot {
    /// The times of the window, each with its name.
    #[must_use]
    pub const fn latencies(&self) -> [(&'static str, Option<Latency>); 3] {
        [("router", self.figures.router), ("target", self.figures.target), ("task", self.figures.whole)]
    }
}

impl Gateway {
    /// Everything that is measured. What is locked is locked only to be copied.
    #[must_use]
    pub async fn snapshot(&self, _: Grant) -> Snapshot {
        let webhooks_kept = self.store.outbox_counts().await.ok();
        let now = self.now();
        let open = self.open.census();
        let fleet = self.fleet().census(now);
        let evaluation = self.metrics.evaluation();
        let tasks = evaluation.capabilities().map(|(capability, tasks)| TasksOf {
            capability: capability.cloned(),
            counts: tasks.total,
            outcomes: tasks.outcomes.iter().map(|(outcome, count)| (*outcome, *count)).collect(),
            router: tasks.router.total().clone(),
            whole: tasks.whole.total().clone(),
        });
        let attempts = evaluation.pairs().map(|(label, attempts)| AttemptsOf {
            label: label.cloned(),
            counts: attempts.total,
            target: attempts.target.total().clone(),
        });
        Snapshot {
            at: now,
            up_for: self.clock.up_for(),
            figures: evaluation.figures(now),
            agent_success_rates: evaluation.agent_success_rates(now).into_iter().collect(),
            tasks: tasks.collect(),
            attempts: attempts.collect(),
            refusals: evaluation.refusals().iter().map(|(code, count)| (*code, *count)).collect(),
            open,
            fleet,
            batches: self.committer.batches(),
            webhooks_told: self.outbox.told.counts(),
            webhooks_kept,
            store_waiting: self.committer.waiting(),
            waiters: self.waiters.len(),
            connections: self.metrics.connections(),
            sessions: self.sessions.len(),
            spans: self.spans.counts(),
            resident_bytes: crate::metrics::resident_bytes(),
        }
    }
}
