//! JSON-RPC over HTTP: `POST /rpc`.

use std::sync::{Arc, OnceLock};

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use reach_schemas::ErrorCode;
use tokio_util::sync::CancellationToken;

use super::app::{App, problem};
use super::body::{self, BodyError};
use super::door;
use super::drain::run;
use super::finish::finishing;
use crate::rest::{refuse_unless_json, traceparent_of};
use crate::rpc::methods::Context;
use crate::rpc::{self, Limits, error_of};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Answers one frame: 200 with the answer, 401 with it if it is that the caller is not known, or 204 where nothing may be said. What is wrong with the frame itself is
/// answered with 200 as well, as JSON-RPC has it; only what kept the frame from being read has a status of its own.
pub(super) async fn post(app: Arc<App>, request: Request) -> Response {
    if let Err(not_json) = refuse_unless_json(request.headers()) {
        return problem(not_json);
    }
    let (parts, content) = request.into_parts();
    let traceparent = traceparent_of(&parts.headers);
    let frame = match body::read(content, app.settings.body_max, app.settings.body_timeout).await {
        Ok(frame) => frame,
        Err(error) => return unread(error),
    };
    let gone = CancellationToken::new();
    let _gone_when_dropped = gone.clone().drop_guard();
    let context = Context { traceparent, gone, ..app.context(&parts.headers, &parts.extensions) };
    let (working, unknown) = (Arc::clone(&app), Arc::new(OnceLock::new()));
    let told = Arc::clone(&unknown);
    let answer = finishing(async move {
        let handler = async |call| {
            let outcome = run(&context, &working.drain.overdue, call).await;
            if let Err(error) = &outcome {
                note_unknown(&told, error.code());
            }
            outcome
        };
        rpc::answer(&frame, &Limits::of(working.gateway.texts()), handler).await
    });
    match (answer.await, unknown.get()) {
        // Who it is comes before what it wants: clients look at the status for that.
        (Some(text), Some(code)) => {
            let mut response = json(StatusCode::UNAUTHORIZED, text);
            door::challenge(&app, &parts.headers, &mut response, Some(*code));
            response
        }
        (Some(text), None) => json(StatusCode::OK, text),
        (None, _) => StatusCode::NO_CONTENT.into_response(),
    }
}

/// Notes that a call was refused for who it is by, if it was for that.
fn note_unknown(told: &OnceLock<ErrorCode>, number: i32) {
    let unknown = [ErrorCode::Unauthenticated, ErrorCode::TokenExpired, ErrorCode::TokenRevoked, ErrorCode::Superseded];
    if let Some(code) = unknown.into_iter().find(|code| code.number() == number) {
        // The first one stands for all.
        let _ = told.set(code);
    }
}

fn unread(error: BodyError) -> Response {
    let status = error.status();
    json(status, rpc::refused(error_of(error.into_failure(), None)))
}

fn json(status: StatusCode, text: Bytes) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], text).into_response()
}
