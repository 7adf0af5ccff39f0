//! How many open tasks there are, by phase, and how many of them wait, by tier.

use std::collections::BTreeMap;

use reach_core::task::Task;
use reach_schemas::PhaseName;
use reach_schemas::call::Waiting;

/// How many there are of which kind.
#[derive(Debug, Clone, Default)]
pub struct Census {
    /// In which phase.
    pub phases: BTreeMap<PhaseName, u64>,
    /// Waiting for an agent.
    pub waiting: Waiting,
    /// Waiting for a person, or with one.
    pub before_people: usize,
}

impl Census {
    pub(super) fn add(&mut self, task: &Task) {
        *self.phases.entry(task.state.phase.name()).or_default() += 1;
        if let Some(waiting) = self.waits(task) {
            *waiting += 1;
        }
    }

    pub(super) fn take(&mut self, task: &Task) {
        if let Some(count) = self.phases.get_mut(&task.state.phase.name()) {
            *count = count.saturating_sub(1);
        }
        if let Some(waiting) = self.waits(task) {
            *waiting = waiting.saturating_sub(1);
        }
    }

    /// Among whom the task waits for an agent, if it does.
    fn waits(&mut self, task: &Task) -> Option<&mut u64> {
        let tier = task.state.plan.as_ref().map(|plan| plan.tier);
        let is_before_people = task.state.phase.human_lease().is_some();
        (task.state.phase.name() == PhaseName::Submitted && !is_before_people).then(|| self.waiting.of(tier))
    }
}
