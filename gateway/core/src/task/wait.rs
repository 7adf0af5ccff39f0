//! A task that nobody can take now: how long it waits, and when it goes down its fallback chain instead.

use reach_schemas::{Span, Timestamp};

use super::chain;
use super::event::Wanted;
use super::phase::Phase;
use super::step::{Next, Refusal};
use super::{Plan, Waits};

/// Looks again at `until`. If none of those that offer what is wanted is well and there, it waits for one of them as long
/// as one attempt may take, and half of the time to its deadline at most; then it takes the next step of its chain. While
/// they are merely busy it waits its turn.
pub(super) fn defer(next: &mut Next<'_>, until: Timestamp, wanted: Option<Wanted>) -> Result<(), Refusal> {
    next.waiting()?;
    let mut not_before = until;
    if let Some(Wanted { capability, plan, is_out }) = wanted {
        let waited = next.state.waits.take().and_then(|waits| waits.out_since);
        let out_since = is_out.then(|| waited.unwrap_or(next.now));
        next.state.waits = Some(Waits { capability, out_since });
        let patience = patience(&plan);
        next.lay_down(plan);
        if let Some(since) = out_since
            && next.state.next_fallback(|_| true).is_some()
        {
            let half = Span::from_ms(next.state.deadline_at.since(since).as_ms() / 2);
            let by = since + patience.min(half);
            if by <= next.now && chain::fall_back(next) {
                return Ok(());
            }
            not_before = until.min(by);
        }
    }
    next.state.phase = Phase::Submitted { not_before, offered: Vec::new() };
    Ok(())
}

/// For how long a task waits for somebody who is not there: a try at one who is might take as long.
const fn patience(plan: &Plan) -> Span {
    plan.attempt_timeout
}
