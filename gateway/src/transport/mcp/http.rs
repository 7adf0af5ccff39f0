//! Streamable HTTP: `POST`, `GET` and `DELETE` on one path. An answer is one JSON object as long as nothing is said before it
//! and it does not take long; else it is a stream of events, which ends with it.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jsonrpsee_types::ErrorObjectOwned;
use reach_schemas::{ErrorCode, Failure};
use tokio_util::sync::CancellationToken;

use super::events;
use crate::envelope::{Limits, error_of, refusal, refused};
use crate::identity::Pass;
use crate::mcp::server::{Line, NoSession, Posted, Session, Waits, agent_of};
use crate::mcp::wire::header::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use crate::mcp::wire::{Era, Revision, sse};
use crate::transport::app::App;
use crate::transport::body;
use crate::transport::door;
use crate::transport::drain::shutting_down;
use crate::transport::finish::going_on;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// How long an answer may take before a stream is begun, so that whoever is in between sees that something goes on.
const HOLD: Duration = Duration::from_secs(2);

/// Answers one POST.
pub(in crate::transport) async fn post(app: Arc<App>, request: Request) -> Response {
    let (parts, content) = request.into_parts();
    if let Some(refusal) = refuse_media(&parts.headers) {
        return refusal;
    }
    let body = match body::read(content, app.settings.body_max, app.settings.body_timeout).await {
        Ok(body) => body,
        Err(error) => {
            let status = error.status();
            return json(status, refused(error_of(error.into_failure(), None)));
        }
    };
    let gone = CancellationToken::new();
    let (line, mut notices) = Line::channel(gone.clone());
    let (answering, working, asked) = (line.clone(), Arc::clone(&app), body.clone());
    let pass = door::pass_of(&parts.extensions);
    let answer = async move {
        tokio::select! {
            biased;
            posted = working.mcp.post(&pass, &parts.headers, &body, &answering) => posted,
            () = working.drain.overdue.cancelled() => overdue(),
        }
    };
    let mut answer: events::Answer = Box::pin(going_on(answer, gone));
    let first = tokio::select! {
        biased;
        posted = &mut answer => match notices.try_recv() {
            // What was said before the answer goes before it, though both are here at once.
            Ok(first) => {
                answer = Box::pin(std::future::ready(posted));
                Some(first)
            }
            Err(_) => return whole(posted),
        },
        first = notices.recv() => first,
        () = tokio::time::sleep(HOLD) => None,
    };
    let waits = Waits::of(&asked, &Limits::of_peer(app.gateway.texts()));
    match line.session() {
        None => events::of_request(waits, first, notices, answer),
        Some(session) => {
            let stream = events::detach(session, waits, first, notices, answer);
            let is_primed = session.revision() == Some(Revision::V2025_11_25);
            events::of_stream(Arc::clone(session), stream, 0, is_primed, app.drain.overdue.clone())
        }
    }
}

/// Opens a stream on which a client of a session is told what changes, or takes up one that it lost hold of.
pub(in crate::transport) async fn get(app: Arc<App>, request: Request) -> Response {
    let headers = request.headers();
    if !accepts(headers, sse::MEDIA_TYPE) {
        return error(
            StatusCode::NOT_ACCEPTABLE,
            refusal(ErrorCode::InvalidRequest, "`Accept` must name text/event-stream"),
        );
    }
    let session = match session(&app, &door::pass_of(request.extensions()), headers) {
        Ok(session) => session,
        Err(response) => return response,
    };
    if headers.contains_key(LAST_EVENT_ID)
        && let Some((stream, after)) = app.mcp.resumed(&session, headers)
    {
        return events::of_stream(session, stream, after, false, app.drain.stop.clone());
    }
    let (line, notices) = Line::channel(app.drain.stop.clone());
    let server = Arc::clone(&app.mcp);
    events::of_notices(notices, async move { server.tell_session(&session, &line).await })
}

/// Ends a session.
pub(in crate::transport) async fn delete(app: Arc<App>, request: Request) -> Response {
    match session(&app, &door::pass_of(request.extensions()), request.headers()) {
        Ok(session) => {
            app.mcp.close(&session);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(response) => response,
    }
}

/// The session of a request that only sessions know. The stateless era has none.
fn session(app: &App, pass: &Pass, headers: &HeaderMap) -> Result<Arc<Session>, Response> {
    let version = headers.get(PROTOCOL_VERSION).and_then(|value| value.to_str().ok()).and_then(Revision::by_name);
    if version.is_some_and(|revision| revision.era() == Era::Stateless) {
        let message = format!("{} has no sessions; POST subscriptions/listen to be told of changes", Revision::NEWEST);
        let mut response = error(StatusCode::METHOD_NOT_ALLOWED, refusal(ErrorCode::InvalidRequest, message));
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return Err(response);
    }
    let agent = agent_of(headers).map_err(|refusal| error(StatusCode::BAD_REQUEST, refusal))?;
    let speaker = app.mcp.speaker(pass, agent, super::PATH);
    let speaker = speaker.map_err(|failure| error(StatusCode::FORBIDDEN, error_of(failure, None)))?;
    if let Err(failure) = app.mcp.pace(&speaker, super::PATH) {
        let retry_after = failure.retry_after;
        let mut response = error(StatusCode::TOO_MANY_REQUESTS, error_of(failure, None));
        door::come_again(&mut response, retry_after);
        return Err(response);
    }
    app.mcp.session_of(headers, &speaker).map_err(|NoSession(status, refusal)| error(status, refusal))
}

fn overdue() -> Posted {
    Posted::said(StatusCode::SERVICE_UNAVAILABLE, Some(refused(error_of(shutting_down(), None))))
}

fn whole(posted: Posted) -> Response {
    let mut response = match posted.text {
        Some(text) => json(posted.status, text),
        None => posted.status.into_response(),
    };
    door::come_again(&mut response, posted.retry_after);
    if let Some(session) = posted.opened
        && let Ok(id) = HeaderValue::from_str(session.id())
    {
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
}

/// The refusal of a request whose media types are wrong (2025-03-26 and later, Sending Messages to the Server).
fn refuse_media(headers: &HeaderMap) -> Option<Response> {
    if let Err(problem) = crate::rest::refuse_unless_json(headers) {
        let failure = Failure::new(ErrorCode::InvalidRequest, problem.detail());
        return Some(error(StatusCode::UNSUPPORTED_MEDIA_TYPE, error_of(failure, None)));
    }
    if accepts(headers, "application/json") && accepts(headers, sse::MEDIA_TYPE) {
        return None;
    }
    let message = "`Accept` must name both application/json and text/event-stream";
    Some(error(StatusCode::NOT_ACCEPTABLE, refusal(ErrorCode::InvalidRequest, message)))
}

/// Whether a media type may be sent. A request that says nothing takes any.
fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter().peekable();
    let kind = wanted.split('/').next().unwrap_or_default();
    values.peek().is_none()
        || values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|range| {
            let range = range.split(';').next().unwrap_or_default().trim();
            range == "*/*" || range.eq_ignore_ascii_case(wanted) || range.strip_suffix("/*") == Some(kind)
        })
}

fn error(status: StatusCode, refusal: ErrorObjectOwned) -> Response {
    json(status, refused(refusal))
}

fn json(status: StatusCode, text: Bytes) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], text).into_response()
}
