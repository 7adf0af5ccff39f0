//! Finds zombies: asks each agent how it is, at its own interval with jitter, over its own class of connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reach_core::health::ProbeOutcome;
use reach_core::lease::Presence;
use reach_schemas::{AgentId, Protocol, Span, Timestamp};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;

/// How often the prober looks whom to probe.
const EVERY: Duration = Duration::from_millis(250);
/// How many probes are out at once.
const AT_ONCE: usize = 32;

/// Runs until told to stop.
pub(super) async fn run(gateway: Arc<Gateway>, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut next: BTreeMap<AgentId, Timestamp> = BTreeMap::new();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        for (agent, timeout) in due(&gateway, &mut next) {
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { break };
            let gateway = Arc::clone(&gateway);
            tokio::spawn(async move {
                gateway.probe(&agent, timeout).await;
                drop(place);
            });
        }
    }
}

/// Whom to probe now. The first probe of an agent comes after one interval.
fn due(gateway: &Gateway, next: &mut BTreeMap<AgentId, Timestamp>) -> Vec<(AgentId, Span)> {
    let now = gateway.now();
    let fleet = gateway.fleet();
    let mut rng = gateway.rng();
    next.retain(|agent, _| fleet.node(agent).is_some());
    let mut due = Vec::new();
    for node in fleet.nodes() {
        let pulls = node.endpoint().is_none_or(|endpoint| endpoint.protocol == Protocol::Queue);
        if pulls || node.lease.presence(now) == Presence::Dead {
            continue;
        }
        let policy = node.card.probe;
        let interval = policy.interval.as_ms();
        let wait = Span::from_ms(interval - interval / 10 + rng.u64(0..=interval / 5));
        let at = next.entry(node.card.agent_id.clone()).or_insert(now + wait);
        if *at <= now {
            *at = now + wait;
            due.push((node.card.agent_id.clone(), policy.timeout));
        }
    }
    due
}

impl Gateway {
    /// Asks one agent how it is, and remembers what it said.
    pub(crate) async fn probe(&self, agent: &AgentId, timeout: Span) {
        let Some((endpoint, adapter)) = self.way_to(agent, None) else { return };
        let began = self.now();
        let answer = adapter.probe(&endpoint, agent, timeout).await;
        let now = self.now();
        let outcome = match &answer {
            Ok(_) => ProbeOutcome::Passed { took: now.since(began) },
            Err(_) => ProbeOutcome::Failed,
        };
        let change = {
            let mut fleet = self.fleet();
            if answer.is_ok() {
                fleet.seen(agent, now);
            }
            fleet.probed(agent, outcome, now)
        };
        match (change, answer) {
            (Some(change), Err(why)) => tracing::warn!(%agent, ?change, %why, "a probe changed the agent's health"),
            (Some(change), Ok(_)) => tracing::info!(%agent, ?change, "a probe changed the agent's health"),
            (None, Err(why)) => tracing::debug!(%agent, %why, "a probe failed"),
            (None, Ok(_)) => {}
        }
        if change.is_some() {
            self.open.unpark_for(agent, 1, now);
        }
    }
}
