//! What a request says, in its path, query, headers and body, read as strictly as JSON-RPC is.

use std::str::FromStr;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri, header};
use reach_schemas::{ErrorCode, Failure, IdempotencyKey, Submit, Traceparent};
use serde::de::DeserializeOwned;

use super::Problem;
use crate::rpc::{self, Limits};

/// The header with the caller's name for its intention.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The header with the caller's trace.
const TRACEPARENT: &str = "traceparent";

/// A request that was read whole.
#[derive(Debug)]
pub struct Request {
    /// The variable part of the path, if the route has one, without its escapes.
    pub part: Option<String>,
    /// The address as it came.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// What it may hold.
    pub limits: Limits,
}

/// The problem of a body that is not said to be JSON.
///
/// # Errors
/// It is not.
pub fn refuse_unless_json(headers: &HeaderMap) -> Result<(), Problem> {
    let content = headers.get(header::CONTENT_TYPE).map_or("none", |value| value.to_str().unwrap_or("unreadable"));
    let essence = content.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = format!("the content type must be application/json, and is {content}");
    let problem = Problem::from(Failure::new(ErrorCode::InvalidRequest, message));
    Err(problem.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
}

fn invalid(message: impl Into<String>) -> Problem {
    Failure::new(ErrorCode::InvalidParams, message).into()
}

impl Request {
    /// The body as a type; an empty one is an empty object.
    ///
    /// # Errors
    /// It is not said to be JSON, is none, or does not have the form of the type: where, and why.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        Ok(rpc::decode(self.read_text()?, "the body")?)
    }

    /// The body as JSON text; an empty one is an empty object.
    ///
    /// # Errors
    /// It is not said to be JSON, or is none.
    pub(super) fn read_text(&self) -> Result<&str, Problem> {
        if self.body.is_empty() {
            return Ok("{}");
        }
        refuse_unless_json(&self.headers)?;
        let value =
            rpc::read_value(&self.body, &self.limits).map_err(|flaw| Failure::new(flaw.code(), flaw.to_string()))?;
        Ok(value.get())
    }

    /// The query as a type.
    ///
    /// # Errors
    /// It does not have the form of the type: which field, and why.
    pub(super) fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let read: Result<Query<T>, QueryRejection> = Query::try_from_uri(&self.uri);
        read.map(|Query(value)| value).map_err(|rejection| {
            let text = rejection.body_text();
            let why = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            invalid(format!("the query: {why}"))
        })
    }

    /// The variable part of the path as an id.
    ///
    /// # Errors
    /// It does not have the form of one.
    pub(super) fn id<T: FromStr<Err: std::fmt::Display>>(&self) -> Result<T, Problem> {
        let part = self.part.as_deref().unwrap_or_default();
        part.parse().map_err(|error| invalid(format!("the path: {error}")))
    }

    /// The body as a task to take on, with what the headers say of it.
    ///
    /// # Errors
    /// The body or a header is malformed, or they contradict each other.
    pub(super) fn submit(&self) -> Result<Submit, Problem> {
        let mut submit: Submit = self.read()?;
        if let Some(key) = self.idempotency_key()? {
            if submit.idempotency_key.as_ref().is_some_and(|own| *own != key) {
                return Err(invalid("the Idempotency-Key header and `idempotency_key` of the body differ; send one"));
            }
            submit.idempotency_key = Some(key);
        }
        submit.traceparent = submit.traceparent.or_else(|| traceparent_of(&self.headers));
        Ok(submit)
    }

    /// The key in the header: as it is, or in quotes as a string of RFC 9651.
    fn idempotency_key(&self) -> Result<Option<IdempotencyKey>, Problem> {
        let Some(value) = self.headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
        let refused = |why: &str| invalid(format!("the Idempotency-Key header: {why}"));
        let text = value.to_str().map_err(|_| refused("it holds more than printable ASCII characters"))?.trim();
        let key = match text.strip_prefix('"') {
            Some(rest) => unquoted(rest).ok_or_else(|| refused("it begins with a quote and is no quoted string"))?,
            None => text.to_owned(),
        };
        key.parse().map(Some).map_err(|error: reach_schemas::IdError| refused(&error.to_string()))
    }
}

