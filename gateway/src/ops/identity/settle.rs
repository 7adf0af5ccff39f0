//! The one place where it becomes durable, and only then so, that somebody is known otherwise than before.

use reach_core::audit::Event;
use reach_core::identity::Principal;
use reach_schemas::{AuditKind, Failure};

use crate::gateway::Gateway;
use crate::store::{Command, IdentityRow, Outcome};

/// A change of who is known.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// Somebody is known so from now on.
    Put(IdentityRow),
    /// Somebody, or a token that lets somebody in, is known no more.
    Take(IdentityRow),
}

impl Gateway {
    /// Makes a change durable together with what is written down of it, and then has it stand. False: what was to be taken
    /// was taken before.
    ///
    /// # Errors
    /// It cannot be stored; then nothing has changed.
    pub(super) async fn keep_identity(&self, change: Change, told: Vec<Event>) -> Result<bool, Failure> {
        let command = match &change {
            Change::Put(row) => Command::PutIdentity(row.clone()),
            Change::Take(row) => Command::TakeIdentity(row.clone()),
        };
        let outcome = self.committer.submit(command.audited(told)).await?;
        match change {
            Change::Put(row) => self.identity.put(row),
            Change::Take(row) => self.identity.remove(&row),
        }
        Ok(!matches!(outcome, Outcome::Conflict { .. }))
    }

    /// What is written down of an agent that has shown its key.
    pub(super) fn admitted(&self, agent: &Principal) -> Event {
        let event = self.audit_event(AuditKind::AgentAdmitted, agent.agent_id.as_str()).on(agent.agent_id.as_str());
        event.because(format!("generation {}", agent.generation))
    }
}
