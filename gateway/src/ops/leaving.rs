//! What was taken out of the configuration and still works: it gets no new work, ends what it has, and is forgotten then.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};

use reach_core::task::{Event, Task, event::Trace};
use reach_schemas::{AgentId, AuditKind, ErrorCode, Failure, FencingToken, Protocol, TaskId};

use crate::gateway::Gateway;
use crate::store::Command;
use crate::upstream::server::Server;

/// What was taken out of the configuration and still works.
#[derive(Default)]
pub struct Leaving {
    pub(crate) agents: BTreeSet<AgentId>,
    pub(crate) servers: Vec<LeavingServer>,
}

/// A server that is asked nothing new, and closed once what it was asked has ended.
pub(crate) struct LeavingServer {
    pub(crate) server: Arc<Server>,
    /// What it may still be working on.
    pub(crate) attempts: Vec<(TaskId, FencingToken)>,
    /// Its agents, if they go with it. They are gone before it is.
    pub(crate) agents: Vec<AgentId>,
}

impl Gateway {
    pub(crate) fn leaving(&self) -> MutexGuard<'_, Leaving> {
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets those that have ended what they had.
    pub(crate) async fn see_off(&self) {
        {
            let leaving = self.leaving();
            if leaving.agents.is_empty() && leaving.servers.is_empty() {
                return;
            }
        }
        let _one_at_a_time = self.configuration.changing.lock().await;
        self.see_off_now().await;
    }

    /// As [`Self::see_off`], for who holds `changing` already.
    pub(super) async fn see_off_now(&self) {
        let agents = self.leaving().agents.clone();
        for agent in agents {
            self.hand_back_unpulled(&agent).await;
            if self.has_work(&agent) {
                continue;
            }
            match self.forget(&agent).await {
                Ok(()) => tracing::info!(%agent, "was taken out of the configuration, and is gone"),
                Err(failure) => tracing::warn!(%agent, why = %failure.message, "cannot be forgotten yet"),
            }
        }
        let gone = {
            let mut leaving = self.leaving();
            let Leaving { agents, servers } = &mut *leaving;
            let may_go = |server: &LeavingServer| {
                server.agents.iter().all(|agent| !agents.contains(agent))
                    && server.attempts.iter().all(|(task, token)| !self.is_at_work(*task, *token))
            };
            servers.extract_if(.., |server| may_go(server)).collect::<Vec<_>>()
        };
        for LeavingServer { server, .. } in gone {
            self.upstreams.remove(&server).await;
        }
    }

    fn has_work(&self, agent: &AgentId) -> bool {
        self.fleet().in_flight(agent) > 0 || !self.open.held_by(agent).is_empty()
    }

    fn is_at_work(&self, task: TaskId, token: FencingToken) -> bool {
        self.open.get(task).and_then(|task| Some(task.live_attempt()?.token)) == Some(token)
    }

    /// What lies there for an agent to be pulled will not be: it goes to another.
    async fn hand_back_unpulled(&self, agent: &AgentId) {
        for (task_id, token) in self.open.held_by(agent) {
            if !self.open.get(task_id).is_some_and(|task| is_unpulled(&task)) {
                continue;
            }
            let failure = Failure::new(ErrorCode::AgentLost, format!("{agent} was taken out of the configuration"));
            // Whether it was pulled meanwhile is known only when the step is taken. One that has ended needs none.
            let _ = self.apply(task_id, Event::Fail { token, failure, trace: Trace::Unknown }).await;
        }
    }

    async fn forget(&self, agent: &AgentId) -> Result<(), Failure> {
        let audit = self.audit_event(AuditKind::AgentDeregistered, "configuration").on(agent.as_str());
        self.committer.submit(Command::RemoveAgent(agent.clone()).audited(vec![audit])).await?;
        self.leaving().agents.remove(agent);
        self.own.lock().unwrap_or_else(PoisonError::into_inner).remove(agent);
        self.fleet().remove(agent);
        self.cards.send_modify(|version| *version += 1);
        Ok(())
    }
}

fn is_unpulled(task: &Task) -> bool {
    task.live_attempt().is_some_and(|attempt| attempt.protocol == Protocol::Queue && attempt.delivered_at.is_none())
}
