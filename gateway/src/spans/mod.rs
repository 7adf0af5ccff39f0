//! Spans: what was done for a trace, in the sense of OpenTelemetry, and the context that log lines carry. A span is made
//! once it has ended, most of them from instants that are stored with the task, and goes into a bounded queue if somebody
//! exports it. Nothing here sends anything, and nobody ever waits here.

mod request;
mod scope;
mod tasks;

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use reach_schemas::{SpanId, Timestamp, Traceparent};
use tokio::sync::mpsc;

pub use request::Asked;
pub use scope::Scope;
pub use tasks::Stepping;

use crate::clock::Clock;

/// How many spans may wait to be exported; what comes beyond is dropped and counted.
const QUEUE_MAX: usize = 8192;

/// A point in time, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl From<Timestamp> for Nanos {
    fn from(at: Timestamp) -> Self {
        Self(at.as_ms().saturating_mul(1_000_000))
    }
}

/// Which side of a call a span tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The gateway was called.
    Server,
    /// The gateway called an agent.
    Client,
    /// The gateway laid it out for an agent to take.
    Producer,
    /// It happened within the gateway.
    Internal,
}

/// What is told of a span.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text.
    Text(Cow<'static, str>),
    /// A whole number.
    Number(i64),
    /// A claim.
    Flag(bool),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Its trace, its own id, and whether it is to be recorded.
    pub context: Traceparent,
    /// What it hangs under. None: the trace begins with it.
    pub parent: Option<SpanId>,
    /// Whether that is in another process.
    pub is_parent_remote: bool,
    /// Which side of a call it tells of.
    pub side: Side,
    /// What was done.
    pub name: Cow<'static, str>,
    /// When it began.
    pub began: Nanos,
    /// When it ended.
    pub ended: Nanos,
    /// What is told of it.
    pub attributes: Vec<(&'static str, Value)>,
    /// What happened meanwhile.
    pub events: Vec<(Nanos, &'static str)>,
    /// Why it did not end well.
    pub error: Option<String>,
}

/// How many spans went where since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Sent to the receiver, which took them.
    pub exported: u64,
    /// Not sent, for want of room in the queue.
    pub dropped: u64,
    /// Sent, and not taken.
    pub failed: u64,
}

/// Where spans go.
#[derive(Debug)]
pub struct Spans {
    clock: Clock,
    queue: OnceLock<mpsc::Sender<Ended>>,
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Spans {
    /// They go nowhere, until somebody asks for them.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            queue: OnceLock::new(),
            exported: AtomicU64::default(),
            dropped: AtomicU64::default(),
            failed: AtomicU64::default(),
        }
    }

    /// Has spans of sampled traces put into a queue from now on. None: somebody has them already.
    #[must_use]
    pub fn queue(&self) -> Option<mpsc::Receiver<Ended>> {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        self.queue.set(sender).is_ok().then_some(receiver)
    }

    /// Whether anybody wants to have the spans of this trace.
    #[must_use]
    pub fn are_wanted(&self, context: &Traceparent) -> bool {
        context.is_sampled() && self.queue.get().is_some()
    }

    /// Now, if anybody wants to have the spans of this trace: when one of them begins.
    #[must_use]
    pub fn begin(&self, context: &Traceparent) -> Option<Nanos> {
        self.are_wanted(context).then(|| self.now())
    }

    fn now(&self) -> Nanos {
        Nanos(self.clock.unix_nanos())
    }

    /// Takes a span that somebody wants. It is dropped and counted if the queue is full.
    pub fn put(&self, span: Ended) {
        if self.queue.get().is_some_and(|queue| queue.try_send(span).is_err()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// So many were sent, and taken or not.
    pub fn sent(&self, count: usize, is_taken: bool) {
        let counter = if is_taken { &self.exported } else { &self.failed };
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// How many went where.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts { exported: read(&self.exported), dropped: read(&self.dropped), failed: read(&self.failed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(is_sampled: bool) -> Ended {
        let flags = if is_sampled { "01" } else { "00" };
        Ended {
            context: format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}").parse().unwrap(),
            parent: None,
            is_parent_remote: false,
            side: Side::Internal,
            name: "test".into(),
            began: Nanos(1),
            ended: Nanos(2),
            attributes: Vec::new(),
            events: Vec::new(),
            error: None,
        }
    }

    #[tokio::test]
    async fn what_does_not_fit_is_dropped_and_counted_and_nobody_waits() {
        let spans = Spans::new(Clock::start());
        assert!(!spans.are_wanted(&span(true).context), "nobody exports them");
        let mut queue = spans.queue().unwrap();
        assert!(spans.queue().is_none(), "there is one queue");
        assert!(spans.are_wanted(&span(true).context) && !spans.are_wanted(&span(false).context));
        for _ in 0..QUEUE_MAX + 3 {
            spans.put(span(true));
        }
        assert_eq!(spans.counts().dropped, 3);
        assert_eq!(queue.recv_many(&mut Vec::new(), QUEUE_MAX * 2).await, QUEUE_MAX);
    }
}
