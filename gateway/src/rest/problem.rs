//! Problem bodies, as RFC 9457 has them: the same members as the `data` of a JSON-RPC error, and the HTTP ones.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use reach_schemas::error::{Fault, Retry};
use reach_schemas::{ErrorCode, Failure, RawJson, Span, Suggestion, TaskId};
use schemars::JsonSchema;
use serde::Serialize;

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// What went wrong, whose fault it is, and what to do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Problem {
    /// Where the page of this error is: `/errors/` and its name.
    #[serde(rename = "type")]
    page: String,
    /// The error in a few words, the same each time; for what is wrong with the request as HTTP, the status in words.
    title: String,
    /// The HTTP status.
    status: u16,
    /// What is wrong this time, where, and what to do.
    detail: String,
    /// The error's name.
    code: ErrorCode,
    /// Who has to change something.
    fault: Fault,
    /// Whether to send it again.
    retry: Retry,
    /// Not before this time has passed; rounded up to seconds, it is the `Retry-After` header as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<Span>,
    /// The task that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
    /// What was near, if nobody fitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suggestions: Vec<Suggestion>,
    /// Anything more: the place of the mistake, or what the agent sent with its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<RawJson>,
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let retry = failure.retry();
        let Failure { code, message, data, retry_after, suggestions } = failure;
        Self {
            page: format!("/errors/{}", code.name()),
            title: title(code),
            status: code.http_status(),
            detail: message,
            code,
            fault: code.fault(),
            retry,
            retry_after,
            task_id: None,
            suggestions,
            details: data,
        }
    }
}

/// The words of the page's own title.
fn title(code: ErrorCode) -> String {
    let line = code.page().lines().next().unwrap_or_default();
    let words = line.split_once(": ").map_or(code.name(), |(_, words)| words);
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

impl Problem {
    /// What is wrong this time.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The error.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        self.code
    }

    /// The same, under a status that says more than the error's own, and in whose words it is titled: what is wrong
    /// with the request as HTTP has nothing to do with JSON-RPC.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status.as_u16();
        if let Some(words) = status.canonical_reason() {
            words.clone_into(&mut self.title);
        }
        self
    }

    /// The same, about a task.
    #[must_use]
    pub fn about(mut self, task_id: TaskId) -> Self {
        self.task_id = Some(task_id);
        self
    }

    /// The body.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a problem is made of types that can be written as JSON")
    }

    /// The whole answer.
    #[must_use]
    pub fn into_response(self) -> Response<Bytes> {
        let mut response = Response::new(self.to_json().into());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(header::CONTENT_TYPE, PROBLEM);
        if let Some(span) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(span.as_ms().div_ceil(1000)));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_what_its_page_says_and_rounds_the_wait_up() {
        let failure = Failure {
            retry_after: Some(Span::from_ms(1001)),
            data: RawJson::parse(r#"{"z":1.10}"#).ok(),
            ..Failure::new(ErrorCode::Overloaded, "12 tasks are open")
        };
        let response = Problem::from(failure).into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[header::RETRY_AFTER], "2");
        let body = std::str::from_utf8(response.body()).unwrap();
        let expected = r#"{"type":"/errors/overloaded","title":"Full","status":429,"detail":"12 tasks are open","code":"overloaded","fault":"gateway","retry":"later","retry_after":"1s 1ms","details":{"z":1.10}}"#;
        assert_eq!(body, expected);
    }

    #[test]
    fn every_page_has_a_title() {
        for code in ErrorCode::ALL {
            assert!(title(*code).chars().next().is_some_and(char::is_uppercase), "{code:?}");
            assert!(!title(*code).contains('`'), "{code:?}: {}", title(*code));
        }
    }
}
