//! What a request means whose idempotency key was used before (PRODUCT D5; Stripe, Restate and the IETF draft on
//! the `Idempotency-Key` header are the models). The store finds the earlier task; here is decided what follows.

use reach_schemas::call::{OnFailed, OnInFlight};
use reach_schemas::{PhaseName, Span, Submit};

use crate::digest::Fingerprint;

/// How long a key is kept once its task is done.
pub const KEPT_FOR: Span = Span::from_hours(24);

/// What follows from an earlier task with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is the same request: the answer is that task, as it is.
    Replay,
    /// It is the same request, and its caller wants the failed task sent again.
    Retry,
    /// It is the same request, unfinished, and its caller does not want to join it.
    InFlight,
    /// It is another request: refused, and nothing of the first is shown.
    Reused,
}

/// Decides what a request means, given the fingerprint and phase of the earlier task.
#[must_use]
pub fn judge(earlier: Fingerprint, phase: PhaseName, request: &Submit, fingerprint: Fingerprint) -> Verdict {
    if earlier != fingerprint {
        return Verdict::Reused;
    }
    match phase {
        PhaseName::Submitted | PhaseName::Routed | PhaseName::Delivered | PhaseName::Accepted => {
            match request.on_in_flight {
                OnInFlight::Join => Verdict::Replay,
                OnInFlight::Reject => Verdict::InFlight,
            }
        }
        PhaseName::Completed => Verdict::Replay,
        PhaseName::Failed | PhaseName::Cancelled | PhaseName::Expired | PhaseName::DeadLettered => {
            match request.on_failed {
                OnFailed::Replay => Verdict::Replay,
                OnFailed::Retry => Verdict::Retry,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAME: Fingerprint = Fingerprint([1; 32]);
    const OTHER: Fingerprint = Fingerprint([2; 32]);

    #[test]
    fn another_request_is_refused_whatever_became_of_the_first() {
        for phase in PhaseName::ALL {
            let request = Submit { on_failed: OnFailed::Retry, ..Submit::default() };
            assert_eq!(judge(SAME, phase, &request, OTHER), Verdict::Reused, "{phase:?}");
        }
    }

    #[test]
    fn the_same_request_joins_replays_or_is_sent_again_as_asked() {
        let plain = Submit::default();
        for phase in PhaseName::ALL {
            assert_eq!(judge(SAME, phase, &plain, SAME), Verdict::Replay, "{phase:?}");
        }
        let eager = Submit { on_failed: OnFailed::Retry, on_in_flight: OnInFlight::Reject, ..Submit::default() };
        for phase in PhaseName::ALL {
            let expected = match phase {
                PhaseName::Completed => Verdict::Replay,
                PhaseName::Failed | PhaseName::Cancelled | PhaseName::Expired | PhaseName::DeadLettered => {
                    Verdict::Retry
                }
                PhaseName::Submitted | PhaseName::Routed | PhaseName::Delivered | PhaseName::Accepted => {
                    Verdict::InFlight
                }
            };
            assert_eq!(judge(SAME, phase, &eager, SAME), expected, "{phase:?}");
        }
    }
}