/// The trace that a request belongs to, by its headers. A header that is malformed or comes twice is left out, as W3C
/// Trace Context has it: a trace that is broken must not break the request.
#[must_use]
pub fn traceparent_of(headers: &HeaderMap) -> Option<Traceparent> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    value.to_str().ok()?.trim().parse().ok()
}

/// The inside of a quoted string, from after its first quote.
fn unquoted(rest: &str) -> Option<String> {
    let mut inside = String::with_capacity(rest.len());
    let mut letters = rest.chars();
    loop {
        match letters.next()? {
            '"' => return letters.as_str().is_empty().then_some(inside),
            '\\' => inside.push(letters.next().filter(|escaped| matches!(escaped, '"' | '\\'))?),
            letter => inside.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&'static str, &str)], body: &'static str) -> Request {
        let mut map = HeaderMap::new();
        map.insert(header::CONTENT_TYPE, "application/json; charset=utf-8".parse().unwrap());
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        Request {
            part: None,
            uri: Uri::from_static("/tasks"),
            headers: map,
            body: body.into(),
            limits: Limits::default(),
        }
    }

    #[track_caller]
    fn check_key(header: &str, expected: Result<&str, &str>) {
        match (request(&[(IDEMPOTENCY_KEY, header)], "{}").submit(), expected) {
            (Ok(submit), Ok(key)) => assert_eq!(submit.idempotency_key.unwrap().as_str(), key, "{header}"),
            (Err(problem), Err(why)) => {
                let body = String::from_utf8(problem.to_json()).unwrap();
                assert!(body.contains(why), "{header}: {body}");
            }
            (read, expected) => panic!("{header}: {read:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_key_is_read_with_and_without_quotes() {
        check_key("8e03978e-40d5", Ok("8e03978e-40d5"));
        check_key(r#""8e03978e-40d5""#, Ok("8e03978e-40d5"));
        check_key(r#""a\"b\\c""#, Ok(r#"a"b\c"#));
        check_key(r#""a"#, Err("no quoted string"));
        check_key(r#""a"b"#, Err("no quoted string"));
        check_key(r#""a\b""#, Err("no quoted string"));
        check_key("", Err("is empty"));
    }

    #[test]
    fn a_key_in_header_and_body_must_be_the_same() {
        let both = |header| request(&[(IDEMPOTENCY_KEY, header)], r#"{"idempotency_key":"k"}"#).submit();
        assert!(both("k").is_ok() && both("other").is_err());
    }

    #[test]
    fn a_trace_is_taken_from_the_header_if_it_is_one() {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let own = r#"{"traceparent":"00-11111111111111111111111111111111-2222222222222222-00"}"#;
        let read = |header: &str, body: &'static str| {
            let submit = request(&[(TRACEPARENT, header)], body).submit().unwrap();
            submit.traceparent.map(|trace| trace.to_string())
        };
        assert_eq!(read(trace, "{}").as_deref(), Some(trace));
        assert_eq!(read(&trace.replacen("00-", "01-", 1), "{}").as_deref(), Some(trace));
        for malformed in
            ["00-x-y-01", "", &trace.to_uppercase(), &format!("{trace}-"), &trace.replacen("00-", "ff-", 1)]
        {
            assert_eq!(read(malformed, "{}"), None, "{malformed}");
        }
        assert_eq!(read(trace, own).unwrap(), own[16..71]);
    }

    #[test]
    fn a_trace_that_comes_twice_is_left_out_and_a_malformed_one_in_the_body_is_refused() {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut twice = request(&[(TRACEPARENT, trace)], "{}");
        twice.headers.append(TRACEPARENT, trace.parse().unwrap());
        assert_eq!(twice.submit().unwrap().traceparent, None);
        let refused = request(&[(TRACEPARENT, trace)], r#"{"traceparent":"00-1"}"#).submit().unwrap_err();
        assert!(String::from_utf8(refused.to_json()).unwrap().contains("`traceparent`: "));
    }
}
