//! When a message that did not arrive is sent again, as Standard Webhooks 1.0 advises: at growing distances over three
//! days, with jitter, never before the receiver said, and never again once the receiver is gone.

use fastrand::Rng;
use reach_schemas::{Span, Timestamp};

/// The waits between tries, after the first one, which comes at once.
pub const RETRIES: [Span; 9] = [
    Span::from_secs(5),
    Span::from_mins(5),
    Span::from_mins(30),
    Span::from_hours(2),
    Span::from_hours(5),
    Span::from_hours(10),
    Span::from_hours(14),
    Span::from_hours(20),
    Span::from_hours(24),
];
/// The longest that a receiver can make the sender wait by `Retry-After`.
pub const RETRY_AFTER_MAX: Span = Span::from_hours(24);

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The receiver answered.
    Status {
        /// The HTTP status.
        status: u16,
        /// What it said of when to come again.
        retry_after: Option<Span>,
    },
    /// No answer came.
    Silence,
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It has arrived.
    Delivered,
    /// It is sent again.
    Again {
        /// When.
        due_at: Timestamp,
    },
    /// It was tried often enough.
    Failed,
    /// The receiver is gone for good.
    Gone,
}

impl Answer {
    /// For how long the receiver's host wants no messages at all: it said that it is busy, and until when.
    #[must_use]
    pub fn hold(self) -> Option<Span> {
        match self {
            Self::Status { status: 429 | 503, retry_after } => retry_after.map(|wait| wait.min(RETRY_AFTER_MAX)),
            Self::Status { .. } | Self::Silence => None,
        }
    }

    /// What becomes of a message after so many tries, this one included. A wait grows by up to a fifth, by chance, so
    /// that what failed together does not come again together.
    #[must_use]
    pub fn next(self, tries: u32, retries: &[Span], now: Timestamp, rng: &mut Rng) -> Next {
        match self {
            Self::Status { status: 200..=299, .. } => return Next::Delivered,
            Self::Status { status: 410, .. } => return Next::Gone,
            Self::Status { .. } | Self::Silence => {}
        }
        let Some(wait) = tries.checked_sub(1).and_then(|at| retries.get(at as usize)) else { return Next::Failed };
        let jitter = Span::from_ms(rng.u64(0..=wait.as_ms() / 5));
        let wait = (*wait + jitter).max(self.hold().unwrap_or(Span::ZERO));
        Next::Again { due_at: now + wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_000_000);

    fn next(answer: Answer, tries: u32) -> Next {
        answer.next(tries, &RETRIES, NOW, &mut Rng::with_seed(1))
    }

    fn status(status: u16) -> Answer {
        Answer::Status { status, retry_after: None }
    }

    #[test]
    fn every_success_is_delivered_only_410_is_gone_and_all_else_comes_again() {
        for code in 100..600 {
            let expected = match code {
                200..=299 => "delivered",
                410 => "gone",
                _ => "again",
            };
            let said = match next(status(code), 1) {
                Next::Delivered => "delivered",
                Next::Again { .. } => "again",
                Next::Failed => "failed",
                Next::Gone => "gone",
            };
            assert_eq!(said, expected, "{code}");
        }
        assert!(matches!(next(Answer::Silence, 1), Next::Again { .. }));
    }

    #[test]
    fn waits_are_those_of_the_schedule_and_up_to_a_fifth_more_then_it_has_failed() {
        let mut rng = Rng::with_seed(7);
        for (tries, wait) in (1..).zip(RETRIES) {
            let mut waits = Vec::new();
            for _ in 0..200 {
                let Next::Again { due_at } = Answer::Silence.next(tries, &RETRIES, NOW, &mut rng) else {
                    panic!("try {tries} is not the last");
                };
                waits.push(due_at.since(NOW));
            }
            let (least, most) = (*waits.iter().min().unwrap(), *waits.iter().max().unwrap());
            assert!(least >= wait && most <= wait + Span::from_ms(wait.as_ms() / 5), "{wait}: {least} to {most}");
            assert!(most.as_ms() - least.as_ms() > wait.as_ms() / 10, "{wait}: {least} to {most}");
        }
        assert_eq!(next(Answer::Silence, 10), Next::Failed);
        assert_eq!(Answer::Silence.next(1, &[], NOW, &mut rng), Next::Failed);
    }

    #[test]
    fn a_busy_receiver_says_when_to_come_again_within_reason_and_never_sooner_than_the_schedule() {
        let busy = |code, wait| Answer::Status { status: code, retry_after: Some(wait) };
        let minute = Span::from_mins(1);
        for code in [429, 503] {
            assert_eq!(busy(code, minute).hold(), Some(minute));
            assert_eq!(next(busy(code, minute), 1), Next::Again { due_at: NOW + minute });
            assert_eq!(busy(code, Span::from_hours(1000)).hold(), Some(RETRY_AFTER_MAX));
        }
        assert!(matches!(next(busy(429, Span::ZERO), 2), Next::Again { due_at } if due_at.since(NOW) >= RETRIES[1]));
        assert_eq!((busy(500, minute).hold(), status(429).hold(), busy(200, minute).hold()), (None, None, None));
        assert!(matches!(next(busy(500, minute), 1), Next::Again { due_at } if due_at < NOW + minute));
    }
}
