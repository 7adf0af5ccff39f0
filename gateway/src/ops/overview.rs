//! What an operator sees at a glance: how well tasks reach their agents, and how everything is now.

use reach_core::access::Grant;
use reach_core::evaluation::WINDOW;
use reach_core::fleet;
use reach_schemas::call::{AgentFigures, Nothing, Overview};

use crate::gateway::Gateway;

impl Gateway {
    /// The figures of the last 15 minutes, and how everything is now.
    #[must_use]
    pub fn overview(&self, _: Grant, _: &Nothing) -> Overview {
        let now = self.now();
        let census = self.open.census();
        let fleet = self.fleet_census(now);
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
            breakers_open: fleet.breakers_open + fleet.breakers_half_open,
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
