//! How an agent pulls a task: one claim wins, under a lease.

use reach_schemas::{AgentId, Protocol, Span};

use super::phase::{Hold, Phase};
use super::step::{Next, Refusal};

impl Next<'_> {
    pub(super) fn claim(&mut self, agent_id: &AgentId, lease: Span) -> Result<(), Refusal> {
        if self.now >= self.state.deadline_at && !self.state.phase.name().is_final() {
            // Nobody has looked at it since its deadline, and work on it would be in vain.
            return Err(Refusal::NotOffered);
        }
        match &self.state.phase {
            Phase::Submitted { offered, .. } => {
                let capability = self.state.phase.offered_to(agent_id).cloned().ok_or(Refusal::NotOffered)?;
                let others = offered.iter().map(|offer| offer.agent_id.clone()).filter(|other| other != agent_id);
                self.effects.withdraw = others.collect();
                self.begin(agent_id.clone(), capability, Protocol::Queue);
            }
            Phase::Routed(_) => self.claim_assigned(agent_id)?,
            Phase::Delivered(_) | Phase::Accepted(_) => return Err(Refusal::ClaimLost),
            Phase::Human { .. }
            | Phase::Completed { .. }
            | Phase::Failed(_)
            | Phase::Cancelled
            | Phase::Expired(_)
            | Phase::DeadLettered(_) => return Err(self.wrong_phase()),
        }
        let (now, run_until) = (self.now, self.run_until());
        if let Some(attempt) = self.attempt() {
            attempt.delivered_at = Some(now);
        }
        let lease_until = Some((now + lease).min(self.state.deadline_at));
        self.state.phase = Phase::Delivered(Hold { run_until, lease_until, lease_for: Some(lease) });
        self.effects.changed = true;
        Ok(())
    }

    /// A task that was routed to a pulling agent keeps its attempt when that agent pulls it.
    fn claim_assigned(&self, agent_id: &AgentId) -> Result<(), Refusal> {
        match self.state.attempts.last() {
            Some(attempt) if attempt.protocol == Protocol::Queue && &attempt.agent_id == agent_id => Ok(()),
            Some(_) | None => Err(Refusal::ClaimLost),
        }
    }
}
