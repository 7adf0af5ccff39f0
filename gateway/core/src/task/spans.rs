//! The spans of a task, in the sense of W3C Trace Context. Their ids are made of the task's id and of what they stand for, so
//! that a gateway that has started anew, or another one, gives the same span the same id.

use reach_schemas::{FencingToken, SpanId, TaskId, TraceId, Traceparent};

use super::Task;

/// What a span of a task stands for. The numbers are part of what is on record: they stay.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// All of it, from being taken on or redriven to its end.
    Whole = 1,
    /// One attempt.
    Attempt = 2,
}

/// The trace that begins with a task, if its caller brought none: it has the task's id, so that who has one has the other.
#[must_use]
pub fn trace_of(id: TaskId) -> TraceId {
    TraceId::new(u128::from_be_bytes(*id.as_bytes())).expect("a UUID of version 7 has a version, which is not zero")
}

/// The context of a task that nothing stands above: its trace begins with it.
#[must_use]
pub fn begun(id: TaskId, is_sampled: bool) -> Traceparent {
    Traceparent::new(trace_of(id), span(id, Kind::Whole, FencingToken(0)), is_sampled)
}

/// Whether a new trace is among the share of traces that are recorded. All who decide by the same share, in whatever
/// process, decide alike (W3C Trace Context level 2, section 3.2.2.3).
#[must_use]
pub fn is_sampled(trace: TraceId, share: f64) -> bool {
    let whole = (1_u64 << 56) as f64;
    trace.randomness() as f64 >= (1.0 - share.clamp(0.0, 1.0)) * whole
}

fn span(id: TaskId, kind: Kind, number: FencingToken) -> SpanId {
    let id = u128::from_be_bytes(*id.as_bytes());
    let folded = (id as u64) ^ mixed((id >> 64) as u64);
    let number = mixed(mixed(folded ^ ((kind as u64) << 56)) ^ number.0);
    // One id in 2^64 would be zero, which stands for no id.
    SpanId::new(number).or(SpanId::new(1)).expect("1 is not zero")
}

/// Sends each number to another, so that near ones come to lie far apart (the finalizer of splitmix64, Steele, Lea and
/// Flood 2014).
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Task {
    /// What the task hangs under. One that was stored before traces were kept begins its own, which is not recorded.
    fn above(&self) -> Traceparent {
        self.birth.submit.traceparent.unwrap_or_else(|| begun(self.id(), false))
    }

    /// The span that the task hangs under. None: the trace begins with it.
    #[must_use]
    pub fn parent_span(&self) -> Option<SpanId> {
        let (above, own) = (self.above(), span(self.id(), Kind::Whole, FencingToken(0)));
        (above.parent_id() != own).then(|| above.parent_id())
    }

    /// The context of the task as a whole, since it was taken on or last sent again: what its parts hang under.
    #[must_use]
    pub fn span(&self) -> Traceparent {
        self.above().under(span(self.id(), Kind::Whole, self.state.redriven_after))
    }

    /// The context of an attempt, as its agent gets it: however often it is delivered, it is the same.
    #[must_use]
    pub fn attempt_span(&self, token: FencingToken) -> Traceparent {
        self.above().under(span(self.id(), Kind::Attempt, token))
    }
}

#[cfg(test)]
mod tests {
    use reach_schemas::{Span, Submit, Timestamp};

    use super::*;
    use crate::task::Birth;

    fn task(n: u64, traceparent: Option<Traceparent>) -> Task {
        let id = TaskId::from_parts(1_700_000_000_000, u128::from(n) << 24);
        let submit = Submit { traceparent, ..Submit::default() };
        let created_at = Timestamp::from_ms(0);
        let birth = Birth { id, scope: String::new(), has_scoped_key: true, submit, created_at };
        Task::new(birth, Span::from_secs(1))
    }

    #[test]
    fn a_task_hangs_under_its_caller_and_an_attempt_is_of_the_same_trace() {
        let caller: Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap();
        let task = task(7, Some(caller));
        assert_eq!(task.parent_span(), Some(caller.parent_id()));
        let (own, first) = (task.span(), task.attempt_span(FencingToken(1)));
        assert_eq!((own.trace_id(), first.trace_id()), (caller.trace_id(), caller.trace_id()));
        assert!(first.is_sampled());
        // Golden: an id that changed would break the traces of tasks that are open while the gateway is replaced.
        assert_eq!(first.to_string(), "00-0af7651916cd43dd8448eb211c80319c-e1cb206ef1f7f8b6-01");
    }

    #[test]
    fn without_a_caller_the_trace_has_the_tasks_id_and_begins_with_it() {
        let id = task(7, None).id();
        let task = task(7, Some(begun(id, true)));
        assert_eq!((task.parent_span(), task.span()), (None, begun(id, true)));
        assert_eq!(task.span().trace_id().to_string(), id.to_string().replace('-', ""));
    }

    #[test]
    fn no_two_spans_have_the_same_id() {
        let ids: std::collections::BTreeSet<SpanId> = (0..200)
            .flat_map(|n| {
                let task = task(n, None);
                let attempts = (1..50).map(move |token| task.attempt_span(FencingToken(token)).parent_id());
                attempts.chain([self::task(n, None).span().parent_id()])
            })
            .collect();
        assert_eq!(ids.len(), 200 * 50);
    }

    #[test]
    fn a_share_of_traces_is_recorded() {
        let ids = (0..2000).map(|n| trace_of(TaskId::from_parts(1, u128::from(mixed(n)) << 16)));
        let kept = |share| ids.clone().filter(|id| is_sampled(*id, share)).count();
        assert_eq!((kept(0.0), kept(1.0)), (0, 2000));
        assert!((400..600).contains(&kept(0.25)), "{}", kept(0.25));
    }
}
