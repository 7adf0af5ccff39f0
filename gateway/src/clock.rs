//! The gateway's clock: wall time at the start, carried on by the runtime's own time, so that it never runs backwards
//! and tests can pause it.

use std::time::SystemTime;

use reach_schemas::{Span, Timestamp};
use tokio::time::Instant;

/// Tells the time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started_at: Timestamp,
    started: Instant,
}

impl Clock {
    /// A clock that begins at the present wall time.
    #[must_use]
    pub fn start() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::starting_at(Timestamp::from_ms(Span::from(since).as_ms()))
    }

    /// A clock that begins at this time: for a gateway that goes on where another one ended, when time is not the wall's.
    #[must_use]
    pub fn starting_at(started_at: Timestamp) -> Self {
        Self { started_at, started: Instant::now() }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.started_at + Span::from(self.started.elapsed())
    }

    /// Now, in nanoseconds since 1970: for what is measured finer than anything that is decided.
    #[must_use]
    pub fn unix_nanos(&self) -> u64 {
        let since = self.started.elapsed().as_nanos();
        u64::try_from(u128::from(self.started_at.as_ms()) * 1_000_000 + since).unwrap_or(u64::MAX)
    }

    /// How long it has been running.
    #[must_use]
    pub fn up_for(&self) -> Span {
        self.started.elapsed().into()
    }

    /// The runtime's instant of a time of this clock.
    #[must_use]
    pub fn instant(&self, at: Timestamp) -> Instant {
        self.started + at.since(self.started_at).into()
    }

    /// Sleeps until a time of this clock.
    pub async fn sleep_until(&self, at: Timestamp) {
        tokio::time::sleep_until(self.instant(at)).await;
    }
}
