//! What Python gets: a text of JSON, or the parts that it makes an exception of.

use std::error::Error as _;

use agent_reach_sdk::{Error, RawJson};

/// The parts of an error: its kind, the gateway's code, the message, data as JSON, whether to try again, after how many
/// seconds, the task's id, and suggestions as JSON.
pub(crate) type Parts =
    (&'static str, Option<&'static str>, String, Option<String>, bool, Option<f64>, Option<String>, Option<String>);

/// A text of JSON, or an error.
pub(crate) type Answer = Result<String, Error>;

/// An answer as a pair, of which one is none.
pub(crate) type Pair = (Option<String>, Option<Parts>);

/// The answer as Python takes it.
pub(crate) fn pair(answer: Answer) -> Pair {
    match answer {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(parts(&error))),
    }
}

fn parts(error: &Error) -> Parts {
    let refusal = error.refusal();
    let message = match refusal {
        Some(refusal) => refusal.message.clone(),
        None => told(error),
    };
    let suggestions = refusal.filter(|refusal| !refusal.suggestions.is_empty());
    (
        kind(error),
        error.code().map(|code| code.name()),
        message,
        refusal.and_then(|refusal| refusal.data.as_ref()).map(|data| data.get().to_owned()),
        error.is_retryable(),
        error.retry_after().map(|after| after.as_secs_f64()),
        error.task_id().map(|task_id| task_id.to_string()),
        suggestions.and_then(|refusal| written(&refusal.suggestions).ok()),
    )
}

/// The error with its reasons, as far as they say something new.
fn told(error: &Error) -> String {
    let mut told = error.to_string();
    let mut reason = error.source();
    while let Some(source) = reason {
        let text = source.to_string();
        if !told.contains(&text) {
            told = format!("{told}: {text}");
        }
        reason = source.source();
    }
    told
}

/// Which class of exception it becomes.
fn kind(error: &Error) -> &'static str {
    match error {
        Error::NoCandidate(_) => "no_candidate",
        Error::Overloaded(_) => "overloaded",
        Error::Unavailable(_) => "unavailable",
        Error::Timeout(_) => "timeout",
        Error::TaskFailed(_) => "task_failed",
        Error::OutcomeUnknown(_) => "outcome_unknown",
        Error::IdempotencyKeyReused(_) => "idempotency_conflict",
        Error::IdempotencyInFlight(_) => "idempotency_in_flight",
        Error::Forbidden(_) => "forbidden",
        Error::Unauthenticated(_) => "unauthenticated",
        Error::NotFound(_) => "not_found",
        Error::Cancelled(_) => "cancelled",
        Error::Expired(_) => "expired",
        Error::StaleToken(_) => "stale_token",
        Error::WrongPhase(_) => "wrong_phase",
        Error::ClaimLost(_) => "claim_lost",
        Error::Invalid(_) => "invalid",
        Error::WaitTimeout { .. } => "wait_timeout",
        Error::Transport { .. } => "transport",
        Error::Protocol { .. } => "protocol",
        Error::Config(_) => "config",
        // The enum may grow; what is new is an error all the same.
        _ => "other",
    }
}

/// A value as JSON.
pub(crate) fn written(value: &impl serde::Serialize) -> Answer {
    match RawJson::of(value) {
        Ok(json) => Ok(json.get().to_owned()),
        Err(error) => Err(Error::Config(format!("cannot be written as JSON: {error}"))),
    }
}

/// A value from JSON that Python wrote.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Error> {
    RawJson::parse(text).and_then(|json| json.read()).map_err(|error| Error::Config(error.to_string()))
}
