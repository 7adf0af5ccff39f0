//! What is said about a request as an answer: one JSON text if nothing is said before it and it does not take long, else a
//! stream of events. A silent stream is kept alive.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, StatusCode, header};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::answer::json;
use crate::mcp::server::Waits;
use crate::mcp::wire::sse;

/// How long an answer may take before a stream is begun, so that whoever is in between sees that something goes on.
const HOLD: Duration = Duration::from_secs(2);
/// How long a stream may be silent before a comment is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// One thing that is said.
pub(super) struct Saying {
    /// A message.
    pub(super) text: Bytes,
    /// The HTTP status that an answer has if it is all there is. None: it is no answer, and more follows.
    pub(super) answer: Option<StatusCode>,
}

/// Where what is said comes from, until so many answers have come. `_kept` is dropped with the stream.
pub(super) struct Telling<K> {
    pub(super) says: mpsc::Receiver<Saying>,
    /// The calls that the answers are to.
    pub(super) waits: Waits,
    pub(super) answers: usize,
    /// Either ends it, the second one at once.
    pub(super) ends: [CancellationToken; 2],
    pub(super) _kept: K,
}

/// The answer to a request.
pub(super) async fn respond<K: Send + 'static>(mut telling: Telling<K>) -> Response {
    let first = tokio::select! {
        said = telling.says.recv() => said,
        () = tokio::time::sleep(HOLD) => None,
    };
    if let Some(Saying { text, answer: Some(status) }) = &first
        && telling.answers == 1
    {
        return json(*status, text.clone());
    }
    stream_of(first, telling)
}

/// What comes as long as the stream is open.
pub(super) fn standing<K: Send + 'static>(telling: Telling<K>) -> Response {
    stream_of(None, telling)
}

fn stream_of<K: Send + 'static>(first: Option<Saying>, telling: Telling<K>) -> Response {
    // The head goes out with the first bytes of the body.
    let begin = first.map_or_else(|| Step::KeepAlive, Step::Say);
    let waits = telling.waits.clone();
    let events = stream::unfold((Some(begin), telling), |(begin, mut telling)| async move {
        let step = match begin {
            Some(step) => step,
            None if telling.answers == 0 => return None,
            None => telling.next().await?,
        };
        let event = match step {
            Step::KeepAlive => sse::keep_alive(),
            Step::Say(Saying { text, answer }) => {
                if answer.is_some() {
                    telling.answers -= 1;
                    // Which of several it is to is not looked at: none of them is to be answered twice.
                    telling.waits.mute(true);
                    if telling.answers == 0 {
                        telling.waits.end();
                    }
                }
                sse::event(None, &text)
            }
        };
        Some((Ok::<_, Infallible>(event), (None, telling)))
    });
    let mut response = Response::new(Body::from_stream(events));
    response.extensions_mut().insert(waits);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(sse::MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

enum Step {
    Say(Saying),
    KeepAlive,
}

impl<K> Telling<K> {
    async fn next(&mut self) -> Option<Step> {
        tokio::select! {
            biased;
            // What comes after the session is over is for nobody.
            () = self.ends[1].cancelled() => None,
            said = self.says.recv() => said.map(Step::Say),
            () = self.ends[0].cancelled() => None,
            () = tokio::time::sleep(KEEP_ALIVE) => Some(Step::KeepAlive),
        }
    }
}
