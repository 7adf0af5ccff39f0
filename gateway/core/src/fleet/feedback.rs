//! What flows back into the fleet: heartbeats, probes, connections, and how attempts ended.

use std::collections::BTreeSet;

use fastrand::Rng;
use reach_schemas::call::{Heartbeat, LastProbe};
use reach_schemas::{AgentId, CapabilityName, Protocol, Span, Timestamp};

use super::Fleet;
use super::node::{Node, Offer};
use crate::breaker::{self, Change};
use crate::bulkhead::{Place, Room, Seat};
use crate::health::{Health, HealthChange, ProbeOutcome};
use crate::history::LATENCY_UNKNOWN;
use crate::lease::Presence;
use crate::probe::Probed;
use crate::schema;
use crate::task::{Attempt, EndedAttempt, Task, ending::Ending};

/// The longest for which an agent is left alone because it asked for it.
const HELD_OFF_MAX: Span = Span::from_mins(5);
/// How deeply a result may be nested: as deeply as a request.
pub const RESULT_DEPTH_MAX: usize = 128;

impl Fleet {
    /// An agent said that it is still here. Its next beat is due at the returned time; none if it is not known.
    pub fn heartbeat(&mut self, beat: &Heartbeat, now: Timestamp) -> Option<Timestamp> {
        let policy = self.settings.health;
        let node = self.node_mut(&beat.agent_id)?;
        node.renew(now);
        node.reported.load = beat.current_load;
        node.reported.queue_depth = beat.queue_depth;
        node.reported.dependencies.clone_from(&beat.dependency_status);
        node.health.report_load(beat.current_load, node.card.max_concurrency, &policy);
        Some(node.lease.due_at())
    }

    /// A word from an agent is a sign of life, whatever it says.
    pub fn seen(&mut self, agent: &AgentId, now: Timestamp) {
        if let Some(node) = self.node_mut(agent) {
            node.renew(now);
        }
    }

    /// An agent opened a connection.
    pub fn connected(&mut self, agent: &AgentId, now: Timestamp) {
        if let Some(node) = self.node_mut(agent) {
            node.connections += 1;
            node.renew(now);
        }
    }

    /// A connection of an agent is gone. How many it has left.
    pub fn disconnected(&mut self, agent: &AgentId) -> u32 {
        let Some(node) = self.node_mut(agent) else { return 0 };
        node.connections = node.connections.saturating_sub(1);
        node.connections
    }

    /// Sends an agent no new work, or sends it some again. False if it is not known.
    pub fn drain(&mut self, agent: &AgentId, is_draining: bool) -> bool {
        self.node_mut(agent).map(|node| node.is_draining = is_draining).is_some()
    }

    /// A probe came back, or did not. An agent that passes again after it was out has its trial at once wherever a
    /// breaker is open. A probe that merely passes leaves breakers alone: it says nothing of work that hangs.
    pub fn probed(&mut self, agent: &AgentId, probed: &Probed, now: Timestamp) -> Option<HealthChange> {
        let policy = self.settings.health;
        let node = self.node_mut(agent)?;
        let p99 = node.offers.iter().filter_map(|offer| offer.history.p99()).max();
        let outcome = match &probed.answer {
            Ok(_) => ProbeOutcome::Passed { took: probed.took },
            Err(_) => ProbeOutcome::Failed,
        };
        let change = node.health.record(outcome, p99, &policy, now);
        node.note_probe(probed, now);
        if change == Some(HealthChange::Restored) {
            for offer in &mut node.offers {
                offer.breaker.cut_short(&offer.policy, now);
            }
        }
        change
    }

