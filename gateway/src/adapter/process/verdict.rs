//! What the end of a command means for the work.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use reach_core::task::event::Trace;
use reach_schemas::call::HealthReport;
use reach_schemas::{Effect, ErrorCode, Failure, RawJson};

use super::talk::{Ended, RESULT_MAX, Said};
use crate::adapter::{Delivered, unreadable};

/// `EX_USAGE`, `EX_DATAERR` and `EX_NOINPUT` of `sysexits.h`: the input is at fault, and will be again.
const FOR_GOOD: std::ops::RangeInclusive<i32> = 64..=66;
/// `EX_TEMPFAIL`: try again.
const TRY_AGAIN: i32 = 75;

/// What came of an attempt whose command ended by itself.
pub(super) fn delivered(ended: &Ended, said: &Said, effect: Effect) -> Delivered {
    match ended {
        Ended::Exited(status) if status.success() => result(&said.printed, effect),
        Ended::Exited(status) => failed(*status, &said.tail(), effect),
        Ended::Flooded => {
            let message = format!("the command printed more than {RESULT_MAX} bytes and was ended; have it print less");
            // It was ended in its midst.
            let trace = if effect.is_repeatable() { Trace::FailedForGood } else { Trace::Unknown };
            Delivered::Failed { failure: Failure::new(ErrorCode::InvalidResult, message), trace }
        }
    }
}

/// What came of a probe whose command ended by itself: exit code 0 is well, with a report on standard output or without.
pub(super) fn health(ended: &Ended, said: &Said) -> Result<HealthReport, String> {
    match ended {
        Ended::Exited(status) if status.success() => Ok(serde_json::from_slice(&said.printed).unwrap_or_default()),
        Ended::Exited(status) => Err(told("the probe's command", *status, &said.tail())),
        Ended::Flooded => Err(format!("the probe's command printed more than {RESULT_MAX} bytes and was ended")),
    }
}

fn result(printed: &[u8], effect: Effect) -> Delivered {
    match serde_json::from_slice::<RawJson>(printed) {
        Ok(result) => Delivered::Done { result, token_count: None },
        Err(error) => {
            let message = format!("the command's standard output is not one JSON value: {error}");
            let failure = Failure::new(ErrorCode::InvalidResult, message);
            Delivered::Failed { failure, trace: unreadable(effect) }
        }
    }
}

fn failed(status: ExitStatus, tail: &str, effect: Effect) -> Delivered {
    let (code, trace) = match status.code() {
        None => (ErrorCode::AgentLost, Trace::Unknown),
        Some(code) if FOR_GOOD.contains(&code) => (ErrorCode::AgentFailed, Trace::FailedForGood),
        Some(TRY_AGAIN) => (ErrorCode::AgentFailed, Trace::FailedRetryable),
        Some(_) if effect.is_repeatable() => (ErrorCode::AgentFailed, Trace::FailedRetryable),
        Some(_) => (ErrorCode::AgentFailed, Trace::Unknown),
    };
    Delivered::Failed { failure: Failure::new(code, told("the command", status, tail)), trace }
}

/// How a command ended, and the last that it said.
fn told(what: &str, status: ExitStatus, tail: &str) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("{what} failed with exit code {code}"),
        (None, signal) => format!("{what} was killed by signal {}", signal.unwrap_or_default()),
    };
    if tail.is_empty() { how } else { format!("{how}: {tail}") }
}
