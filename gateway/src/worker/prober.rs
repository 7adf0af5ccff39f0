//! Finds zombies: asks each agent how it is, at its own interval with jitter, over its own class of connection. Probes go
//! round breakers and seats, and are no deliveries: they have places and deadlines of their own. One probe of an agent
//! is out at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reach_core::lease::Presence;
use reach_core::probe::{self, Probed};
use reach_core::turns::in_turn;
use reach_schemas::{AgentId, ProbePolicy, Protocol, Timestamp};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;

/// How often the prober looks which agents there are.
const EVERY: Duration = Duration::from_millis(250);
/// How many probes are out at once. The namespace that has the fewest out comes first, and of it what is due longest: agents
/// that hang for as long as a probe may take keep no other's from being asked.
const AT_ONCE: usize = 256;

/// When each agent is to be probed. None: a probe of it is out.
type Plan = BTreeMap<AgentId, Option<Timestamp>>;

/// One probe that is over.
struct Over {
    agent: AgentId,
    began_at: Timestamp,
}

/// Runs until told to stop.
pub(super) async fn run(gateway: Arc<Gateway>, stop: CancellationToken) {
    let mut plan = Plan::new();
    let mut out: JoinSet<Over> = JoinSet::new();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let next = if out.len() < AT_ONCE { plan.values().flatten().min().copied() } else { None };
        let due = async {
            match next {
                Some(at) => gateway.clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => look(&gateway, &mut plan),
            Some(over) = out.join_next() => match over {
                Ok(over) => plan_next(&gateway, &mut plan, &over),
                Err(error) => tracing::error!(%error, "a probe's end was not noted"),
            },
            () = due => start(&gateway, &mut plan, &mut out),
        }
    }
}

/// Takes in agents that are new, the first probe after one interval, and forgets those that are not probed.
fn look(gateway: &Gateway, plan: &mut Plan) {
    let now = gateway.now();
    let mut rng = gateway.rng();
    let fleet = gateway.fleet();
    let is_probed = |agent: &AgentId| {
        fleet.node(agent).is_some_and(|node| {
            let pulls = node.endpoint().is_none_or(|endpoint| endpoint.protocol == Protocol::Queue);
            !pulls && node.lease.presence(now) != Presence::Dead
        })
    };
    plan.retain(|agent, at| at.is_none() || is_probed(agent));
    for node in fleet.nodes().filter(|node| is_probed(&node.card.agent_id)) {
        let (policy, is_in_doubt) = (&node.card.probe, node.health.is_in_doubt());
        let first = || Some(probe::next_at(now, now, policy, is_in_doubt, &mut rng));
        let at = plan.entry(node.card.agent_id.clone()).or_insert_with(first);
        // A card that has changed may ask for it sooner.
        *at = at.map(|at| at.min(probe::latest(now, policy, is_in_doubt)));
    }
}

/// Which agents are probed now, of those that are due.
fn chosen(plan: &Plan, now: Timestamp, room: usize) -> Vec<AgentId> {
    let mut out: BTreeMap<&str, u32> = BTreeMap::new();
    let mut due: Vec<(Timestamp, &AgentId)> = Vec::new();
    for (agent, at) in plan {
        match at {
            None => *out.entry(agent.namespace_str()).or_default() += 1,
            Some(at) if *at <= now => due.push((*at, agent)),
            Some(_) => {}
        }
    }
    due.sort();
    let owned = due.into_iter().map(|(_, agent)| (agent.namespace_str(), agent)).collect();
    let mut chosen = in_turn(owned, |owner| out.get(owner).copied().unwrap_or(0));
    chosen.truncate(room);
    chosen.into_iter().cloned().collect()
}

/// Starts the probes that are due, as many as there is room for.
fn start(gateway: &Arc<Gateway>, plan: &mut Plan, out: &mut JoinSet<Over>) {
    let room = AT_ONCE.saturating_sub(out.len());
    for agent in chosen(plan, gateway.now(), room) {
        plan.insert(agent.clone(), None);
        let gateway = Arc::clone(gateway);
        out.spawn(async move {
            let began_at = gateway.now();
            // A task of its own: however a probe ends, its agent is probed again.
            let (asking, asked) = (Arc::clone(&gateway), agent.clone());
            if let Err(error) = tokio::spawn(async move { asking.probe(&asked).await }).await {
                tracing::error!(%agent, %error, "a probe broke off");
            }
            Over { agent, began_at }
        });
    }
}

fn plan_next(gateway: &Gateway, plan: &mut Plan, over: &Over) {
    let now = gateway.now();
    let mut rng = gateway.rng();
    let fleet = gateway.fleet();
    let next = fleet
        .node(&over.agent)
        .map(|node| probe::next_at(over.began_at, now, &node.card.probe, node.health.is_in_doubt(), &mut rng));
    match next {
        Some(at) => plan.insert(over.agent.clone(), Some(at)),
        None => plan.remove(&over.agent),
    };
}

impl Gateway {
    /// Asks one agent how it is, and remembers what it said.
    pub(crate) async fn probe(&self, agent: &AgentId) {
        let Some((endpoint, adapter)) = self.way_to(agent, None) else { return };
        let Some(policy) = self.probe_policy(agent) else { return };
        let began_at = self.now();
        let answer = adapter.probe(&endpoint, agent, &policy).await;
        let now = self.now();
        let probed = Probed { took: now.since(began_at), answer };
        let change = {
            let mut fleet = self.fleet();
            if probed.answer.is_ok() {
                fleet.seen(agent, now);
            }
            fleet.probed(agent, &probed, now)
        };
        match (change, &probed.answer) {
            (Some(change), Err(why)) => tracing::warn!(%agent, ?change, %why, "a probe changed the agent's health"),
            (Some(change), Ok(_)) => tracing::info!(%agent, ?change, "a probe changed the agent's health"),
            (None, Err(why)) => tracing::debug!(%agent, %why, "a probe failed"),
            (None, Ok(_)) => {}
        }
        if change.is_some() {
            self.open.unpark_for(agent, 1, now);
        }
    }

    fn probe_policy(&self, agent: &AgentId) -> Option<ProbePolicy> {
        self.fleet().node(agent).map(|node| node.card.probe.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_that_hang_keep_none_of_another_namespace_from_being_probed() {
        let at = |ms| Some(Timestamp::from_ms(ms));
        let agent = |name: &str| -> AgentId { name.parse().unwrap() };
        let mut plan =
            Plan::from([(agent("out@slow"), None), (agent("late@slow"), at(1)), (agent("later@slow"), at(2))]);
        plan.extend([(agent("new@other"), at(9)), (agent("next@other"), at(99))]);
        let names = |room| -> Vec<String> {
            chosen(&plan, Timestamp::from_ms(9), room).iter().map(ToString::to_string).collect()
        };
        assert_eq!(names(9), ["new@other", "late@slow", "later@slow"]);
        assert_eq!(names(1), ["new@other"]);
    }
}
