//! What the gateway itself says on a server's endpoint: errors, as JSON-RPC has them, under the id that was asked with.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use reach_schemas::{ErrorCode, Failure};

use crate::envelope::{Frame, Limits, Message, error_of};
use crate::transport::door::come_again;
use crate::upstream::reply::Fault;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An error with an HTTP status. `body` is the request's.
pub(super) fn error(status: StatusCode, body: &[u8], failure: Failure) -> Response {
    let id = id_of(body);
    let wait = failure.retry_after;
    let error = serde_json::to_string(&error_of(failure, None)).expect("an error object can be written as JSON");
    let mut response = json(status, Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)));
    come_again(&mut response, wait);
    response
}

/// What the audit log has of an answer that is a refusal.
#[derive(Debug, Clone)]
pub(super) struct Refusal(pub(super) ErrorCode, pub(super) String);

/// An error by which the caller is refused.
pub(super) fn refusal(status: StatusCode, body: &[u8], failure: Failure) -> Response {
    let refusal = Refusal(failure.code, failure.message.clone());
    let mut response = error(status, body, failure);
    response.extensions_mut().insert(refusal);
    response
}

/// A call that may not be made, or not now.
pub(super) fn refused(body: &[u8], failure: Failure) -> Response {
    let is_too_fast = failure.code == ErrorCode::Overloaded;
    refusal(if is_too_fast { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::FORBIDDEN }, body, failure)
}

/// A whole answer.
pub(super) fn json(status: StatusCode, text: Bytes) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], Body::from(text)).into_response()
}

fn id_of(body: &[u8]) -> String {
    match Frame::parse(body, &Limits::default()) {
        Frame::Single(Message::Call(call)) => call.id.map_or("null", |id| id.get()).to_owned(),
        Frame::Single(Message::Response(_) | Message::Invalid(_)) | Frame::Batch(_) => "null".to_owned(),
    }
}

/// A server that is not known.
pub(super) fn no_server(name: &str) -> Response {
    let message = format!("there is no MCP server {name:?} here; see reachctl get servers");
    refusal(StatusCode::NOT_FOUND, b"", Failure::new(ErrorCode::AgentNotFound, message))
}

/// A session that is not known (2025-11-25, Transports, Session Management: the client begins a new one).
pub(super) fn no_session(body: &[u8]) -> Response {
    let message = "the session is not known here any more; begin a new one with initialize";
    refusal(StatusCode::NOT_FOUND, body, Failure::new(ErrorCode::InvalidRequest, message))
}

/// A server that sends its client elsewhere: neither the gateway nor the client follows it.
pub(super) fn elsewhere(name: &str, body: &[u8], status: StatusCode) -> Response {
    let message = format!(
        "the server {name} answered with a redirect (HTTP {}), which is not followed: give the gateway the address that it \
         should ask",
        status.as_u16()
    );
    error(StatusCode::BAD_GATEWAY, body, Failure::new(ErrorCode::Unreachable, message))
}

/// A server that could not be asked, or did not answer.
pub(super) fn fault(name: &str, body: &[u8], fault: &Fault) -> Response {
    let (status, code) = match fault {
        Fault::NeverSent(_) | Fault::SessionGone => (StatusCode::BAD_GATEWAY, ErrorCode::Unreachable),
        Fault::Lost(_) | Fault::Status { .. } => (StatusCode::BAD_GATEWAY, ErrorCode::AgentLost),
        Fault::Late => (StatusCode::GATEWAY_TIMEOUT, ErrorCode::Timeout),
    };
    error(status, body, Failure::new(code, format!("the server {name}: {fault}")))
}
