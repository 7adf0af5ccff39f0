//! When to try again, and how long to wait before. Pure: chance is an argument.

use std::time::Duration;

use crate::error::Error;

/// How calls are tried again. The idempotency key of a submit is the same over all its tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// So many more tries after the first.
    pub retries: u32,
    /// The longest pause before the first of them; doubled for each further one.
    pub base: Duration,
    /// The longest pause, unless the gateway asks for a longer one.
    pub cap: Duration,
    /// All tries and pauses together; no try begins after it.
    pub within: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 5,
            base: Duration::from_millis(200),
            cap: Duration::from_secs(5),
            within: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// Every call is tried once.
    #[must_use]
    pub fn never() -> Self {
        Self { retries: 0, ..Self::default() }
    }

    /// How long to wait before retry number `retry`, counted from 0. `chance` is between 0 and 1.
    ///
    /// The whole pause is drawn by chance, so that callers who failed together do not come back together; what the
    /// gateway asked for is a floor under it.
    pub(crate) fn pause(&self, retry: u32, hint: Option<Duration>, chance: f64) -> Duration {
        let doubled = self.base.saturating_mul(1_u32.checked_shl(retry).unwrap_or(u32::MAX));
        hint.unwrap_or_default() + doubled.min(self.cap).mul_f64(chance)
    }

    /// How long to wait before the next try of a call that has failed `retry` times before and began `elapsed` ago.
    /// `None`: do not try again.
    pub(crate) fn next(
        &self,
        error: &Error,
        is_safe: bool,
        retry: u32,
        elapsed: Duration,
        chance: f64,
    ) -> Option<Duration> {
        let worth = error.took_nothing_on() || is_safe && is_passing(error);
        if !worth || retry >= self.retries {
            return None;
        }
        let pause = self.pause(retry, error.retry_after(), chance);
        (elapsed + pause < self.within).then_some(pause)
    }
}

/// Whether it is the way there or the gateway itself that failed, and not what was asked for. `no_candidate` and the
/// ends of tasks can be retried too, but only the caller knows whether that is wanted.
pub(crate) fn is_passing(error: &Error) -> bool {
    use reach_schemas::ErrorCode as Code;
    match error.code() {
        Some(code) => {
            matches!(code, Code::Overloaded | Code::StoreUnavailable | Code::ShuttingDown | Code::Internal)
        }
        None => matches!(error, Error::Transport { .. }),
    }
}

#[cfg(test)]
mod tests {
    use reach_schemas::ErrorCode;

    use super::*;
    use crate::error::Refusal;

    fn next(error: &Error, is_safe: bool, retry: u32) -> Option<Duration> {
        RetryPolicy::default().next(error, is_safe, retry, Duration::ZERO, 1.0)
    }

    #[test]
    fn pauses_double_up_to_the_cap_and_chance_has_all_of_them() {
        let policy = RetryPolicy::default();
        let pauses: Vec<u128> = (0..7).map(|retry| policy.pause(retry, None, 1.0).as_millis()).collect();
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(policy.pause(3, None, 0.0), Duration::ZERO);
        assert_eq!(policy.pause(90, None, 1.0), policy.cap);
    }

    #[test]
    fn what_the_gateway_asks_for_is_a_floor() {
        let hint = Duration::from_secs(7);
        let error = Refusal { retry_after: Some(hint), ..Refusal::new(ErrorCode::Overloaded, "full") }.into();
        assert_eq!(RetryPolicy::default().next(&error, true, 0, Duration::ZERO, 0.0), Some(hint));
        assert_eq!(RetryPolicy::default().next(&error, true, 0, Duration::from_secs(55), 0.0), None);
    }

    #[test]
    fn what_may_not_be_repeated_is_tried_again_only_if_it_did_not_arrive() {
        let lost = Error::maybe_sent("reset");
        assert_eq!(next(&lost, false, 0), None);
        assert!(next(&lost, true, 0).is_some());
        let refused = Error::not_sent("refused", std::io::Error::other("refused"));
        assert!(next(&refused, false, 0).is_some());
        assert!(next(&Refusal::new(ErrorCode::Overloaded, "full").into(), false, 0).is_some());
    }

    #[test]
    fn a_refusal_that_is_an_answer_is_not_tried_again() {
        for code in [ErrorCode::NoCandidate, ErrorCode::Timeout, ErrorCode::Forbidden, ErrorCode::StoreFull] {
            assert_eq!(next(&Refusal::new(code, "no").into(), true, 0), None, "{code:?}");
        }
        assert_eq!(next(&Error::maybe_sent("reset"), true, 5), None, "tries are bounded");
    }
}
