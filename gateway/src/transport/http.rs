//! JSON-RPC over HTTP: `POST /rpc`.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use tokio_util::sync::CancellationToken;

use super::app::{App, problem};
use super::body::{self, BodyError};
use super::drain::run;
use super::finish::finishing;
use crate::rest::{refuse_unless_json, traceparent_of};
use crate::rpc::methods::Context;
use crate::rpc::{self, Limits, error_of};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Answers one frame: 200 with the answer, or 204 where nothing may be said. What is wrong with the frame itself is
/// answered with 200 as well, as JSON-RPC has it; only what kept the frame from being read has a status of its own.
pub(super) async fn post(app: Arc<App>, request: Request) -> Response {
    if let Err(not_json) = refuse_unless_json(request.headers()) {
        return problem(not_json);
    }
    let traceparent = traceparent_of(request.headers());
    let frame = match body::read(request.into_body(), app.settings.body_max, app.settings.body_timeout).await {
        Ok(frame) => frame,
        Err(error) => return unread(error),
    };
    let gone = CancellationToken::new();
    let _gone_when_dropped = gone.clone().drop_guard();
    let answer = finishing(async move {
        let context = Context { traceparent, gone, ..app.context() };
        rpc::answer(&frame, &Limits::default(), |call| run(&context, &app.drain.overdue, call)).await
    });
    match answer.await {
        Some(text) => json(StatusCode::OK, text),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

fn unread(error: BodyError) -> Response {
    let status = error.status();
    json(status, rpc::refused(error_of(error.into_failure(), None)))
}

fn json(status: StatusCode, text: Bytes) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], text).into_response()
}
