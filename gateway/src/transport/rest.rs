//! REST: a request is read whole, and given to its route.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::response::Response;

use super::app::{App, problem};
use super::drain::shutting_down;
use super::finish::finishing;
use super::{body, door};
use crate::rest::{self, Operation, Problem};
use crate::rpc::Limits;

/// Answers one request.
pub(super) async fn handle(app: Arc<App>, operation: Operation, request: Request) -> Response {
    let (mut parts, content) = request.into_parts();
    let content = match body::read(content, app.settings.body_max, app.settings.body_timeout).await {
        Ok(content) => content,
        Err(error) => {
            let status = error.status();
            return problem(Problem::from(error.into_failure()).with_status(status));
        }
    };
    let part = match RawPathParams::from_request_parts(&mut parts, &()).await {
        Ok(params) => params.iter().next().map(|(_, part)| part.to_owned()),
        Err(rejection) => {
            tracing::debug!(%rejection, "a path has no readable part");
            None
        }
    };
    let limits = Limits::of(app.gateway.texts());
    let context = app.context(&parts.headers, &parts.extensions);
    let (asked, door) = (parts.headers.clone(), Arc::clone(&app));
    let request = rest::Request { part, uri: parts.uri, headers: parts.headers, body: content, limits };
    let answer = finishing(async move {
        tokio::select! {
            biased;
            answer = rest::answer(&context, operation, &request) => answer,
            () = app.drain.overdue.cancelled() => Problem::from(shutting_down()).into_response(),
        }
    });
    let mut response = answer.await.map(Body::from);
    door::challenge(&door, &asked, &mut response, None);
    response
}
