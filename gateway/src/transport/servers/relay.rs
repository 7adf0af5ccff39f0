//! A server that is reached over HTTP: requests and answers pass as they come here, byte for byte. Only sessions are the
//! gateway's own, so that a client need not notice that its server was restarted: the gateway then opens the session again as
//! the client opened it, and sends on what the server had not taken.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body as HttpBody, Frame as BodyFrame, SizeHint};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::answer;
use super::fronts::{Front, Fronts, Open};
use super::head::{back, onward};
use super::said::{Said, Word};
use crate::envelope::Limits;
use crate::identity::Speaker;
use crate::mcp::server::Waits;
use crate::mcp::wire::{header, sse};
use crate::outbound::Stream;
use crate::transport::app::App;
use crate::upstream::is_session_gone;
use crate::upstream::reply::Fault;
use crate::upstream::server::Server;

/// How long the head of an answer may take. A long call streams, or answers within this.
const HEAD_TIMEOUT: Duration = Duration::from_secs(300);
/// How long a server that is being restarted is waited for.
const RESTART: Duration = Duration::from_secs(10);
/// How often it is tried meanwhile.
const RESTART_EVERY: Duration = Duration::from_millis(100);
/// How much of a refusal is read to see whether it is about the session, in bytes.
const REFUSAL_MAX: usize = 64 * 1024;

/// What is behind a session with a server over HTTP.
pub(in crate::transport) struct Behind {
    /// What the server calls it. Held while it is opened again.
    session: tokio::sync::Mutex<HeaderValue>,
    /// How the client opened it.
    headers: HeaderMap,
    initialize: Bytes,
    said: Said,
}

type HttpFront = Front<Behind>;

/// Passes one request on.
pub(super) async fn relay(
    app: &App,
    server: &Server,
    speaker: &Speaker,
    parts: &Parts,
    body: Bytes,
    is_stateless: bool,
) -> Response {
    let fronts = &app.servers.http;
    let name = server.spec().name.as_str();
    let front = fronts.of(name, speaker, &parts.headers);
    if front.is_none() && parts.headers.contains_key(header::SESSION_ID) {
        return answer::no_session(&body);
    }
    let open = front.as_ref().map(Front::open);
    let word = if is_stateless { Word::Other } else { Word::of(&body) };
    if let Some(front) = &front {
        front.behind.said.note(&word, &parts.headers, &body);
    }
    let passed = match &front {
        Some(front) => in_session(server, front, parts, &body).await,
        None => pass(server, &parts.method, &onward(&parts.headers, None), &body).await,
    };
    let response = match passed {
        Ok(response) if is_elsewhere(response.status()) => return answer::elsewhere(name, &body, response.status()),
        Ok(response) => response,
        Err(Fault::SessionGone) => {
            if let Some(front) = &front {
                fronts.remove(front);
            }
            return answer::no_session(&body);
        }
        Err(fault) => return answer::fault(name, &body, &fault),
    };
    let front = match front {
        Some(front) if parts.method == Method::DELETE => {
            fronts.remove(&front);
            None
        }
        Some(front) => Some(front),
        None if word == Word::Initialize => opened(fronts, server, speaker, parts, &body, &response),
        None => None,
    };
    // Only who was asked who it is can be turned away while it waits.
    let asked = speaker.pass().can_end().then_some(&body);
    give_back(app, response, (front.as_ref(), open, asked), parts.method == Method::GET)
}

/// Whether a client that obeyed would ask again somewhere else: of the gateway, since that is whom it asked.
const fn is_elsewhere(status: StatusCode) -> bool {
    matches!(status.as_u16(), 300..=303 | 305..=399)
}

/// A session that the server has just opened.
fn opened(
    fronts: &Fronts<Behind>,
    server: &Server,
    speaker: &Speaker,
    parts: &Parts,
    body: &Bytes,
    response: &http::Response<Stream>,
) -> Option<Arc<HttpFront>> {
    let session = response.headers().get(header::SESSION_ID).filter(|_| response.status().is_success())?;
    let behind = Behind {
        session: tokio::sync::Mutex::new(session.clone()),
        headers: onward(&parts.headers, None),
        initialize: body.clone(),
        said: Said::default(),
    };
    Some(fronts.put(server.spec().name.clone(), speaker, behind))
}

/// Passes a request of a session on. What the server did not take because it has lost the session is sent again in a new
/// one, once.
async fn in_session(
    server: &Server,
    front: &HttpFront,
    parts: &Parts,
    body: &Bytes,
) -> Result<http::Response<Stream>, Fault> {
    let session = front.behind.session.lock().await.clone();
    let mut headers = onward(&parts.headers, Some(&session));
    let response = pass(server, &parts.method, &headers, body).await?;
    let response = match unless_gone(response).await {
        Ok(response) => return Ok(response),
        // A session that is lost is as good as one that was ended.
        Err(response) if parts.method == Method::DELETE => return Ok(response),
        Err(_) => front.behind.reopen(server, &session).await?,
    };
    headers.insert(header::SESSION_ID, response);
    // Where the old session's streams were is nothing to the new one.
    headers.remove(header::LAST_EVENT_ID);
    let response = pass(server, &parts.method, &headers, body).await?;
    unless_gone(response).await.map_err(|_| Fault::SessionGone)
}

