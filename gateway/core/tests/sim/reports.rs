//! What goes between gateways and agents: deliveries, claims, and what agents say of the attempts they have.

use std::sync::Arc;

use reach_core::bulkhead::Seat;
use reach_core::task::event::Trace;
use reach_core::task::{Event, Task};
use reach_schemas::{ErrorCode, Failure, FencingToken, PhaseName, Protocol, RawJson, Span, TaskId};

use crate::agent::{Outcome, Word};
use crate::coverage::Covered;
use crate::gateway::Then;
use crate::world::{Happening, Life, World};

/// How long the leases of this world are.
const LEASE: Span = Span::from_ms(2_500);

pub(crate) fn failed(code: ErrorCode) -> Failure {
    Failure::new(code, code.name())
}

/// The result that tells who made it under which token.
pub(crate) fn result(agent: usize, token: FencingToken) -> RawJson {
    RawJson::parse(&format!("[{agent},{}]", token.0)).expect("two numbers in brackets are JSON")
}

impl World {
    /// Hands the live attempt over.
    pub(crate) fn deliver(&mut self, life: Life, task: &Arc<Task>) {
        let (Some(attempt), Some(delivery)) = (task.live_attempt(), task.delivery()) else { return };
        let (agent, token, id) = (self.agent_at[&attempt.agent_id], attempt.token, task.id());
        let is_http = attempt.protocol == Protocol::Http;
        let is_reachable =
            if is_http { self.agents[agent].is_up } else { self.agents[agent].connected_to.contains(&life) };
        if !is_reachable {
            self.cover(Covered::AgentUnreachable);
            let outcome = Outcome::Failed(ErrorCode::Unreachable, Trace::NotStarted);
            self.after(1, Happening::HttpAnswer(life, id, token, outcome));
            return;
        }
        let journeys = self.journeys();
        if journeys.is_empty() && is_http && self.chance(0.5) {
            // The connection broke: the request may or may not have arrived.
            let outcome = Outcome::Failed(ErrorCode::AgentLost, Trace::Unknown);
            let ms = self.between(1, 500);
            self.after(ms, Happening::HttpAnswer(life, id, token, outcome));
        }
        for ms in journeys {
            self.after(ms, Happening::Deliver { agent, from: life, delivery: Box::new(delivery.clone()) });
        }
    }

    /// The answer on the connection that a delivery was made over. It dies with the gateway.
    pub(crate) fn http_answer(&mut self, life: Life, task: TaskId, token: FencingToken, outcome: Outcome) {
        if !self.is_living(life) {
            self.cover(Covered::AnswerLostWithGateway);
            return;
        }
        let event = match outcome {
            Outcome::Done(agent) => Event::Complete { token, result: result(agent, token), token_count: None },
            Outcome::Failed(code, trace) => Event::Fail { token, failure: failed(code), trace },
        };
        self.apply(life.0, task, event, Then::Nothing, 0);
    }

    /// An agent's word on an attempt.
    pub(crate) fn report(&mut self, gateway: usize, agent: usize, task: TaskId, token: FencingToken, word: Word) {
        if !self.gateways[gateway].is_up {
            return;
        }
        let Some(loaded) = self.load(gateway, task) else { return };
        if loaded.state.attempts.last().is_none_or(|attempt| attempt.agent_id != self.agents[agent].id) {
            // Whoever does not have the newest attempt is told nothing; a cached copy may be behind.
            let stored = self.store.tasks.get(&task).cloned();
            let newest = stored.as_ref().and_then(|task| task.state.attempts.last());
            if newest.is_none_or(|attempt| attempt.agent_id != self.agents[agent].id) {
                self.cover(Covered::StaleTokenRefused);
                return;
            }
            self.gateways[gateway].cache.remove(&task);
        }
        let now = self.clock(gateway);
        let id = self.agents[agent].id.clone();
        self.gateways[gateway].fleet.seen(&id, now);
        let event = match word {
            Word::Arrived => Event::Delivered { token },
            Word::Accept => Event::Accept { token },
            Word::Progress => Event::Progress { token, progress: Some(result(agent, token)) },
            Word::End(Outcome::Done(agent)) => {
                Event::Complete { token, result: result(agent, token), token_count: None }
            }
            Word::End(Outcome::Failed(code, trace)) => Event::Fail { token, failure: failed(code), trace },
            Word::Release => Event::Release { token },
            Word::Poison => Event::Poison { token, failure: failed(ErrorCode::AgentFailed) },
        };
        self.apply(gateway, task, event, Then::Nothing, 0);
    }

    /// An agent pulls: one task, or whatever it may have.
    pub(crate) fn claim(&mut self, gateway: usize, agent: usize, only: Option<TaskId>) {
        if !self.gateways[gateway].is_up {
            return;
        }
        let (now, id) = (self.clock(gateway), self.agents[agent].id.clone());
        let fleet = &mut self.gateways[gateway].fleet;
        fleet.seen(&id, now);
        let most = fleet.node(&id).map_or(0, |node| if node.is_draining { 0 } else { node.card.max_concurrency });
        let room = most.saturating_sub(fleet.in_flight(&id)) as usize;
        let is_its = |task: &Task| {
            task.state.phase.name() == PhaseName::Routed
                && task
                    .live_attempt()
                    .is_some_and(|attempt| attempt.protocol == Protocol::Queue && attempt.agent_id == id)
        };
        let may_claim = |task: &&Arc<Task>| task.state.phase.offered_to(&id).is_some() || is_its(task);
        let ids: Vec<TaskId> = match only {
            Some(id) => vec![id],
            None => self.store.open().filter(may_claim).map(|task| task.id()).collect(),
        };
        for task in ids.into_iter().take(room.min(2)) {
            let event = Event::Claim { agent_id: id.clone(), lease: LEASE };
            self.apply(gateway, task, event, Then::Claimed(agent), 0);
        }
    }

    /// A claim was granted: the agent has a seat, and is told.
    pub(crate) fn hand_over(&mut self, gateway: usize, agent: usize, task: &Arc<Task>) {
        let (Some(attempt), Some(delivery)) = (task.live_attempt(), task.delivery()) else { return };
        let (now, seat) = (self.clock(gateway), Seat { task_id: task.id(), token: attempt.token });
        let id = self.agents[agent].id.clone();
        self.gateways[gateway].fleet.claimed(seat, &id, &attempt.capability, now, &mut self.rng);
        let from = self.life(gateway);
        self.send(|| Happening::Deliver { agent, from, delivery: Box::new(delivery.clone()) });
    }

    pub(crate) fn cancel(&mut self, gateway: usize, task: TaskId) {
        if self.gateways[gateway].is_up {
            self.apply(gateway, task, Event::Cancel, Then::Nothing, 0);
        }
    }

    pub(crate) fn redrive(&mut self, gateway: usize, task: TaskId) {
        if self.gateways[gateway].is_up {
            // Some go at once, some are spread.
            let not_before = self.clock(gateway) + Span::from_ms(self.between(0, 4_000).saturating_sub(2_000));
            let deadline_at = not_before + Span::from_secs(10);
            self.apply(gateway, task, Event::Redrive { not_before, deadline_at }, Then::Nothing, 0);
        }
    }
}
