//! How an agent has been doing, as probes ask for it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reach_schemas::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// The failure rate looks back so many minutes.
const MINUTES: usize = 10;

/// The answer to a probe.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// How many tasks it holds beside those it works on.
    pub queue_depth: u32,
    /// What share of the tasks that ended in the last 10 minutes failed, 0 to 1.
    pub failure_rate_10m: f64,
    /// When a task last succeeded. `None`: none has yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success_at: Option<Timestamp>,
    /// How long the last task took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_task_ms: Option<u64>,
}

/// What the report is made of: one bucket a minute, the oldest one used again.
pub(super) struct Record {
    began_at: Instant,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    buckets: [Bucket; MINUTES],
    last_success_at: Option<Timestamp>,
    last_task_ms: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Bucket {
    minute: u64,
    ended: u32,
    failed: u32,
}

impl Record {
    pub(super) fn new() -> Self {
        Self { began_at: Instant::now(), inner: Mutex::default() }
    }

    pub(super) fn note(&self, is_success: bool, took: Duration) {
        let minute = self.minute();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = &mut inner.buckets[place(minute)];
        if bucket.minute != minute {
            *bucket = Bucket { minute, ..Bucket::default() };
        }
        bucket.ended += 1;
        bucket.failed += u32::from(!is_success);
        inner.last_task_ms = Some(Span::from(took).as_ms());
        if is_success {
            inner.last_success_at = Some(wall_clock());
        }
    }

    pub(super) fn report(&self, queue_depth: u32) -> Health {
        let minute = self.minute();
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = inner.buckets.iter().filter(|bucket| minute - bucket.minute < MINUTES as u64);
        let (ended, failed) =
            recent.fold((0, 0), |(ended, failed), bucket| (ended + bucket.ended, failed + bucket.failed));
        Health {
            queue_depth,
            failure_rate_10m: if ended == 0 { 0.0 } else { f64::from(failed) / f64::from(ended) },
            last_success_at: inner.last_success_at,
            last_task_ms: inner.last_task_ms,
        }
    }

    /// Minutes since the agent began.
    fn minute(&self) -> u64 {
        self.began_at.elapsed().as_secs() / 60
    }
}

fn place(minute: u64) -> usize {
    usize::try_from(minute % MINUTES as u64).unwrap_or_default()
}

fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_ms(Span::from(since).as_ms())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_are_forgotten_after_ten_minutes() {
        let record = Record::new();
        assert!(record.report(0).failure_rate_10m.abs() < f64::EPSILON);
        record.note(false, Duration::from_millis(3));
        record.note(true, Duration::from_millis(5));
        let report = record.report(2);
        assert!((report.failure_rate_10m - 0.5).abs() < f64::EPSILON);
        assert_eq!((report.queue_depth, report.last_task_ms), (2, Some(5)));
        tokio::time::advance(Duration::from_secs(300)).await;
        record.note(true, Duration::ZERO);
        record.note(true, Duration::ZERO);
        assert!((record.report(0).failure_rate_10m - 0.25).abs() < f64::EPSILON);
        tokio::time::advance(Duration::from_secs(301)).await;
        assert!(record.report(0).failure_rate_10m.abs() < f64::EPSILON);
    }
}
