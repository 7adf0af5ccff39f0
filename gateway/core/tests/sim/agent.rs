//! Agents: called over HTTP, connected by WebSocket, or pulling. They remember which attempts they have seen, even over
//! a crash; in all else they are as bad as the weather.

use std::collections::{BTreeMap, BTreeSet};

use reach_core::task::event::Trace;
use reach_schemas::{AgentCard, AgentId, Delivery, ErrorCode, FencingToken, Protocol, TaskId, Timestamp};

use crate::checks::is_write;
use crate::coverage::Covered;
use crate::world::{BEGIN, Happening, Life, World};

pub(crate) struct Agent {
    pub(crate) id: AgentId,
    pub(crate) protocol: Protocol,
    pub(crate) card: AgentCard,
    pub(crate) is_up: bool,
    pub(crate) life: u32,
    /// The gateways that hold a WebSocket of its.
    pub(crate) connected_to: BTreeSet<Life>,
    /// What it works on, and who gave it that.
    pub(crate) running: BTreeMap<(TaskId, FencingToken), Life>,
    seen: BTreeSet<(TaskId, FencingToken)>,
    quiet_until: Timestamp,
}

/// How an attempt comes out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    /// Well, by this agent's work.
    Done(usize),
    Failed(ErrorCode, Trace),
}

/// What an agent says of an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Word {
    Arrived,
    Accept,
    Progress,
    End(Outcome),
    Release,
    Poison,
}

impl Agent {
    pub(crate) fn new(card: AgentCard, protocol: Protocol) -> Self {
        Self {
            id: card.agent_id.clone(),
            protocol,
            card,
            is_up: true,
            life: 0,
            connected_to: BTreeSet::new(),
            running: BTreeMap::new(),
            seen: BTreeSet::new(),
            quiet_until: BEGIN,
        }
    }

    fn is_full(&self) -> bool {
        self.running.len() >= self.card.max_concurrency as usize
    }
}

impl World {
    /// Work arrives: pushed, or claimed before.
    pub(crate) fn take_delivery(&mut self, agent: usize, from: Life, delivery: &Delivery) {
        let (task, token) = (delivery.task_id, delivery.token);
        let it = &mut self.agents[agent];
        if !it.is_up {
            if it.protocol == Protocol::Http && self.chance(0.5) {
                let outcome = Outcome::Failed(ErrorCode::AgentLost, Trace::Unknown);
                self.after(1, Happening::HttpAnswer(from, task, token, outcome));
            }
            return;
        }
        if !it.seen.insert((task, token)) {
            self.cover(Covered::DoubledDeliveryIgnored);
            return;
        }
        let is_full = it.is_full();
        if is_full && it.protocol != Protocol::Queue {
            self.cover(Covered::FullAgentSaidSo);
            let outcome = Outcome::Failed(ErrorCode::Overloaded, Trace::NotStarted);
            self.say(agent, from, task, token, Word::End(outcome));
            return;
        }
        let is_bad = self.mishap(self.weather.bad_work);
        let manner = if is_bad { self.between(0, 9) } else { 10 };
        match manner {
            0 => {
                self.cover(Covered::RefusedUnstarted);
                let outcome = Outcome::Failed(ErrorCode::AgentRefused, Trace::NotStarted);
                self.say(agent, from, task, token, Word::End(outcome));
            }
            1 | 2 if self.agents[agent].protocol != Protocol::Http => {
                let word = if manner == 1 && self.chance(0.3) { Word::Poison } else { Word::Release };
                self.say(agent, from, task, token, word);
            }
            _ => self.begin(agent, from, delivery, manner),
        }
    }

    fn begin(&mut self, agent: usize, from: Life, delivery: &Delivery, manner: u64) {
        let (task, token, life) = (delivery.task_id, delivery.token, self.agents[agent].life);
        let name = self.name(task);
        self.log(format_args!("a{agent} begins t{name} #{} {}", token.0, delivery.capability));
        self.agents[agent].running.insert((task, token), from);
        let mut capabilities = self.agents[agent].card.capabilities.iter();
        if capabilities.any(|own| own.name == delivery.capability && is_write(own.effect)) {
            self.check_write(task, token, agent, &delivery.capability);
        }
        let say = |world: &mut Self, ms, word| world.after(ms, Happening::Work { agent, life, task, token, word });
        let mut ms = self.between(1, 150);
        if self.agents[agent].protocol != Protocol::Http {
            if self.chance(0.3) {
                say(self, 0, Some(Word::Arrived));
            }
            if !self.mishap(self.weather.bad_work * 0.2) {
                say(self, ms, Some(Word::Accept));
            }
            if self.chance(0.3) {
                ms += self.between(1, 200);
                say(self, ms, Some(Word::Progress));
            }
        }
        ms += self.between(1, 300);
        let end = match manner {
            3 | 4 => Some(Word::End(Outcome::Failed(ErrorCode::AgentFailed, Trace::FailedRetryable))),
            5 => Some(Word::End(Outcome::Failed(ErrorCode::AgentFailed, Trace::FailedForGood))),
            6 => {
                ms += self.between(3_000, 9_000);
                None
            }
            7 => {
                self.after(ms, Happening::AgentCrash(agent));
                None
            }
            8 | 9 => {
                ms += self.between(500, 7_000);
                Some(Word::End(Outcome::Done(agent)))
            }
            _ => Some(Word::End(Outcome::Done(agent))),
        };
        say(self, ms, end);
    }