    /// An attempt ended: its seat comes home, its permit is given back, its time and its end are remembered.
    pub fn ended(&mut self, seat: Seat, ended: &EndedAttempt, now: Timestamp, rng: &mut Rng) -> Option<Change> {
        self.bulkhead.give_back(seat);
        let node = self.node_mut(&ended.agent_id)?;
        let own_timeout = node.own_timeout(&ended.capability);
        let offer = node.offer_mut(&ended.capability)?;
        let ending = if offer.was_cut_short(ended, own_timeout) { Ending::Neutral } else { ended.ending };
        if let Some(span) = ended.retry_after {
            offer.held_off_until = offer.held_off_until.max(now + span.min(HELD_OFF_MAX));
        }
        match ending {
            Ending::Succeeded | Ending::Answered => {
                offer.moved(now);
                offer.history.record_success(ended.took, now);
            }
            Ending::Failed => offer.history.record_failure(ended.retry_after, now),
            Ending::Neutral => {}
        }
        let (permit, _) = offer.permits.remove(&seat)?;
        let outcome = match ending {
            Ending::Succeeded | Ending::Answered => breaker::Outcome::Success,
            Ending::Failed => breaker::Outcome::Failure,
            Ending::Neutral => breaker::Outcome::Neutral,
        };
        offer.breaker.record(permit, outcome, &offer.policy, now, rng)
    }

    /// A route that came to nothing: what it took comes home.
    pub fn abandon(&mut self, seat: Seat, agent: &AgentId, capability: &CapabilityName, now: Timestamp, rng: &mut Rng) {
        self.bulkhead.give_back(seat);
        let Some(offer) = self.node_mut(agent).and_then(|node| node.offer_mut(capability)) else { return };
        if let Some((permit, _)) = offer.permits.remove(&seat) {
            offer.breaker.record(permit, breaker::Outcome::Neutral, &offer.policy, now, rng);
        }
    }

    /// An agent pulled a task: it has a seat, however many it has already.
    pub fn claimed(&mut self, seat: Seat, agent: &AgentId, capability: &CapabilityName, now: Timestamp, rng: &mut Rng) {
        let Some(offered) = self.node(agent).and_then(|node| node.offer(capability).map(|offer| (node, offer))) else {
            return;
        };
        let tier = offered.0.capability(offered.1).tier;
        let trial_until = now + offered.1.attempt_timeout(None);
        let limits = self.settings.tier_limits;
        let _ = self.bulkhead.try_take(seat, Place { agent_id: agent.clone(), tier }, Room::UNBOUNDED, &limits, now);
        let Some(offer) = self.node_mut(agent).and_then(|node| node.offer_mut(capability)) else { return };
        if offer.permits.contains_key(&seat) {
            return;
        }
        if let Ok(permit) = offer.breaker.take_permit(trial_until, &offer.policy, now, rng) {
            offer.begin(seat, permit, now);
        }
    }

    /// Seats the live attempts of tasks that were read after a start.
    pub fn recount_more(&mut self, open: &[Task], now: Timestamp) {
        let limits = self.settings.tier_limits;
        for (seat, place) in seats(open.iter()) {
            // They are there, whether there is room for them or not.
            let _ = self.bulkhead.try_take(seat, place, Room::UNBOUNDED, &limits, now);
        }
    }

    /// Counts the seats anew from the live attempts of tasks, as the store had them at `as_of`: what the sweeper does.
    /// Permits of attempts that ended where this gateway did not hear of it are forgotten; a trial among them counts as
    /// lost when its time is over.
    pub fn recount<'a>(&mut self, open: impl IntoIterator<Item = &'a Task>, as_of: Timestamp) {
        let open: Vec<&Task> = open.into_iter().collect();
        let live: BTreeSet<Seat> = open.iter().filter_map(|task| Some(seat(task, task.live_attempt()?))).collect();
        for offer in self.nodes.iter_mut().flatten().flat_map(|node| &mut node.offers) {
            offer.permits.retain(|seat, (_, taken_at)| *taken_at >= as_of || live.contains(seat));
        }
        self.bulkhead.recount(seats(open.into_iter()), as_of);
    }

    /// How many seats and how many of the breakers' permits are out.
    #[must_use]
    pub fn out(&self) -> (usize, usize) {
        let offers = self.nodes().flat_map(|node| &node.offers);
        (self.bulkhead.taken(), offers.map(|offer| offer.permits.len()).sum())
    }

    /// Agents that have become dead since their work was last taken back.
    pub fn newly_dead(&mut self, known: &mut BTreeSet<AgentId>, now: Timestamp) -> Vec<AgentId> {
        let dead: BTreeSet<AgentId> = self
            .nodes()
            .filter(|node| node.lease.presence(now) == Presence::Dead)
            .map(|node| node.card.agent_id.clone())
            .collect();
        let new = dead.difference(known).cloned().collect();
        *known = dead;
        new
    }
}

