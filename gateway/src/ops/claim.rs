//! Pulling work: under a lease, with a fencing token, one winner for each task.

use std::sync::Arc;

use reach_core::access::{Grant, may_call};
use reach_core::bulkhead::Seat;
use reach_core::task::{Event, Refusal, Task};
use reach_schemas::call::{CLAIM_MAX, Claim, Claimed, LEASE_MAX, LEASE_MIN};
use reach_schemas::{AgentId, Delivery, ErrorCode, Failure, Span, TaskId};
use tokio_util::sync::CancellationToken;

use super::agents::agent_not_found;
use super::bounds;
use crate::gateway::{Gateway, NotApplied};

/// How long a lease is if the agent does not say.
const LEASE: Span = Span::from_secs(30);

/// How an agent stands to a task that it asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Offer {
    /// It was offered, or the agent has had it: the task itself says whether it can be had.
    Known,
    /// It was not, as far as is seen; it may be about to be.
    Never,
    /// There is none, or what was offered holds no more: cards change, and what they no longer say is not given out.
    Gone,
}

impl Gateway {
    /// Gives an agent work that it may claim, best first. Once `gone` is cancelled nobody hears the answer: then it waits no
    /// longer, and what it was given meanwhile goes back, not begun.
    ///
    /// # Errors
    /// It asks for too much, the agent is not registered, the caller is not it, or the one task that it asks for is
    /// claimed by another.
    pub async fn claim(&self, grant: Grant, request: Claim, gone: &CancellationToken) -> Result<Claimed, Failure> {
        let claimed = self.claim_while_there(grant, request, gone).await?;
        if gone.is_cancelled() {
            for delivery in &claimed.tasks {
                let released = self.apply(delivery.task_id, Event::Release { token: delivery.token }).await;
                tracing::debug!(task = %delivery.task_id, is_back = released.is_ok(), "whoever pulled it is gone");
            }
            return Ok(Claimed { tasks: Vec::new() });
        }
        Ok(claimed)
    }

    async fn claim_while_there(
        &self,
        grant: Grant,
        request: Claim,
        gone: &CancellationToken,
    ) -> Result<Claimed, Failure> {
        let agent = &request.agent_id;
        grant.acts_as(agent).map_err(|denial| Failure::new(ErrorCode::Forbidden, denial.to_string()))?;
        let lease = bounds::span("lease", request.lease.unwrap_or(LEASE), LEASE_MIN, LEASE_MAX)?;
        let limit = bounds::count("limit", request.limit.unwrap_or(1), CLAIM_MAX)?;
        let wait = bounds::wait(request.wait, Span::ZERO)?;
        if let Some(task_id) = request.task_id {
            self.room(agent)?;
            let delivery = self.claim_one(agent, task_id, lease).await?;
            return Ok(Claimed { tasks: vec![delivery] });
        }
        let until = tokio::time::Instant::now() + wait.into();
        loop {
            let bell = self.open.bell(agent);
            let rung = bell.notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            let tasks = self.claim_some(agent, limit, lease, gone).await?;
            // Whoever waits for work is there: each time around it is seen again.
            let again = until.min(tokio::time::Instant::now() + self.beat(agent)?.into());
            let is_over = !tasks.is_empty()
                || tokio::select! {
                    rung = tokio::time::timeout_at(again, rung) => rung.is_err() && again == until,
                    () = self.stopping.cancelled() => true,
                    () = gone.cancelled() => true,
                };
            if is_over {
                return Ok(Claimed { tasks });
            }
        }
    }

    /// How often the agent has to be heard of.
    fn beat(&self, agent: &AgentId) -> Result<Span, Failure> {
        self.fleet().node(agent).map(|node| node.card.heartbeat_interval).ok_or_else(|| agent_not_found(agent))
    }

    /// How many more tasks the agent may have at once.
    fn room(&self, agent: &AgentId) -> Result<u32, Failure> {
        let now = self.now();
        let mut fleet = self.fleet();
        fleet.seen(agent, now);
        let most = fleet.node(agent).map(|node| if node.is_draining { 0 } else { node.card.max_concurrency });
        let most = most.ok_or_else(|| agent_not_found(agent))?;
        Ok(most.saturating_sub(fleet.in_flight(agent)))
    }

    async fn claim_some(
        &self,
        agent: &AgentId,
        limit: u32,
        lease: Span,
        gone: &CancellationToken,
    ) -> Result<Vec<Delivery>, Failure> {
        let limit = limit.min(self.room(agent)?) as usize;
        let mut claimed = Vec::new();
        if limit == 0 {
            return Ok(claimed);
        }
        // More are looked at than are wanted: others may be claiming the same ones.
        for task_id in self.open.claimable(agent, limit + 32) {
            if gone.is_cancelled() {
                break;
            }
            match self.claim_one(agent, task_id, lease).await {
                Ok(delivery) => claimed.push(delivery),
                Err(failure) if failure.code == ErrorCode::ClaimLost || failure.code == ErrorCode::WrongPhase => {}
                Err(failure) if claimed.is_empty() => return Err(failure),
                // What was claimed must reach the agent, whatever became of the rest.
                Err(_) => break,
            }
            if claimed.len() >= limit {
                break;
            }
        }
        Ok(claimed)
    }

    /// How an agent stands to a task.
    async fn offer_to(&self, agent: &AgentId, task_id: TaskId) -> Result<Offer, Failure> {
        let Some(task) = self.load(task_id).await? else { return Ok(Offer::Gone) };
        let offered = task.state.phase.offered_to(agent).or_else(|| {
            task.live_attempt().filter(|attempt| &attempt.agent_id == agent).map(|attempt| &attempt.capability)
        });
        let Some(capability) = offered else {
            let has_had_it = task.state.attempts.iter().any(|attempt| &attempt.agent_id == agent);
            return Ok(if has_had_it { Offer::Known } else { Offer::Never });
        };
        let caller = self.caller_of(&task);
        let fleet = self.fleet();
        let stands = fleet.node(agent).is_some_and(|node| {
            node.offer(capability).is_some() && may_call(&caller, agent, &node.card.access, capability)
        });
        Ok(if stands { Offer::Known } else { Offer::Gone })
    }

    async fn claim_one(&self, agent: &AgentId, task_id: TaskId, lease: Span) -> Result<Delivery, Failure> {
        let offer = self.offer_to(agent, task_id).await?;
        if offer == Offer::Gone {
            return Err(NotApplied::Refused(Refusal::NotOffered).into());
        }
        let event = Event::Claim { agent_id: agent.clone(), lease };
        let not_offered = || Failure::from(NotApplied::Refused(Refusal::NotOffered));
        let task: Arc<Task> = self.apply(task_id, event).await.map_err(|error| match error {
            // Whether a task exists that was not offered, and where it is, is not the agent's to know.
            NotApplied::NotFound => not_offered(),
            NotApplied::Refused(_) if offer == Offer::Never => not_offered(),
            NotApplied::Refused(_) | NotApplied::Store(_) => error.into(),
        })?;
        if let Some(attempt) = task.live_attempt() {
            let seat = Seat { task_id, token: attempt.token };
            let now = self.now();
            let mut rng = self.rng();
            self.fleet().claimed(seat, agent, &attempt.capability, now, &mut rng);
        }
        let gone = || Failure::new(ErrorCode::WrongPhase, "the task ended while it was claimed");
        task.delivery().ok_or_else(gone)
    }
}
