//! Work that makes way for more urgent work: only work that its agent says can be stopped, that may be repeated, and
//! that is clearly less urgent. What is stopped goes back to wait and has lost no try.

use fastrand::Rng;
use reach_schemas::{ErrorCode, Failure, FencingToken, Span, TaskId};

use super::step::{Next, Refusal};
use super::{Task, ending};

/// How much higher a priority must be for work in hand to make way for it: work that has begun is worth something.
pub const GAP: u8 = 3;
/// For so long what was stopped stands back, so that what it made way for has the seat before it does.
pub(super) const STANDS_BACK: Span = Span::from_secs(1);
/// So often one task makes way, at most, until it gets its turn.
const STOPS_MAX: usize = 3;

/// Of the tasks that agents work on, the one that makes way for work of this priority: the least urgent, and of those
/// the one that began last and so has least to lose. None: none does.
#[must_use]
pub fn victim<'a>(working: impl IntoIterator<Item = &'a Task>, priority: u8) -> Option<(TaskId, FencingToken)> {
    let may = working.into_iter().filter(|task| makes_way(task, priority));
    let last = may.min_by_key(|task| {
        let began = task.live_attempt().map(|attempt| attempt.started_at);
        (task.birth.priority(), std::cmp::Reverse(began), task.id())
    })?;
    Some((last.id(), last.live_attempt()?.token))
}

/// Whether the live attempt of a task may be stopped for work of this priority.
fn makes_way(task: &Task, priority: u8) -> bool {
    let may_stop = task.state.plan.as_ref().is_some_and(|plan| plan.cancellable && plan.effect.is_repeatable());
    let own = task.state.attempts.iter().filter(|attempt| attempt.token > task.state.begun_after);
    let given_back = own.filter(|attempt| attempt.is_given_back()).count();
    may_stop
        && task.live_attempt().is_some()
        && task.birth.priority().saturating_add(GAP) <= priority
        && given_back < STOPS_MAX
}

pub(super) fn give_way(next: &mut Next<'_>, priority: u8, rng: &mut Rng) -> Result<(), Refusal> {
    if !makes_way(next.task, priority) {
        return Err(next.wrong_phase());
    }
    let message = format!("it was stopped to make way for work of priority {priority}");
    ending::stopped(next, Failure::new(ErrorCode::Overloaded, message), rng);
    Ok(())
}
