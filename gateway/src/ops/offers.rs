//! Work that waits to be pulled, shown to agents that come, or come back, after it was offered.

use std::sync::Arc;

use reach_core::bulkhead::Seat;
use reach_core::task::{Phase, Task};
use reach_schemas::call::TaskRef;
use reach_schemas::method::push;
use reach_schemas::{AgentId, FencingToken};

use super::route::Routed;
use crate::gateway::Gateway;

/// How many offers an agent is shown when it comes.
const SHOWN_MAX: usize = 64;

impl Gateway {
    /// Tells a connected agent what it may claim already.
    pub(crate) fn show_offers(&self, agent: &AgentId) {
        for task_id in self.open.claimable(agent, SHOWN_MAX) {
            self.sessions.notify(agent, push::OFFER, &TaskRef { task_id });
        }
    }

    /// Offers open work anew, now that there is an agent more, or one that offers something else.
    pub(crate) fn offer_anew(&self) {
        let Some(gateway) = self.me.upgrade() else { return };
        let offered: Vec<Arc<Task>> = self.open.all().into_iter().filter(|task| is_offered(task)).collect();
        if offered.is_empty() {
            return;
        }
        tokio::spawn(async move {
            for task in offered {
                gateway.offer_one_anew(&task).await;
            }
        });
    }

    async fn offer_one_anew(&self, task: &Arc<Task>) {
        let caller = self.caller_of(task);
        let seat = Seat { task_id: task.id(), token: FencingToken(task.state.token.0 + 1) };
        let Ok(Routed::Offered(offering)) = self.route(task, &caller, seat, None, self.now()) else { return };
        let is_new = offering.to.iter().any(|offer| task.state.phase.offered_to(&offer.agent_id).is_none());
        if is_new {
            // One that was claimed or cancelled meanwhile needs no offer.
            let _ = self.apply_to(task, Routed::Offered(offering).into_event()).await;
        }
    }
}

fn is_offered(task: &Task) -> bool {
    matches!(&task.state.phase, Phase::Submitted { offered, .. } if !offered.is_empty())
}
