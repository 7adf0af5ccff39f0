//! Finding who could do something, without asking anyone to.

use std::sync::Arc;

use reach_core::access::Grant;
use reach_core::bulkhead::Seat;
use reach_core::fleet::{Ask, Unroutable};
use reach_core::lease::Presence;
use reach_core::task::Target;
use reach_schemas::call::{Capabilities, CapabilityFind, Resolved};
use reach_schemas::{AgentCard, CapabilityName, Failure, FencingToken, RawJson, Span, Submit};

use super::bounds;
use super::submit::check;
use crate::gateway::Gateway;

/// How many capabilities a search finds if its caller does not say.
const FOUND: u32 = 5;

impl Gateway {
    /// Capabilities that fit the words best, or all of them in the order of their agents.
    ///
    /// # Errors
    /// More are asked for than one list holds, or the words are too many.
    pub fn find(&self, grant: Grant, request: &CapabilityFind) -> Result<Capabilities, Failure> {
        let limit = bounds::limit(request.limit, FOUND)? as usize;
        bounds::intent(request.intent.as_deref())?;
        let now = self.now();
        let words = request.intent.as_deref();
        let capabilities = self.fleet().find(grant.caller(), request.namespace.as_ref(), words, limit, now);
        Ok(Capabilities { capabilities })
    }

    /// The cards of all agents, in the order of their ids, save those that were lost longer ago than `lost_for_max`.
    pub(crate) fn cards_of_known(&self, lost_for_max: Span) -> Vec<Arc<AgentCard>> {
        let now = self.now();
        let fleet = self.fleet();
        let is_known = |presence: Presence, silent_for: Span| presence != Presence::Dead || silent_for <= lost_for_max;
        let known = fleet.nodes().filter(|node| {
            let lease = &node.lease;
            is_known(lease.presence(now), now.since(lease.renewed_at()))
        });
        known.map(|node| Arc::clone(&node.card)).collect()
    }

    /// Why a result does not fit what some agent that offers the capability says that its results are like; nothing if it
    /// does, or nobody offers it.
    pub(crate) fn misfits(&self, capability: &CapabilityName, result: &RawJson) -> Vec<String> {
        let fleet = self.fleet();
        let offer = fleet.nodes().find_map(|node| node.offer(capability));
        offer.map(|offer| offer.result_violations(result)).unwrap_or_default()
    }

    /// Who would get a task, and where that agent is, for those who go there themselves.
    ///
    /// # Errors
    /// It is malformed, or nobody would; with what was near and what each lacked.
    pub fn resolve(&self, grant: Grant, submit: &Submit) -> Result<Resolved, Failure> {
        check(submit)?;
        let target = Target {
            to_agent: submit.to_agent.clone(),
            capability: submit.capability.clone(),
            intent: submit.intent.clone(),
            namespace: submit.namespace.clone(),
        };
        let ask = Ask {
            caller: grant.caller(),
            target: &target,
            params: submit.params.as_ref(),
            tried: Vec::new(),
            attempt: 1,
            turn: reach_core::retry::Turn::First,
            yields: None,
            attempt_timeout: None,
            seat: Seat { task_id: self.new_task_id(), token: FencingToken(0) },
        };
        let now = self.now();
        let mut rng = self.rng();
        let fleet = self.fleet();
        let route = fleet.resolve(&ask, now, &mut rng).map_err(|unroutable| match unroutable {
            Unroutable::NotNow { failure, .. } | Unroutable::Never { failure, .. } => failure,
        })?;
        let agent_id = route.assignment.agent_id;
        let endpoints = fleet.node(&agent_id).map(|node| node.card.endpoints.clone()).unwrap_or_default();
        Ok(Resolved { agent_id, capability: route.assignment.capability, endpoints, decision: route.decision })
    }
}
