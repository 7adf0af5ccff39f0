//! The fallback chain of a task: whose it is, and the next step down it.

use reach_schemas::{AgentId, CapabilityName, FallbackStep, RawJson, Span};

use super::phase::Phase;
use super::step::Next;
use super::{Plan, State, ending, human};

impl Next<'_> {
    /// The chain of the first agent that has the task and has a chain holds to the end, whoever tries it afterwards. A
    /// fallback's own chain is not entered.
    pub(super) fn lay_down(&mut self, mut plan: Plan) {
        let holds = self.state.chain_of.is_some() || self.state.fallbacks_taken > 0;
        if let (true, Some(first)) = (holds, &self.state.plan) {
            plan.fallback.clone_from(&first.fallback);
        }
        self.state.plan = Some(plan);
    }

    /// Has the chain of what is given out hold, if it has one and none holds yet.
    pub(super) fn hold_chain(&mut self, capability: &CapabilityName) {
        let has_chain = self.state.plan.as_ref().is_some_and(|plan| !plan.fallback.is_empty());
        if has_chain && self.state.fallbacks_taken == 0 {
            self.state.chain_of.get_or_insert_with(|| capability.clone());
        }
    }
}

impl State {
    /// What its chain stands in for: what was asked first. Before anything has stood in for it that is what is asked by
    /// name, or whose chain it is, or what was last given out or offered.
    fn asked_first(&self) -> Option<CapabilityName> {
        let first = || self.target.capability.clone().or_else(|| self.chain_of.clone());
        let offered = || self.phase.offered().first().map(|offer| offer.capability.clone());
        let last = || self.attempts.last().map(|attempt| attempt.capability.clone());
        let waits = || self.waits.as_ref().map(|waits| waits.capability.clone());
        self.fallback_from.clone().or_else(first).or_else(last).or_else(offered).or_else(waits)
    }

    /// The next step down the fallback chain of those that may be taken, and its place in it. A step that would send a
    /// write again that may have happened is passed over.
    pub(crate) fn next_fallback(&self, may: impl Fn(&FallbackStep) -> bool) -> Option<(usize, &FallbackStep)> {
        let asked = self.asked_first();
        let repeats = |step: &FallbackStep| match step {
            FallbackStep::Capability(name) => self.unsure.contains(name),
            FallbackStep::Agent(_) => asked.as_ref().is_some_and(|name| self.unsure.contains(name)),
            FallbackStep::Static(_) | FallbackStep::Instruction(_) | FallbackStep::Human(_) => false,
        };
        let chain = &self.plan.as_ref()?.fallback;
        let mut left = chain.iter().enumerate().skip(self.fallbacks_taken);
        left.find(|(_, step)| may(step) && !repeats(step))
    }
}

/// Takes the next step down the fallback chain, if there is one.
pub(super) fn fall_back(next: &mut Next<'_>) -> bool {
    step_down(next, |_| true)
}

/// Once the deadline has passed no agent is asked any more. What needs none is there still: a fixed answer, and a person,
/// for whom it was never to be done in time.
pub(super) fn ask_no_agent(next: &mut Next<'_>) -> bool {
    step_down(next, |step| match step {
        FallbackStep::Capability(_) | FallbackStep::Agent(_) => false,
        FallbackStep::Static(_) | FallbackStep::Instruction(_) | FallbackStep::Human(_) => true,
    })
}

fn step_down(next: &mut Next<'_>, may: impl Fn(&FallbackStep) -> bool) -> bool {
    let asked = next.state.asked_first();
    let Some((at, step)) = next.state.next_fallback(may) else { return false };
    let step = step.clone();
    next.state.fallbacks_taken = at + 1;
    if next.state.fallback_from.is_none() {
        next.state.fallback_from.clone_from(&asked);
    }
    match step {
        FallbackStep::Capability(capability) => ask(next, None, Some(capability)),
        FallbackStep::Agent(agent_id) => ask(next, Some(agent_id), asked),
        FallbackStep::Static(result) => next.finish(Phase::Completed { result }),
        FallbackStep::Instruction(text) => {
            let result = RawJson::of(&std::collections::BTreeMap::from([("instruction", text)]))
                .expect("a map of text to text can be written as JSON");
            next.finish(Phase::Completed { result });
        }
        FallbackStep::Human(queue) => human::ask(next, queue),
    }
    true
}

fn ask(next: &mut Next<'_>, to_agent: Option<AgentId>, capability: Option<CapabilityName>) {
    next.state.target.to_agent = to_agent;
    next.state.target.capability = capability;
    next.state.target.intent = None;
    (next.state.tries_used, next.state.begun_after) = (0, next.state.token);
    next.state.waits = None;
    ending::again(next, Span::ZERO);
}