/// Passes a request on; a server that cannot be connected to is waited for.
async fn pass(
    server: &Server,
    method: &Method,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<http::Response<Stream>, Fault> {
    let (patience, until) = (Instant::now() + RESTART, Instant::now() + HEAD_TIMEOUT);
    loop {
        match server.pass(method.clone(), headers.clone(), body.clone(), until).await {
            Err(Fault::NeverSent(_)) if Instant::now() < patience => tokio::time::sleep(RESTART_EVERY).await,
            passed => return passed,
        }
    }
}

/// The answer, unless it says that the session is lost.
async fn unless_gone(response: http::Response<Stream>) -> Result<http::Response<Stream>, http::Response<Stream>> {
    let status = response.status();
    if status == StatusCode::NOT_FOUND {
        return Err(response);
    }
    if status != StatusCode::BAD_REQUEST {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let text =
        Limited::new(body, REFUSAL_MAX).collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let is_gone = is_session_gone(status.as_u16(), &text);
    let response = http::Response::from_parts(parts, Stream::Whole(Some(text)));
    if is_gone { Err(response) } else { Ok(response) }
}

impl Behind {
    /// Opens the session again, unless another request has done so meanwhile.
    async fn reopen(&self, server: &Server, lost: &HeaderValue) -> Result<HeaderValue, Fault> {
        let mut session = self.session.lock().await;
        if *session != *lost {
            return Ok(session.clone());
        }
        let until = Instant::now() + RESTART;
        let new = server.reopen(&self.headers, &self.initialize, until).await.map_err(|_| Fault::SessionGone)?;
        let (version, again) = self.said.again();
        let mut headers = onward(&self.headers, Some(&new));
        if let (Some(version), Ok(name)) = (version, header::PROTOCOL_VERSION.parse::<http::HeaderName>()) {
            headers.insert(name, version);
        }
        for body in again {
            // A subscription that is refused now must not keep the rest from being served.
            if let Err(fault) = server.say(&headers, &body, until).await {
                tracing::debug!(%fault, "something was not taken again by a server that was restarted");
            }
        }
        tracing::info!(server = %server.spec().name, "a client's session was opened again: the server had lost it");
        *session = new.clone();
        Ok(new)
    }
}

/// The answer as it goes back.
fn give_back(
    app: &App,
    response: http::Response<Stream>,
    (front, open, asked): (Option<&Arc<HttpFront>>, Option<Open<Behind>>, Option<&Bytes>),
    is_standing: bool,
) -> Response {
    let (parts, stream) = response.into_parts();
    let is_events = sse::is_stream(&parts.headers);
    // A stream on which nothing need come must not hold up a stop.
    let end = if is_standing { &app.drain.stop } else { &app.drain.overdue };
    let over = front.map(|front| front.over.clone()).unwrap_or_default();
    let waits = asked.filter(|_| is_events).map(|asked| Waits::of(asked, &Limits::default()));
    let body = if is_events {
        Body::new(Ending::new(stream, [end.clone(), over], waits.clone().map(Passing::of), open))
    } else {
        Body::new(stream)
    };
    let mut response = Response::new(body);
    if let Some(waits) = waits {
        response.extensions_mut().insert(waits);
    }
    *response.headers_mut() = back(&parts.headers, front.map(|front| &front.id));
    // Another's challenge is nothing that our client could answer.
    let is_challenge = matches!(parts.status, StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    *response.status_mut() = if is_challenge { StatusCode::BAD_GATEWAY } else { parts.status };
    response
}

/// A stream that ends when its server ends it, when its session is over, or when the gateway has to stop.
struct Ending {
    stream: Stream,
    ends: [Pin<Box<WaitForCancellationFutureOwned>>; 2],
    passing: Option<Passing>,
    _open: Option<Open<Behind>>,
}

impl Ending {
    fn new(stream: Stream, ends: [CancellationToken; 2], passing: Option<Passing>, open: Option<Open<Behind>>) -> Self {
        Self { stream, ends: ends.map(|end| Box::pin(end.cancelled_owned())), passing, _open: open }
    }
}

/// What is seen of events as their bytes pass: enough to know whether the calls that wait on them can still be told something.
struct Passing {
    waits: Waits,
    has_answer: bool,
}

impl Passing {
    const fn of(waits: Waits) -> Self {
        Self { waits, has_answer: false }
    }

    /// What may be an answer is taken for one: nobody is to be answered twice.
    fn see(&mut self, bytes: &[u8]) {
        let has = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
        self.has_answer = self.has_answer || has(br#""result""#) || has(br#""error""#);
        let is_between = [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"].iter().any(|end| bytes.ends_with(end));
        self.waits.mute(self.has_answer || !is_between);
    }
}

impl HttpBody for Ending {
    type Data = Bytes;
    type Error = <Stream as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Self::Error>>> {
        // What comes after the session is over is for nobody.
        if self.ends[1].as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.stream).poll_frame(cx) {
            match (&frame, &mut self.passing) {
                (Some(Ok(frame)), Some(passing)) => frame.data_ref().into_iter().for_each(|bytes| passing.see(bytes)),
                (Some(Err(_)) | None, Some(passing)) => passing.waits.end(),
                (_, None) => {}
            }
            return Poll::Ready(frame);
        }
        self.ends[0].as_mut().poll(cx).map(|()| None)
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.stream.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use reach_schemas::{ErrorCode, Failure};

    use super::*;

    #[test]
    fn calls_are_told_something_between_events_and_before_what_may_be_an_answer() {
        let waits = Waits::of(br#"{"jsonrpc":"2.0","id":1,"method":"x"}"#, &Limits::default());
        let mut passing = Passing::of(waits.clone());
        let mut told = |bytes: &[u8]| {
            passing.see(bytes);
            !waits.refused(&Failure::new(ErrorCode::TokenRevoked, "it was revoked")).is_empty()
        };
        assert!(told(b"data: {\"method\":\"notifications/progress\"}\n\n"));
        assert!(!told(b"data: {\"method\":"));
        assert!(told(b"\"notifications/progress\"}\r\n\r\n"));
        assert!(!told(b"data: {\"id\":1,\"result\":{}}\n\n"));
        assert!(!told(b": still there\n\n"));
    }
}
