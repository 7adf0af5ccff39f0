//! Which task and which span whatever runs just now belongs to. Log lines read it when they are written, and cost nothing
//! for it when they are not; the spans of `tracing` would be paid for by each task, and be gone from warnings as soon as
//! a filter leaves out what is only information.

use std::cell::Cell;

use reach_core::task::Task;
use reach_core::task::spans::{begun, is_sampled, trace_of};
use reach_schemas::{SpanId, TaskId, Traceparent};

tokio::task_local! {
    static CURRENT: Cell<Scope>;
}

/// A task and a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scope {
    /// The task.
    pub reach_id: Option<TaskId>,
    /// The span, as what hangs under it gets it.
    pub span: Option<Traceparent>,
    /// What the span hangs under, if this is a request.
    pub(super) parent: Option<SpanId>,
}

/// An id that no other span has.
pub(super) fn new_span_id() -> SpanId {
    SpanId::new(fastrand::u64(1..)).expect("the range begins at 1")
}

impl Scope {
    /// The one that this runs in. None: it belongs to no request and no task.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Cell::get).ok()
    }

    /// Of a request that came with a trace, or without.
    pub(super) fn of_request(parent: Option<Traceparent>) -> Self {
        let span = parent.map(|parent| parent.under(new_span_id()));
        Self { reach_id: None, span, parent: parent.map(|parent| parent.parent_id()) }
    }

    /// Of what is done for a task: its live attempt, or all of it.
    #[must_use]
    pub fn of_task(task: &Task) -> Self {
        let span = task.live_attempt().map_or_else(|| task.span(), |attempt| task.attempt_span(attempt.token));
        Self { reach_id: Some(task.id()), span: Some(span), parent: None }
    }

    /// Runs a future in this scope.
    pub fn within<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(Cell::new(self), future)
    }

    /// Runs a function in this scope.
    pub fn enter<T>(self, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(Cell::new(self), work)
    }

    /// From now on, whatever runs here is about this task.
    pub fn is_about(reach_id: TaskId) {
        // Outside of a request nobody asks.
        let _ = CURRENT.try_with(|scope| scope.set(Self { reach_id: Some(reach_id), ..scope.get() }));
    }

    /// The context that a new task hangs under: the request that runs here, which hangs under what its caller named. Without
    /// a caller's, a trace begins, and is recorded if it is among this share of all.
    #[must_use]
    pub fn adopt(id: TaskId, asked: Option<Traceparent>, share: f64) -> Traceparent {
        let is_recorded = || is_sampled(trace_of(id), share);
        let adopted = CURRENT.try_with(|scope| {
            let own = scope.get();
            let parent = asked.map(|asked| asked.parent_id());
            let span = match (asked, own.span) {
                (Some(asked), Some(span)) if own.parent == parent && span.trace_id() == asked.trace_id() => span,
                (Some(asked), _) => asked.under(new_span_id()),
                (None, _) => Traceparent::new(trace_of(id), new_span_id(), is_recorded()),
            };
            scope.set(Self { reach_id: Some(id), span: Some(span), parent });
            span
        });
        adopted.unwrap_or_else(|_| asked.unwrap_or_else(|| begun(id, is_recorded())))
    }
}
