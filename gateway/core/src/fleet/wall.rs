//! The operator's policy as it stands, and what of an agent others are shown.

use std::sync::Arc;

use reach_schemas::call::AgentView;
use reach_schemas::{Action, AgentId, Explanation, Failure, Suggestion, TaskView, Timestamp};

use super::{Fleet, Node};
use crate::access::policy::{Policy, Rulings};
use crate::access::{self, Caller};

/// For how many agents it is remembered what the policy says of them.
const RULINGS_MAX: usize = 4096;

impl Fleet {
    /// The policy that stands.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Puts a policy in the place of the one that stands, unless that one is newer. It holds for all that is asked from
    /// then on.
    pub fn set_policy(&mut self, policy: Policy) {
        if policy.version() >= self.policy.version() {
            self.policy = policy;
            self.rulings.get_mut().clear();
        }
    }

    pub(super) fn rulings_of(&self, agent: &AgentId) -> Arc<Rulings> {
        let mut known = self.rulings.borrow_mut();
        if let Some(rulings) = known.get(agent) {
            return Arc::clone(rulings);
        }
        if known.len() >= RULINGS_MAX {
            known.clear();
        }
        let rulings = self.policy.of(agent);
        known.insert(agent.clone(), Arc::clone(&rulings));
        rulings
    }

    /// The agent as the caller may see it. None: there is none that it may know of. Itself, and to the operator, it is
    /// shown whole; to others without what is its owner's affair, and may name what they may not know of: who may call it,
    /// what stands in for it, who hears of its failures, and capabilities that they may not list.
    #[must_use]
    pub fn seen_by(&self, caller: &Caller, agent: &AgentId, now: Timestamp) -> Option<AgentView> {
        let node = self.node(agent)?;
        let Caller::Agent { id, .. } = caller else { return Some(node.view(self.in_flight(agent), now)) };
        if id == agent {
            return Some(node.view(self.in_flight(agent), now));
        }
        if !access::may_list(caller, agent, &node.card.access) {
            return None;
        }
        let mut view = node.view(self.in_flight(agent), now);
        let may_see = |name: &_| access::allows(caller, Action::List, agent, &node.card.access, Some(name)).is_ok();
        view.breakers.retain(|name, _| may_see(name));
        view.card.capabilities.retain(|capability| may_see(&capability.name));
        view.card.capabilities.iter_mut().for_each(|capability| capability.fallback.clear());
        view.card.access = reach_schemas::Access::default();
        view.card.on_failure_callbacks.clear();
        view.card.probe.command = None;
        Some(view)
    }

    /// A task as its caller may see it now: nothing in it names what the caller may not know of any more, save the agents
    /// that had the task.
    #[must_use]
    pub fn task_seen_by(&self, caller: &Caller, mut view: TaskView) -> TaskView {
        if let Some(failure) = &mut view.failure {
            self.keep_known(caller, failure);
        }
        view
    }

    /// The decisions of a task as its caller may see them now.
    #[must_use]
    pub fn explanation_seen_by(&self, caller: &Caller, mut explanation: Explanation) -> Explanation {
        explanation.task = self.task_seen_by(caller, explanation.task);
        for decision in &mut explanation.decisions {
            decision.candidates.retain(|candidate| self.may_know(caller, &candidate.agent_id));
            decision.suggestions.retain(|near| self.may_know(caller, &near.agent_id));
        }
        explanation
    }

    fn keep_known(&self, caller: &Caller, failure: &mut Failure) {
        failure.suggestions.retain(|near: &Suggestion| self.may_know(caller, &near.agent_id));
    }

    /// Whether the caller may know of an agent. Of one that is gone there is no card: then it is as if it had none.
    fn may_know(&self, caller: &Caller, agent: &AgentId) -> bool {
        let access = self.node(agent).map(|node: &Node| node.card.access.clone()).unwrap_or_default();
        caller.agent_id() == Some(agent) || access::may_list(caller, agent, &access)
    }
}
