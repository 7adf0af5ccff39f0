//! Picks up after a start: agents as they were stored, who is known, and every open task.

use std::sync::{Arc, PoisonError};

use reach_core::fleet::{Checked, server_name};
use reach_schemas::AuditKind;

use crate::gateway::Gateway;
use crate::store::{self, AgentRow, Command};

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

/// Reads agents, identities and open tasks back. To be called once, before anything else runs.
///
/// # Errors
/// The store cannot be read.
pub async fn recover(gateway: &Arc<Gateway>) -> Result<Recovered, store::Error> {
    let mut recovered = Recovered::default();
    for row in gateway.store.agents().await? {
        let agent = row.card.agent_id.clone();
        if !recover_server(gateway, &row) {
            tracing::info!(%agent, "its MCP server is not in the configuration any more; the agent is forgotten");
            let audit = gateway.audit_event(AuditKind::AgentDeregistered, "configuration").on(agent.as_str());
            gateway.committer.submit(Command::RemoveAgent(agent).audited(vec![audit])).await?;
            continue;
        }
        gateway.outbox.card_changed(&agent, row.changed_at);
        if row.configured {
            gateway.own.lock().unwrap_or_else(PoisonError::into_inner).insert(agent.clone());
        }
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
    for row in gateway.store.identities().await? {
        gateway.identity.put(row);
    }
    recovered.tasks = recover_tasks(gateway).await?;
    Ok(recovered)
}

async fn recover_tasks(gateway: &Arc<Gateway>) -> Result<usize, store::Error> {
    let (mut after, mut count) = (None, 0);
    loop {
        let page = gateway.store.open_after(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id());
        count += page.len();
        let now = gateway.now();
        gateway.fleet().recount_more(&page, now);
        for task in page {
            gateway.open.orphan(&task);
            gateway.open.put(&Arc::new(task));
        }
    }
    Ok(count)
}

/// Has an MCP server, whose agent this is, known again: its tools can be called before it was asked anew. False: it is
/// nobody's any more.
fn recover_server(gateway: &Gateway, row: &AgentRow) -> bool {
    let Some(name) = server_name(&row.card) else { return true };
    let upstreams = gateway.upstreams();
    let server = match (upstreams.get(name), &row.server) {
        (Some(server), _) => server,
        (None, Some(spec)) => upstreams.put(spec.clone(), false).0,
        (None, None) => return false,
    };
    server.remember(&row.card);
    gateway.own.lock().unwrap_or_else(PoisonError::into_inner).insert(row.card.agent_id.clone());
    true
}
