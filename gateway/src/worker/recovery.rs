//! Picks up after a start: agents as they were stored, and every open task.

use std::sync::Arc;

use reach_core::fleet::Checked;

use crate::gateway::Gateway;
use crate::store;

/// How many open tasks are read at a time.
const PAGE: u32 = 1000;

/// What a start found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// How many agents.
    pub agents: usize,
    /// How many open tasks.
    pub tasks: usize,
}

/// Reads agents and open tasks back. To be called once, before anything else runs.
///
/// # Errors
/// The store cannot be read.
pub async fn recover(gateway: &Arc<Gateway>) -> Result<Recovered, store::Error> {
    let mut recovered = Recovered::default();
    for row in gateway.store.agents().await? {
        let agent = row.card.agent_id.clone();
        gateway.outbox.card_changed(&agent, row.changed_at);
        match Checked::new(row.card) {
            Ok(checked) => {
                let now = gateway.now();
                gateway.fleet().restore(checked, row.generation, row.registered_at, row.draining, now);
                recovered.agents += 1;
            }
            Err(error) => {
                tracing::error!(%agent, %error, "a stored card is no longer valid; the agent must register again")
            }
        }
    }
    let mut after = None;
    loop {
        let page = gateway.store.open_after(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id());
        recovered.tasks += page.len();
        let now = gateway.now();
        gateway.fleet().recount_more(&page, now);
        for task in page {
            gateway.open.orphan(&task);
            gateway.open.put(&Arc::new(task));
        }
    }
    Ok(recovered)
}
