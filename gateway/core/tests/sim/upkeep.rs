//! What a gateway does of its own accord, what agents say of themselves to it, and how it dies and comes back.

use std::sync::Arc;

use reach_core::fleet::{Checked, Fleet};
use reach_core::health::HealthChange;
use reach_core::probe::Probed;
use reach_core::task::Event;
use reach_core::task::event::Trace;
use reach_schemas::call::{HealthReport, Heartbeat};
use reach_schemas::{ErrorCode, FencingToken, Protocol, Span, TaskId};

use crate::coverage::Covered;
use crate::gateway::Then;
use crate::reports::failed;
use crate::setup::settings;
use crate::store::Row;
use crate::world::{Happening, Life, World};

const SWEEP_MS: u64 = 500;
/// How late a due task is before the store is believed over what the gateway remembers.
const LATE: Span = Span::from_secs(1);

impl World {
    pub(crate) fn register(&mut self, gateway: usize, agent: usize) {
        if !self.gateways[gateway].is_up || !self.agents[agent].is_up {
            return;
        }
        let (now, card) = (self.clock(gateway), self.agents[agent].card.clone());
        let id = card.agent_id.clone();
        let Ok(checked) = Checked::new(card.clone()) else {
            self.fail(format!("the card of {id} is not taken"));
            return;
        };
        let done = self.gateways[gateway].fleet.register(checked, now);
        if done.generation > 1 && !done.unchanged {
            self.cover(Covered::CardChanged);
        }
        let row = Row { card, generation: done.generation, registered_at: done.registered_at, draining: false };
        self.store.agents.insert(id, row);
    }

    pub(crate) fn drain(&mut self, gateway: usize, agent: usize) {
        if self.gateways[gateway].is_up {
            let id = self.agents[agent].id.clone();
            self.gateways[gateway].fleet.drain(&id, true);
            if let Some(row) = self.store.agents.get_mut(&id) {
                row.draining = true;
            }
            self.cover(Covered::AgentDrained);
        }
    }

    /// A connection is gone, if the gateway that held it still lives.
    pub(crate) fn disconnected(&mut self, life: Life, agent: usize) {
        if self.is_living(life) {
            let id = self.agents[agent].id.clone();
            self.gateways[life.0].fleet.disconnected(&id);
        }
    }

    pub(crate) fn beat(&mut self, gateway: usize, agent: usize, holds: &[(TaskId, FencingToken)]) {
        if !self.gateways[gateway].is_up {
            return;
        }
        let beat = Heartbeat {
            agent_id: self.agents[agent].id.clone(),
            current_load: u32::try_from(self.agents[agent].running.len()).unwrap_or(u32::MAX),
            queue_depth: 0,
            dependency_status: std::collections::BTreeMap::new(),
            working_on: Vec::new(),
        };
        let now = self.clock(gateway);
        if self.gateways[gateway].fleet.heartbeat(&beat, now).is_none() {
            self.send(|| Happening::Register { gateway, agent });
        }
        for (id, token) in holds {
            let is_live =
                |task: Arc<reach_core::task::Task>| task.live_attempt().is_some_and(|live| live.token == *token);
            if self.load(gateway, *id).is_some_and(is_live) {
                self.apply(gateway, *id, Event::Renew { token: *token }, Then::Nothing, 0);
            }
        }
    }

    /// Takes back what the dead had, finds what is late, probes, and now and then counts the seats anew.
    pub(crate) fn sweep(&mut self, life: Life) {
        let gateway = life.0;
        if !self.is_living(life) {
            return;
        }
        let now = self.clock(gateway);
        self.take_back(gateway);
        for id in self.store.due(now - LATE) {
            self.gateways[gateway].cache.remove(&id);
            self.wake(life, id);
        }
        self.gateways[gateway].sweeps += 1;
        let sweeps = self.gateways[gateway].sweeps;
        if sweeps.is_multiple_of(2) {
            self.probe(gateway);
        }
        if sweeps.is_multiple_of(8) && self.recounts {
            // Steps that are on their way into the store are not older than this.
            let as_of = now - Span::from_ms(10);
            self.gateways[gateway].fleet.recount(self.store.open().map(AsRef::as_ref), as_of);
        }
        self.after(SWEEP_MS, Happening::Sweep(life));
    }

    fn take_back(&mut self, gateway: usize) {
        let now = self.clock(gateway);
        let mut known = std::mem::take(&mut self.gateways[gateway].dead);
        let newly = self.gateways[gateway].fleet.newly_dead(&mut known, now);
        self.gateways[gateway].dead = known;
        for agent in newly {
            self.log(format_args!("g{gateway} holds {agent} to be dead"));
            let held = self.store.open().filter_map(|task| {
                let attempt = task.live_attempt().filter(|attempt| attempt.agent_id == agent)?;
                Some((task.id(), attempt.token))
            });
            for (id, token) in held.collect::<Vec<_>>() {
                let event = Event::Fail { token, failure: failed(ErrorCode::AgentLost), trace: Trace::Unknown };
                self.apply(gateway, id, event, Then::Nothing, 0);
            }
        }
    }

    fn probe(&mut self, gateway: usize) {
        let now = self.clock(gateway);
        for agent in 0..self.agents.len() {
            let (id, is_up) = (self.agents[agent].id.clone(), self.agents[agent].is_up);
            if self.agents[agent].protocol == Protocol::Queue {
                continue;
            }
            let is_lost = self.mishap(self.weather.lost * 3.0);
            let answer = if is_up && !is_lost { Ok(HealthReport::default()) } else { Err("no answer".to_owned()) };
            let probed = Probed { took: Span::from_ms(20), answer };
            let change = self.gateways[gateway].fleet.probed(&id, &probed, now);
            if change == Some(HealthChange::Ejected) {
                self.cover(Covered::AgentEjected);
            }
        }
    }

    pub(crate) fn crash(&mut self, life: Life) {
        let gateway = life.0;
        if !self.is_living(life) {
            return;
        }
        self.log(format_args!("g{gateway} dies"));
        let it = &mut self.gateways[gateway];
        it.is_up = false;
        it.life += 1;
        (it.fleet, it.sweeps) = (Fleet::new(settings()), 0);
        it.cache.clear();
        it.dead.clear();
        it.trials.clear();
        it.orphans.clear();
        let ms = self.between(100, 4_000);
        self.after(ms, Happening::Restart(gateway));
        for agent in 0..self.agents.len() {
            if self.agents[agent].connected_to.remove(&life) {
                let ms = self.between(50, 1_500);
                self.after(ms, Happening::Connect { agent, gateway });
            }
        }
    }

    /// Picks up after a crash: agents as they were stored, and every open task.
    pub(crate) fn restart(&mut self, gateway: usize) {
        self.log(format_args!("g{gateway} is back"));
        self.cover(Covered::GatewayCameBack);
        self.gateways[gateway].is_up = true;
        let now = self.clock(gateway);
        for row in self.store.agents.values() {
            let Ok(checked) = Checked::new(row.card.clone()) else { continue };
            let fleet = &mut self.gateways[gateway].fleet;
            fleet.restore(checked, row.generation, row.registered_at, row.draining, now);
        }
        let open: Vec<Arc<_>> = self.store.open().cloned().collect();
        self.gateways[gateway].fleet.recount(open.iter().map(AsRef::as_ref), now);
        for task in &open {
            if let Some(attempt) = task.live_attempt() {
                self.gateways[gateway].orphans.insert(task.id(), attempt.token);
            }
            self.put(gateway, task);
        }
        let life = self.life(gateway);
        self.after(SWEEP_MS, Happening::Sweep(life));
    }
}
