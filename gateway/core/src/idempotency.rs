//! What a request means whose idempotency key was used before (PRODUCT D5; Stripe, Restate and the IETF draft on
//! the `Idempotency-Key` header are the models). The store finds the earlier task; here is decided what follows, and what
//! whoever does the work is handed as key.

use reach_schemas::call::{OnFailed, OnInFlight};
use reach_schemas::{IdempotencyKey, PhaseName, Span, Submit};

use crate::digest::{Fingerprint, of_texts};

/// Named in the digests that stand in for keys, so that they are no others.
const FORM: &str = "agent-reach key 1";
/// Stands between a scope and a key; no scope has it in it.
const KEY_FOLLOWS: char = '/';
/// Stands between a scope and the digest of both; no scope has it in it.
const DIGEST_FOLLOWS: char = '#';

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

/// The key that whoever does the work is handed for a caller's key: `SCOPE/KEY`. Two callers never have the same one, and
/// none that a caller writes is another's, or a task's id. It is itself an idempotency key.
///
/// One that would be too long, or hold more than a key may, is `SCOPE#DIGEST`, by SHA-256 over both.
#[must_use]
pub fn delivery_key(scope: &str, key: &str) -> String {
    let is_apart = !scope.contains([KEY_FOLLOWS, DIGEST_FOLLOWS]);
    let whole = format!("{scope}{KEY_FOLLOWS}{key}");
    if is_apart && whole.parse::<IdempotencyKey>().is_ok() {
        return whole;
    }
    let digest = of_texts(FORM, &[scope, key]);
    let short = format!("{scope}{DIGEST_FOLLOWS}{digest}");
    // The digest says whose it is, too: the scope is there to be read.
    if is_apart && short.parse::<IdempotencyKey>().is_ok() { short } else { format!("{DIGEST_FOLLOWS}{digest}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reach_schemas::{OperatorName, Role, TaskId};

    use super::*;
    use crate::access::{Caller, Operator};

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

    #[track_caller]
    fn check(scope: &str, key: &str, expected: &str) {
        assert_eq!(delivery_key(scope, key), expected);
    }

    #[test]
    fn a_key_is_handed_out_within_its_scope_and_stays_the_same_over_releases() {
        check("a@x", "order-17", "a@x/order-17");
        check("operator", "order-17", "operator/order-17");
        check("operator:alice", "order 17/a", "operator:alice/order 17/a");
        check("operator", "a@x/order-17", "operator/a@x/order-17");
        let digest = "5dd8cbe22af2f22ed5c73b72189585d4d32449dd060c48cad8e70fc86bf13338";
        check("a@x", &"k".repeat(252), &format!("a@x#{digest}"));
        check("a@x", &"k".repeat(251), &format!("a@x/{}", "k".repeat(251)));
    }

    /// Scopes as callers have them, and texts that no caller has.
    fn scopes() -> impl Strategy<Value = String> {
        let operator = |name: &str| {
            let name = name.parse::<OperatorName>().ok();
            Caller::Operator(Operator { name, role: Role::Admin }).to_string()
        };
        prop_oneof![
            Just(operator("")),
            "[ab]{1,2}".prop_map(move |name| operator(&name)),
            "[ab]{1,2}@[ab]{1,2}",
            "[ab]{60,64}@[ab]{60,64}",
            "[ab@/#:é]{0,4}",
            "[ab/]{250,260}",
        ]
    }

    fn keys() -> impl Strategy<Value = String> {
        prop_oneof!["[ab@/#:]{1,5}", "[ -~]{1,9}", "[ab/]{120,130}", "[ab/]{248,255}", "[aé]{0,3}"]
    }

    proptest! {
        #[test]
        fn no_two_scopes_or_keys_come_to_the_same(one in (scopes(), keys()), other in (scopes(), keys())) {
            let handed_out = |(scope, key): &(String, String)| delivery_key(scope, key);
            let (first, second) = (handed_out(&one), handed_out(&other));
            prop_assert_eq!(first == second, one == other, "{:?} {:?}", one, other);
            prop_assert!(first.parse::<IdempotencyKey>().is_ok(), "{}", first);
            prop_assert!(first.parse::<TaskId>().is_err(), "{}", first);
            // Nor does one who knows what another's come to, and sends that or any part of it.
            for at in (0..=first.len()).filter(|at| first.is_char_boundary(*at)) {
                let forged = (other.0.clone(), first[at..].to_owned());
                prop_assert_eq!(handed_out(&forged) == first, forged == one, "{:?} {:?}", forged, one);
            }
        }
    }
}
