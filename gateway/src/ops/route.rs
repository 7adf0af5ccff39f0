//! Asking the router: who gets a task, or who may claim it, and how long it took to choose.

use std::time::Instant;

use reach_core::access::Caller;
use reach_core::bulkhead::Seat;
use reach_core::fleet::{Ask, Offering, Route, Unroutable, Yields};
use reach_core::task::{Event, Task};
use reach_schemas::{AgentId, CapabilityName, Decision, Mode, Protocol, Span, Tier, Timestamp};

use crate::gateway::Gateway;
use crate::open_tasks::Parking;

/// Where the router sends a task.
pub(crate) enum Routed {
    /// To one agent.
    To(Route),
    /// To whoever claims it.
    Offered(Offering),
}

impl Routed {
    pub(super) fn tier(&self) -> Tier {
        match self {
            Self::To(route) => route.assignment.plan.tier,
            Self::Offered(offering) => offering.plan.tier,
        }
    }

    /// The agent and capability whose seat and permit were taken, if any were.
    pub(crate) fn taken(&self) -> Option<(AgentId, CapabilityName)> {
        match self {
            Self::To(Route { assignment, .. }) => Some((assignment.agent_id.clone(), assignment.capability.clone())),
            Self::Offered(_) => None,
        }
    }

    /// The line that it stands in until an agent pulls it. None: it is handed over at once.
    pub(super) fn queue(&self) -> Option<Parking> {
        let line = |agents, capability: &CapabilityName, tier| {
            Some(Parking { agents, for_seat: true, capability: capability.clone(), tier, takes: Span::ZERO })
        };
        match self {
            Self::To(Route { assignment, .. }) if assignment.protocol == Protocol::Queue => {
                line(vec![assignment.agent_id.clone()], &assignment.capability, assignment.plan.tier)
            }
            Self::To(_) => None,
            Self::Offered(Offering { to, plan, .. }) => {
                let agents = to.iter().map(|offered| offered.agent_id.clone()).collect();
                line(agents, &to.first()?.capability, plan.tier)
            }
        }
    }

    pub(crate) fn into_event(self) -> Event {
        match self {
            Self::To(Route { assignment, decision }) => Event::Assign { assignment, decision },
            Self::Offered(Offering { to, plan, decision }) => Event::Offer { to, plan, decision },
        }
    }
}

/// What the router decided, whatever it is.
fn decision_of(routed: &mut Result<Routed, Unroutable>) -> &mut Decision {
    match routed {
        Ok(Routed::To(Route { decision, .. }) | Routed::Offered(Offering { decision, .. }))
        | Err(Unroutable::NotNow { decision, .. } | Unroutable::Never { decision, .. }) => decision,
    }
}

impl Gateway {
    /// Asks the router who gets the task as it is, or who may claim it.
    pub(crate) fn route(
        &self,
        task: &Task,
        caller: &Caller,
        seat: Seat,
        yields: Option<Yields<'_>>,
        now: Timestamp,
    ) -> Result<Routed, Unroutable> {
        let ask = Ask {
            caller,
            target: &task.state.target,
            params: task.birth.submit.params.as_ref(),
            tried: task.state.tried().collect(),
            attempt: task.state.next_attempt(),
            turn: task.state.turn(self.open.is_orphan(task)),
            attempt_timeout: task.birth.submit.attempt_timeout,
            seat,
            yields,
        };
        let asked = Instant::now();
        let mut routed = self.ask_router(&ask, task.mode(), now);
        let took_us = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.metrics.routed(task.state.target.capability.as_ref(), took_us, now);
        decision_of(&mut routed).took_us = Some(took_us);
        routed
    }

    fn ask_router(&self, ask: &Ask<'_>, mode: Mode, now: Timestamp) -> Result<Routed, Unroutable> {
        let mut rng = self.rng();
        let mut fleet = self.fleet();
        match mode {
            Mode::Direct => fleet.route(ask, now, &mut rng).map(Routed::To),
            mode @ (Mode::Queue | Mode::Broadcast) => fleet.offer_to_all(ask, mode, now, &mut rng).map(Routed::Offered),
        }
    }
}
