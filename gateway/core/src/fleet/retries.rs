//! Retry budgets in the fleet: each agent's, each caller's, and the pace of what a restart lost.

use reach_schemas::{Lack, Reason, Timestamp};

use super::filter::{lack, pulls};
use super::node::Node;
use super::{Ask, Fleet};
use crate::retry::{Budget, Turn};

/// Of so many callers a budget is kept; those that have been idle go first.
const CALLERS_MAX: usize = 10_000;

impl Fleet {
    /// Why this try may not be sent to anybody just now, whoever it is.
    pub(super) fn turn_lack(&self, ask: &Ask<'_>, now: Timestamp) -> Option<Lack> {
        match ask.turn {
            Turn::First | Turn::Returned => None,
            Turn::Retry => {
                let budget = self.callers.get(&ask.caller.to_string())?;
                let free_at = budget.next_at(self.settings.retries.caller, now);
                let wait = || lack(Reason::RetryBudget, "the caller has had its share of retries", Some(free_at));
                (free_at > now).then(wait)
            }
            Turn::Orphan => {
                let free_at = self.orphans.free_at(now);
                let wait = || lack(Reason::RetryBudget, "a restart's lost attempts are sent at a pace", Some(free_at));
                (free_at > now).then(wait)
            }
        }
    }

    /// Whether the agent has had its share of retries. One that pulls its work sets its own pace.
    pub(super) fn budget_lack(&self, ask: &Ask<'_>, node: &Node, now: Timestamp) -> Option<Lack> {
        if ask.turn != Turn::Retry || pulls(node) {
            return None;
        }
        let free_at = node.budget.next_at(self.settings.retries.agent, now);
        let wait = || lack(Reason::RetryBudget, "it has had its share of retries", Some(free_at));
        (free_at > now).then(wait)
    }

    /// Notes a try that is about to be sent.
    pub(super) fn count_turn(&mut self, ask: &Ask<'_>, agent: &reach_schemas::AgentId, now: Timestamp) {
        match ask.turn {
            Turn::First => {
                self.budget_of_caller(ask, now).deposit(now);
                if let Some(node) = self.node_mut(agent) {
                    node.budget.deposit(now);
                }
            }
            Turn::Returned => {}
            Turn::Retry => {
                let shares = self.settings.retries;
                self.budget_of_caller(ask, now).try_withdraw(shares.caller, now);
                if let Some(node) = self.node_mut(agent).filter(|node| !pulls(node)) {
                    node.budget.try_withdraw(shares.agent, now);
                }
            }
            Turn::Orphan => {
                self.orphans.try_take(now);
            }
        }
    }

    fn budget_of_caller(&mut self, ask: &Ask<'_>, now: Timestamp) -> &mut Budget {
        if self.callers.len() >= CALLERS_MAX {
            self.callers.retain(|_, budget| !budget.is_idle(now));
        }
        self.callers.entry(ask.caller.to_string()).or_default()
    }
}