/// The seats of the live attempts that an agent works on; what lies there to be pulled has none.
fn seats<'a>(open: impl Iterator<Item = &'a Task>) -> impl Iterator<Item = (Seat, Place)> {
    open.filter_map(|task| {
        let attempt = task.live_attempt()?;
        let tier = task.state.plan.as_ref()?.tier;
        let is_parked = attempt.protocol == Protocol::Queue && attempt.delivered_at.is_none();
        (!is_parked).then(|| (seat(task, attempt), Place { agent_id: attempt.agent_id.clone(), tier }))
    })
}

fn seat(task: &Task, attempt: &Attempt) -> Seat {
    Seat { task_id: task.id(), token: attempt.token }
}

impl Node {
    /// Renews the lease; one that was dead starts slowly.
    pub(super) fn renew(&mut self, now: Timestamp) {
        if self.lease.renew(now) == Presence::Dead {
            self.health.start_slowly(now);
        }
    }

    /// Remembers what came of a probe. A word that is left out is taken back, but for the queue's depth, which
    /// heartbeats tell too.
    fn note_probe(&mut self, probed: &Probed, now: Timestamp) {
        if let Ok(said) = &probed.answer {
            self.reported.failure_rate = said.failure_rate_10m.unwrap_or_default();
            // Its clock may be ahead of ours: it cannot have succeeded after it said so.
            self.reported.last_success_at = said.last_success_at.map(|at| at.min(now));
            self.reported.queue_depth = said.queue_depth.unwrap_or(self.reported.queue_depth);
        }
        let (failed_in_row, slow_in_row) = self.health.in_row();
        let (said, why) = match &probed.answer {
            Ok(said) => (Some(*said), None),
            Err(why) => (None, Some(why.clone())),
        };
        self.last_probe = Some(LastProbe { at: now, took: probed.took, said, why, failed_in_row, slow_in_row });
    }

    /// How long an attempt at this capability may take by its own card.
    fn own_timeout(&self, capability: &CapabilityName) -> Option<Span> {
        Some(self.offer(capability)?.attempt_timeout(None))
    }

    pub(super) fn offer_mut(&mut self, capability: &CapabilityName) -> Option<&mut Offer> {
        self.offers.iter_mut().find(|offer| &offer.name == capability)
    }

    /// What it offers under this name.
    #[must_use]
    pub fn offer(&self, capability: &CapabilityName) -> Option<&Offer> {
        self.offers.iter().find(|offer| &offer.name == capability)
    }

    /// How probes and load reports see it.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }
}

impl Offer {
    /// Whether an attempt had less time than the work usually takes, because its caller gave it less: that says nothing of
    /// the agent. Of work that was never done yet the usual is not known, and a second is taken for it.
    fn was_cut_short(&self, ended: &EndedAttempt, own_timeout: Option<Span>) -> bool {
        let usual = self.history.p99().unwrap_or(LATENCY_UNKNOWN);
        ended.is_timeout && own_timeout.is_some_and(|own| ended.took < own.min(usual))
    }

    /// What is wrong with a result, by the output schema; nothing if it fits.
    #[must_use]
    pub fn result_violations(&self, result: &reach_schemas::RawJson) -> Vec<String> {
        let text = result.get();
        let depth = schema::depth(text);
        if depth > RESULT_DEPTH_MAX {
            return vec![format!("it is nested {depth} levels deep, at most {RESULT_DEPTH_MAX} are taken")];
        }
        let Some(schema) = &self.output else { return Vec::new() };
        if !schema.can_check(text.len()) {
            return vec![format!("{} bytes are too many to be checked against this schema", text.len())];
        }
        match schema::read_strictly(result) {
            Ok(value) => schema.violations(&value),
            Err(unreadable) => vec![unreadable],
        }
    }
}
