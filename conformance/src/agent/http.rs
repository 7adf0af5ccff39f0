//! What an agent's answers over HTTP mean, as docs/write-an-agent.md has it.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;

use super::work::{Event, Work};
use crate::exchange::short;

/// The largest result that is read.
const RESULT_MAX: usize = 8 << 20;

/// A client that follows no redirects and goes through no proxy.
pub(crate) fn client() -> Result<Client, String> {
    // A second call finds it done.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    client.connect_timeout(Duration::from_secs(5)).build().map_err(|error| format!("no HTTP client: {error}"))
}

/// The request that delivers an attempt.
pub(crate) fn delivery(client: &Client, url: &str, work: &Work, body: String) -> reqwest::RequestBuilder {
    let mut request = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .header("accept", "application/json")
        .header("idempotency-key", &work.idempotency_key)
        .header("agent-reach-task-id", work.task_id.to_string())
        .header("agent-reach-token", work.token);
    if let Some(traceparent) = &work.traceparent {
        request = request.header("traceparent", traceparent);
    }
    request.body(body)
}

/// Reads an answer whole, within bounds: its status, its headers' words, and its body.
pub(crate) async fn read(mut response: Response) -> Result<(StatusCode, bool, bool, String), String> {
    let status = response.status();
    let says_json = response.headers().get(CONTENT_TYPE).is_some_and(|value| {
        value.to_str().is_ok_and(|text| text.starts_with("application/json") || text.contains("+json"))
    });
    let says_when = response.headers().contains_key(RETRY_AFTER);
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| lost(&error))? {
        body.extend_from_slice(&chunk);
        if body.len() > RESULT_MAX {
            return Err(format!("the body is larger than {RESULT_MAX} bytes"));
        }
    }
    let text = String::from_utf8(body).map_err(|_| "the body is not UTF-8".to_owned())?;
    Ok((status, says_json, says_when, text))
}

/// Why no answer came, in words, with what is at the bottom of it.
pub(crate) fn lost(error: &reqwest::Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    format!("{deepest}")
}

/// What an answer to a delivery means.
pub(crate) fn event(status: StatusCode, says_json: bool, says_when: bool, body: &str) -> Event {
    let why = format!("{status} {}", short(body));
    match status.as_u16() {
        202 => Event::Accepted,
        204 => Event::Result { text: "null".to_owned(), is_json: true, says_json: true },
        200..=299 => {
            let text = if body.trim().is_empty() { "null" } else { body };
            let is_json = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
            Event::Result { text: text.to_owned(), is_json, says_json }
        }
        429 | 503 => Event::Refused { is_full: true, says_when, why },
        408 | 425 | 307 | 308 => Event::Refused { is_full: false, says_when, why },
        400..=499 => Event::Failed { for_good: true, why },
        _ => {
            let problem: Value = serde_json::from_str(body).unwrap_or_default();
            if problem["started"] == Value::Bool(false) {
                Event::Refused { is_full: false, says_when, why }
            } else {
                Event::Failed { for_good: false, why }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_decides_what_an_answer_means() {
        let check = |status: u16, body: &str, expected: &str| {
            let words = event(StatusCode::from_u16(status).unwrap(), true, false, body).words();
            assert!(words.starts_with(expected), "{status} {body}: {words}");
        };
        check(200, "[1]", "the result [1]");
        check(200, "", "the result null");
        check(204, "", "the result null");
        check(202, "", "it was accepted");
        check(429, "", "a refusal as full");
        check(425, "", "a refusal before it began");
        check(422, "", "a failure for good");
        check(500, "", "a failure that asks for another try");
        check(500, r#"{"started":false}"#, "a refusal before it began");
    }
}