    /// The agent comes to the next point of its work, if it still lives and has not been told to stop.
    pub(crate) fn work(&mut self, agent: usize, life: u32, task: TaskId, token: FencingToken, word: Option<Word>) {
        let it = &mut self.agents[agent];
        let Some(from) = it.running.get(&(task, token)).copied().filter(|_| it.life == life) else { return };
        if matches!(word, Some(Word::End(_)) | None) {
            it.running.remove(&(task, token));
        }
        if let Some(Word::End(Outcome::Failed(_, Trace::FailedRetryable))) = word {
            self.note_given_up(task, token);
        }
        if let Some(word) = word {
            self.say(agent, from, task, token, word);
        }
    }

    /// Says something of an attempt: on the connection it came by, or to some gateway.
    fn say(&mut self, agent: usize, from: Life, task: TaskId, token: FencingToken, word: Word) {
        let name = self.name(task);
        self.log(format_args!("a{agent} says of t{name} #{}: {word:?}", token.0));
        if let (Protocol::Http, Word::End(outcome)) = (self.agents[agent].protocol, word) {
            self.send(|| Happening::HttpAnswer(from, task, token, outcome));
            return;
        }
        let gateway = if self.mishap(0.2) { self.any_gateway() } else { from.0 };
        let report = || Happening::Report { gateway, agent, task, token, word };
        self.send(report);
        if self.mishap(0.3) {
            // It has heard nothing, and says it again.
            let ms = self.between(300, 900);
            self.after(ms, report());
        }
    }

    pub(crate) fn stop_work(&mut self, agent: usize, task: TaskId, token: FencingToken) {
        if self.chance(0.5) {
            self.agents[agent].running.remove(&(task, token));
        }
    }

    /// An agent hears that a task may be claimed.
    pub(crate) fn hear_of(&mut self, agent: usize, gateway: usize, task: TaskId) {
        if self.agents[agent].is_up && !self.agents[agent].is_full() {
            self.send(|| Happening::Pull { gateway, agent, only: Some(task) });
        }
    }

    pub(crate) fn agent_pull(&mut self, agent: usize) {
        let ms = self.between(150, 500);
        self.after(ms, Happening::AgentPull(agent));
        if self.agents[agent].is_up && !self.agents[agent].is_full() {
            let gateway = self.any_gateway();
            self.send(|| Happening::Pull { gateway, agent, only: None });
        }
    }

    pub(crate) fn agent_beat(&mut self, agent: usize) {
        let ms = self.between(900, 1_000);
        self.after(ms, Happening::AgentBeat(agent));
        if self.mishap(self.weather.flap) {
            let quiet = reach_schemas::Span::from_ms(self.between(2_000, 7_000));
            self.agents[agent].quiet_until = self.now + quiet;
        }
        let it = &self.agents[agent];
        if !it.is_up || (self.now < it.quiet_until && self.is_stormy()) {
            return;
        }
        let holds: Vec<_> = it.running.keys().copied().collect();
        for gateway in 0..self.gateways.len() {
            self.send(|| Happening::Beat { gateway, agent, holds: holds.clone() });
        }
    }

    /// Now and then an agent changes: it drains, has a new card, or dies.
    pub(crate) fn agent_mood(&mut self, agent: usize) {
        let ms = self.between(2_000, 6_000);
        self.after(ms, Happening::AgentMood(agent));
        if !self.is_stormy() {
            // Some gateway may not have been there to hear it the last time.
            self.register_everywhere(agent);
            return;
        }
        if self.mishap(self.weather.agent_crash) {
            self.agent_crash(agent);
            return;
        }
        match self.between(0, 5) {
            0 => {
                for gateway in 0..self.gateways.len() {
                    let ms = self.between(1, 20);
                    self.after(ms, Happening::Drain { gateway, agent });
                }
            }
            1 => {
                let weight = u8::try_from(self.between(10, 90)).unwrap_or(50);
                for capability in &mut self.agents[agent].card.capabilities {
                    capability.routing_weight = weight;
                }
                self.register_everywhere(agent);
            }
            2 => self.register_everywhere(agent),
            _ => {}
        }
    }

    fn register_everywhere(&mut self, agent: usize) {
        for gateway in 0..self.gateways.len() {
            self.send(|| Happening::Register { gateway, agent });
        }
    }

    pub(crate) fn agent_crash(&mut self, agent: usize) {
        if !self.agents[agent].is_up {
            return;
        }
        self.log(format_args!("a{agent} dies"));
        let it = &mut self.agents[agent];
        it.is_up = false;
        it.life += 1;
        it.running.clear();
        for life in std::mem::take(&mut it.connected_to) {
            let ms = self.between(1, 3_000);
            self.after(ms, Happening::Disconnected { life, agent });
        }
        let ms = self.between(300, 8_000);
        self.after(ms, Happening::AgentRestart(agent));
    }

    pub(crate) fn agent_restart(&mut self, agent: usize) {
        self.log(format_args!("a{agent} is back"));
        self.cover(Covered::AgentCameBack);
        self.agents[agent].is_up = true;
        self.register_everywhere(agent);
        for gateway in 0..self.gateways.len() {
            self.connect(agent, gateway);
        }
    }

    /// Opens a WebSocket to a gateway, if the agent is of that kind and has none there.
    pub(crate) fn connect(&mut self, agent: usize, gateway: usize) {
        let (it, life) = (&self.agents[agent], self.life(gateway));
        if !it.is_up || it.protocol != Protocol::Websocket || it.connected_to.contains(&life) {
            return;
        }
        if !self.gateways[gateway].is_up {
            let ms = self.between(50, 400);
            self.after(ms, Happening::Connect { agent, gateway });
            return;
        }
        self.register(gateway, agent);
        let (now, id) = (self.clock(gateway), self.agents[agent].id.clone());
        self.gateways[gateway].fleet.connected(&id, now);
        self.agents[agent].connected_to.insert(life);
    }
}
