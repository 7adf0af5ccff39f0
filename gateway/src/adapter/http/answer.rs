//! What an agent's answer over HTTP means. The status alone decides; the body of a refusal is only quoted, but for
//! `"started": false`, by which an agent promises that it did not begin.

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderMap, HeaderName, StatusCode};
use reach_core::task::event::Trace;
use reach_schemas::call::HealthReport;
use reach_schemas::{Effect, ErrorCode, Failure, RawJson, Timestamp};
use serde_json::Value;

use crate::adapter::retry_after::retry_after;
use crate::adapter::{Delivered, excerpt, not_started, unreadable};
use crate::outbound::{Answered, BODY_MAX, Body, Silence};

/// How large a refusal's body may be to be read for its members.
const PROBLEM_MAX: usize = 64 * 1024;

/// How many tokens of a language model the result took.
const TOKEN_COUNT: HeaderName = HeaderName::from_static("agent-reach-token-count");

/// What an answer to a delivery means. `now` is for a `Retry-After` that is a date.
pub(super) fn delivered(answered: Answered, effect: Effect, now: Timestamp) -> Delivered {
    let Answered { status, headers, body } = answered;
    match status {
        StatusCode::ACCEPTED => Delivered::Accepted,
        StatusCode::NO_CONTENT => done(b"null", &headers, effect),
        status if status.is_success() => result(body, &headers, effect),
        status => refused(status, &headers, &Problem::read(body), effect, now),
    }
}

fn result(body: Body, headers: &HeaderMap, effect: Effect) -> Delivered {
    match body {
        Body::Whole(bytes) if bytes.trim_ascii().is_empty() => done(b"null", headers, effect),
        Body::Whole(bytes) => done(&bytes, headers, effect),
        Body::TooLarge => {
            let message =
                format!("the agent's result is larger than {BODY_MAX} bytes; have it store the rest elsewhere");
            Delivered::Failed { failure: Failure::new(ErrorCode::InvalidResult, message), trace: Trace::FailedForGood }
        }
        Body::Cut(why) => lost(&why),
    }
}

fn done(text: &[u8], headers: &HeaderMap, effect: Effect) -> Delivered {
    // What is no number is as if it were not there: the result counts, not the bill.
    let token_count = headers.get(TOKEN_COUNT).and_then(|count| count.to_str().ok()?.trim().parse().ok());
    match serde_json::from_slice::<RawJson>(text) {
        Ok(result) => Delivered::Done { result, token_count },
        Err(error) => {
            let message = format!("the agent's result is not JSON: {error}");
            let failure = Failure::new(ErrorCode::InvalidResult, message);
            Delivered::Failed { failure, trace: unreadable(effect) }
        }
    }
}

fn lost(why: &str) -> Delivered {
    let message = format!("the connection was lost after the work may have reached the agent: {why}");
    Delivered::Failed { failure: Failure::new(ErrorCode::AgentLost, message), trace: Trace::Unknown }
}

fn refused(status: StatusCode, headers: &HeaderMap, problem: &Problem, effect: Effect, now: Timestamp) -> Delivered {
    let mut failure = Failure::new(ErrorCode::AgentFailed, problem.message(status, headers));
    failure.data.clone_from(&problem.data);
    failure.retry_after = retry_after(headers, now);
    let trace = match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            // Full, unless it says by the name of the code that it merely does not want to.
            let is_refusal = problem.code == Some(ErrorCode::AgentRefused);
            failure.code = if is_refusal { ErrorCode::AgentRefused } else { ErrorCode::Overloaded };
            Trace::NotStarted
        }
        // Both say that the request was not taken up: it came too slowly, or too early.
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY => Trace::NotStarted,
        // Whoever is sent elsewhere with the same request was not served here (RFC 9110, 15.4.8 and 15.4.9).
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => Trace::NotStarted,
        // A redirect is the agent's slip and not the caller's: it says nothing against another try elsewhere.
        status if status.is_client_error() => Trace::FailedForGood,
        _ if problem.is_not_started => Trace::NotStarted,
        _ if effect.is_repeatable() => Trace::FailedRetryable,
        // Neither a 5xx, nor an answer to be fetched elsewhere, nor a status that there is not, proves that nothing happened.
        _ => Trace::Unknown,
    };
    Delivered::Failed { failure, trace }
}

/// What no answer to a delivery means. `place` is where it was sent.
pub(super) fn silent(silence: Silence, place: &str) -> Delivered {
    match silence {
        Silence::NeverSent(why) => {
            let message = format!("{place} cannot be reached: {why}; see that the agent runs and its address is right");
            not_started(Failure::new(ErrorCode::Unreachable, message))
        }
        Silence::NeverConnected => {
            let message = format!("{place} let nobody connect within the time of the attempt: nothing was sent");
            not_started(Failure::new(ErrorCode::Timeout, message))
        }
        Silence::Lost(why) => lost(&why),
        Silence::Late => {
            let message = format!("{place} did not answer within the time of the attempt");
            Delivered::Failed { failure: Failure::new(ErrorCode::Timeout, message), trace: Trace::Unknown }
        }
    }
}

/// What an answer to a probe means: 2xx is well, with a report or without; an agent without a probe counts as well.
pub(super) fn health(answered: Answered) -> Result<HealthReport, String> {
    let Answered { status, headers, body } = answered;
    match status {
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
            Ok(HealthReport::default())
        }
        status if status.is_success() => Ok(match body {
            Body::Whole(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Body::TooLarge | Body::Cut(_) => HealthReport::default(),
        }),
        status => Err(Problem::read(body).message(status, &headers)),
    }
}

/// What no answer to a probe means.
pub(super) fn no_health(silence: Silence) -> String {
    match silence {
        Silence::NeverSent(why) | Silence::Lost(why) => why,
        Silence::NeverConnected => "no connection within the time of the probe".to_owned(),
        Silence::Late => "no answer within the time of the probe".to_owned(),
    }
}

/// A refusal's body: RFC 9457, or near it, or any text.
#[derive(Default)]
struct Problem {
    text: String,
    /// The error code of ours that it names.
    code: Option<ErrorCode>,
    is_not_started: bool,
    /// The body, if it is JSON.
    data: Option<RawJson>,
}

impl Problem {
    fn read(body: Body) -> Self {
        match body {
            Body::Whole(bytes) => Self::of(&bytes),
            Body::TooLarge | Body::Cut(_) => Self::default(),
        }
    }

    fn of(bytes: &Bytes) -> Self {
        let members = (bytes.len() <= PROBLEM_MAX).then(|| serde_json::from_slice::<Value>(bytes).ok()).flatten();
        let Some(members) = members else {
            return Self { text: excerpt(&String::from_utf8_lossy(bytes)), ..Self::default() };
        };
        let places = ["/detail", "/error/message", "/error", "/message", "/title"];
        let text = places.iter().find_map(|place| members.pointer(place)?.as_str());
        Self {
            text: excerpt(text.unwrap_or_default()),
            code: members.get("code").and_then(Value::as_str).and_then(ErrorCode::by_name),
            is_not_started: members.get("started") == Some(&Value::Bool(false)),
            data: serde_json::from_slice(bytes).ok(),
        }
    }

    fn message(&self, status: StatusCode, headers: &HeaderMap) -> String {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        match (status.is_redirection(), self.text.as_str()) {
            (true, _) => format!(
                "the agent answered {status} to {:?}; redirects are not followed, so give the endpoint that address",
                excerpt(location)
            ),
            (false, "") => format!("the agent answered {status}"),
            (false, text) => format!("the agent answered {status}: {text}"),
        }
    }
}
