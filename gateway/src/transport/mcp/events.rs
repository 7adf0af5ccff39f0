//! Streams of server-sent events as bodies. A silent one is kept alive.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, StatusCode, header};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::mcp::server::{Next, Posted, Session, Stream, Waits};
use crate::mcp::wire::sse;

/// How long a stream may be silent before a comment is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Keeps proxies from gathering events before they pass them on.
const BUFFERING: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

/// What a request is answered, once it is.
pub(super) type Answer = Pin<Box<dyn Future<Output = Posted> + Send>>;

/// A response whose body is this stream of events.
fn response(events: impl futures_util::Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(events));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(sse::MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(BUFFERING.0, BUFFERING.1);
    response
}

/// What one request is told while it is worked on, and its answer. Dropping the body drops the work.
struct Working {
    waits: Waits,
    first: Option<Bytes>,
    notices: mpsc::Receiver<Bytes>,
    answer: Option<Answer>,
}

/// The stream of one request that stands alone: it ends with the answer.
pub(super) fn of_request(
    waits: Waits,
    first: Option<Bytes>,
    notices: mpsc::Receiver<Bytes>,
    answer: Answer,
) -> Response {
    let working = Working { waits: waits.clone(), first, notices, answer: Some(answer) };
    let events = stream::unfold(working, |mut working| async move {
        let event = working.next().await?;
        Some((Ok(event), working))
    });
    waited_on(waits, response(events))
}

/// A stream on which these calls wait: whoever ends it before they have their answers refuses them.
fn waited_on(waits: Waits, mut response: Response) -> Response {
    response.extensions_mut().insert(waits);
    response
}

impl Working {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(sse::event(None, &first));
        }
        if let Ok(notice) = self.notices.try_recv() {
            return Some(sse::event(None, &notice));
        }
        let answer = self.answer.as_mut()?;
        let posted = tokio::select! {
            biased;
            Some(notice) = self.notices.recv() => return Some(sse::event(None, &notice)),
            posted = answer => posted,
            () = tokio::time::sleep(KEEP_ALIVE) => return Some(sse::keep_alive()),
        };
        // What was said before the answer goes before it.
        self.answer = None;
        self.waits.end();
        let mut said: Vec<u8> = Vec::new();
        while let Ok(notice) = self.notices.try_recv() {
            said.extend_from_slice(&sse::event(None, &notice));
        }
        if let Some(text) = posted.text {
            said.extend_from_slice(&sse::event(None, &text));
        }
        (!said.is_empty()).then(|| said.into())
    }
}

/// Has a request of a session write what it says to a stream that outlives its connection, and gives that stream.
pub(super) fn detach(
    session: &Arc<Session>,
    waits: Waits,
    first: Option<Bytes>,
    mut notices: mpsc::Receiver<Bytes>,
    mut answer: Answer,
) -> Arc<Stream> {
    let stream = session.begin_stream(waits);
    let writing = Arc::clone(&stream);
    if let Some(first) = first {
        writing.write(first);
    }
    tokio::spawn(async move {
        loop {
            tokio::select! {
                biased;
                Some(notice) = notices.recv() => writing.write(notice),
                posted = &mut answer => {
                    while let Ok(notice) = notices.try_recv() {
                        writing.write(notice);
                    }
                    return writing.end(posted.text);
                }
            }
        }
    });
    stream
}

/// The events of a stream of a session after one of its messages. `is_primed`: it begins with an id to come back with.
pub(super) fn of_stream(
    session: Arc<Session>,
    stream: Arc<Stream>,
    after: u64,
    is_primed: bool,
    stop: CancellationToken,
) -> Response {
    let waits = stream.waits().elsewhere();
    let told = waits.clone();
    if stream.ends_with(after) {
        waits.end();
    }
    let start = (session, stream, after, is_primed);
    let events = stream::unfold(start, move |(session, stream, after, is_primed)| {
        let (stop, told) = (stop.clone(), told.clone());
        async move {
            if is_primed {
                let event = sse::priming(&stream.event_id(after));
                return Some((Ok(event), (session, stream, after, false)));
            }
            let next = tokio::select! {
                next = stream.next(after) => next,
                () = session.closed() => Next::End,
                () = stop.cancelled() => Next::End,
                () = tokio::time::sleep(KEEP_ALIVE) => {
                    return Some((Ok(sse::keep_alive()), (session, stream, after, false)));
                }
            };
            match next {
                Next::Message(number, message) => {
                    if stream.ends_with(number) {
                        told.end();
                    }
                    let event = sse::event(Some(&stream.event_id(number)), &message);
                    Some((Ok(event), (session, stream, number, false)))
                }
                Next::End => None,
            }
        }
    });
    waited_on(waits, response(events))
}

/// The events of what is said as long as some work goes on, which is nothing but saying it.
pub(super) fn of_notices(
    notices: mpsc::Receiver<Bytes>,
    saying: impl Future<Output = ()> + Send + 'static,
) -> Response {
    let start = (notices, Box::pin(saying), true);
    response(stream::unfold(start, |(mut notices, mut saying, is_first)| async move {
        if is_first {
            // The head of the response goes out with the first bytes of its body.
            return Some((Ok(sse::keep_alive()), (notices, saying, false)));
        }
        tokio::select! {
            Some(notice) = notices.recv() => Some((Ok(sse::event(None, &notice)), (notices, saying, false))),
            () = &mut saying => None,
            () = tokio::time::sleep(KEEP_ALIVE) => Some((Ok(sse::keep_alive()), (notices, saying, false))),
        }
    }))
}
