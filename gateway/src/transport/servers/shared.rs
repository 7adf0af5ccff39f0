//! Requests of the stateless era to a server that is a process: all clients share it. The gateway is the HTTP server here,
//! so it is the one that holds headers to the body (2026-07-28, Transports, Standard Request Headers).

use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use reach_schemas::{ErrorCode, Failure};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::answer;
use super::events::{Saying, Telling, respond};
use crate::envelope::{Call, Frame, Limits, Message};
use crate::mcp::server::Waits;
use crate::mcp::wire::meta::Meta;
use crate::mcp::wire::{Era, Revision, code, header};
use crate::transport::app::App;
use crate::upstream::Passed;
use crate::upstream::server::Server;

/// How long the server may take to be there.
const START: Duration = Duration::from_secs(60);
/// How many messages about one request may wait to be sent.
const WAITING_MAX: usize = 256;

/// Answers one request.
pub(super) async fn post(app: &App, server: &Arc<Server>, parts: &Parts, body: Bytes) -> Response {
    if parts.method != Method::POST {
        let mut response = StatusCode::METHOD_NOT_ALLOWED.into_response();
        response.headers_mut().insert(http::header::ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let frame = Frame::parse(&body, &Limits::default());
    let call = match frame {
        Frame::Single(Message::Call(call)) if call.is_notification() => return StatusCode::ACCEPTED.into_response(),
        Frame::Single(Message::Call(call)) => call,
        Frame::Single(Message::Invalid(invalid)) => {
            return answer::error(
                StatusCode::BAD_REQUEST,
                &body,
                Failure::new(invalid.flaw.code(), invalid.flaw.to_string()),
            );
        }
        Frame::Single(Message::Response(_)) | Frame::Batch(_) => {
            let message = "one request a POST; there are no batches and no answers of clients in this revision";
            return answer::error(StatusCode::BAD_REQUEST, &body, Failure::new(ErrorCode::InvalidRequest, message));
        }
    };
    if let Some((number, message, data)) = refusal(&parts.headers, &call) {
        return refuse(&call, number, &message, data);
    }
    let until = Instant::now() + START;
    match server.era(until).await {
        Ok(Era::Stateless) => {}
        Ok(Era::Handshake) => {
            // What a server of the handshake era answers to a method that it does not know.
            return refuse(&call, -32601, "this server is of the handshake era; begin with initialize", None);
        }
        Err(fault) => return answer::fault(server.spec().name.as_str(), &body, &fault),
    }
    let (passed, mut comes) = mpsc::channel(WAITING_MAX);
    let shares = match server.share(&call, passed, until).await {
        Ok(shares) => shares,
        Err(fault) => return answer::fault(server.spec().name.as_str(), &body, &fault),
    };
    let (say, says) = mpsc::channel(1);
    let reading = async move {
        while let Some(passed) = comes.recv().await {
            let saying = match passed {
                Passed::Notice(text) => Saying { text, answer: None },
                Passed::Answer(text, error) => Saying { text, answer: Some(status_of(error)) },
            };
            if say.send(saying).await.is_err() {
                return;
            }
        }
    };
    let reading = tokio::spawn(reading);
    let kept = (shares, AbortWhenDropped(reading));
    let ends = [app.drain.overdue.clone(), app.drain.cut.clone()];
    let waits = Waits::of_calls([&call]);
    respond(Telling { says, waits, answers: 1, ends, _kept: kept }).await
}

struct AbortWhenDropped(tokio::task::JoinHandle<()>);

impl Drop for AbortWhenDropped {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The HTTP status of an answer (2026-07-28, Transports, Status Codes).
fn status_of(error: Option<i64>) -> StatusCode {
    match error {
        Some(-32601) => StatusCode::NOT_FOUND,
        Some(-32_022..=-32_020) => StatusCode::BAD_REQUEST,
        Some(_) | None => StatusCode::OK,
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    name: Option<String>,
    uri: Option<String>,
    #[serde(rename = "taskId")]
    task_id: Option<String>,
}

/// Why a request is not passed on: its number, words and data.
fn refusal(headers: &HeaderMap, call: &Call<'_>) -> Option<(i32, String, Option<String>)> {
    let mismatch = |what: &str| Some((code::HEADER_MISMATCH, what.to_owned(), None));
    let of = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let Ok(meta) = Meta::of(call.params) else {
        return Some((-32602, "`_meta` has a member of the wrong type".to_owned(), None));
    };
    let Some(version) = meta.protocol_version.as_deref() else {
        return Some((-32602, "`_meta` must name the protocol version".to_owned(), None));
    };
    if meta.client_capabilities.is_none() {
        return Some((-32602, "`_meta` must name the client's capabilities".to_owned(), None));
    }
    if of(header::PROTOCOL_VERSION) != Some(version) {
        return mismatch("MCP-Protocol-Version must say what `_meta` says");
    }
    if version != Revision::NEWEST.as_str() {
        let data = format!(
            r#"{{"supported":["{}"],"requested":{}}}"#,
            Revision::NEWEST,
            crate::mcp::wire::object::quoted(version)
        );
        return Some((code::UNSUPPORTED_REVISION, format!("{version} is not spoken here"), Some(data)));
    }
    if of(header::METHOD) != Some(call.method.as_ref()) {
        return mismatch("Mcp-Method must say what the body says");
    }
    let named: Named = call.params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
    let name = match call.method.as_ref() {
        "tools/call" | "prompts/get" => named.name,
        "resources/read" => named.uri,
        method if method.starts_with("tasks/") => named.task_id,
        _ => return None,
    };
    let said = of(header::NAME).and_then(header::decode);
    if said.is_none() || said.as_deref() != name.as_deref() {
        return mismatch("Mcp-Name must say what the body says");
    }
    None
}

fn refuse(call: &Call<'_>, number: i32, message: &str, data: Option<String>) -> Response {
    let id = call.id.map_or("null", |id| id.get());
    let data = data.map(|data| format!(r#","data":{data}"#)).unwrap_or_default();
    let message = crate::mcp::wire::object::quoted(message);
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{number},"message":{message}{data}}}}}"#);
    answer::json(StatusCode::BAD_REQUEST, text.into())
}
