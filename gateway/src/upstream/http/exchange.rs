//! Reads the answer to one request: one JSON text, or a stream of events in which it comes. In the handshake era a stream
//! that was cut is gone on with where the server lets it (2025-11-25, Transports, Resumability).

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use http_body_util::BodyExt;
use reach_schemas::{Span, Timestamp};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::head::is_session_gone;
use super::{HttpLink, WORD_TIMEOUT};
use crate::adapter::retry_after::retry_after;
use crate::mcp::wire::sse::is_stream;
use crate::mcp::wire::sse::read::{Event, Reader};
use crate::mcp::wire::{Era, header};
use crate::outbound::{Body, Stream, read as read_whole, told};
use crate::upstream::ask::Ask;
use crate::upstream::broken::NO_ANSWER;
use crate::upstream::reply::{Fault, Hears, MESSAGE_MAX, Reply, read};

/// How much of an answer without an error object is quoted, in bytes.
const QUOTED_MAX: usize = 512;
/// How long to wait before a stream is gone on with, unless its server says.
const RESUME_AFTER: Duration = Duration::from_millis(500);
/// How often one answer's stream is gone on with.
const RESUMES_MAX: u32 = 100;

/// The head of the answer to a request, and the answer.
pub(super) async fn answer(
    link: &HttpLink,
    response: Response<Stream>,
    id: u64,
    until: Instant,
    hears: Hears<'_>,
) -> Result<(HeaderMap, Reply), Fault> {
    let head = response.headers().clone();
    if response.status().is_success() && is_stream(&head) {
        let reply = streamed(link, response, id, until, hears).await?;
        return Ok((head, reply));
    }
    let status = response.status();
    let whole = timeout_at(until, read_whole(response)).await.map_err(|_| Fault::Late)?;
    let text = match whole.body {
        Body::Whole(text) => text,
        Body::TooLarge => return Err(Fault::Lost("its answer is larger than is taken".to_owned())),
        Body::Cut(why) => return Err(Fault::Lost(why)),
    };
    let has_session = link.0.session.is_some();
    if has_session && is_session_gone(status.as_u16(), &text) {
        return Err(Fault::SessionGone);
    }
    let mut heard = read(&text, hears);
    // What is no answer and has a status of its own to say is told by that.
    let own = heard.answer_to(id).filter(|own| own.is_ok() || status.is_success()).transpose()?;
    // An error about a request that could not be read has no id.
    let mut stray = || heard.answers.pop().map(|(_, reply)| reply).filter(|reply| matches!(reply, Reply::Refused(_)));
    match own.or_else(|| if status.is_success() { None } else { stray() }) {
        Some(reply) => Ok((head, reply)),
        None if status.is_success() => Err(Fault::Lost(NO_ANSWER.to_owned())),
        None => Err(by_status(status.as_u16(), &head, &text)),
    }
}

fn by_status(status: u16, head: &HeaderMap, text: &Bytes) -> Fault {
    let text = String::from_utf8_lossy(&text[..text.len().min(QUOTED_MAX)]).trim().to_owned();
    let now = Timestamp::from_ms(Span::from(UNIX_EPOCH.elapsed().unwrap_or_default()).as_ms());
    Fault::Status { status, text, retry_after: retry_after(head, now) }
}

/// Why a word that needs no answer was refused.
pub(super) async fn refused(link: &HttpLink, response: Response<Stream>) -> Fault {
    let (status, head) = (response.status().as_u16(), response.headers().clone());
    let text = match tokio::time::timeout(WORD_TIMEOUT, read_whole(response)).await.map(|answered| answered.body) {
        Ok(Body::Whole(text)) => text,
        Ok(Body::TooLarge | Body::Cut(_)) | Err(_) => Bytes::new(),
    };
    if link.0.session.is_some() && is_session_gone(status, &text) {
        return Fault::SessionGone;
    }
    by_status(status, &head, &text)
}

async fn streamed(
    link: &HttpLink,
    response: Response<Stream>,
    id: u64,
    until: Instant,
    hears: Hears<'_>,
) -> Result<Reply, Fault> {
    let mut place = Place::default();
    let mut body = response.into_body();
    for _ in 0..RESUMES_MAX {
        let cut = match follow(link, &mut body, id, until, &mut place, hears).await? {
            Followed::Answered(reply) => return Ok(reply),
            Followed::Cut(why) => why,
        };
        let Some(last) = place.last.as_deref().filter(|_| link.era() == Era::Handshake) else {
            return Err(Fault::Lost(cut));
        };
        let at = Instant::now() + place.retry.unwrap_or(RESUME_AFTER);
        if at >= until {
            return Err(Fault::Late);
        }
        sleep_until(at).await;
        body = link.resume(last, until).await?;
    }
    Err(Fault::Lost("its stream broke again and again".to_owned()))
}

/// Where in a stream its reader is.
#[derive(Default)]
pub(super) struct Place {
    pub(super) last: Option<String>,
    pub(super) retry: Option<Duration>,
}

impl Place {
    pub(super) fn pass(&mut self, event: &Event) {
        if event.id.is_some() {
            self.last.clone_from(&event.id);
        }
        self.retry = event.retry.or(self.retry);
    }
}

enum Followed {
    Answered(Reply),
    Cut(String),
}

async fn follow(
    link: &HttpLink,
    body: &mut Stream,
    id: u64,
    until: Instant,
    place: &mut Place,
    hears: Hears<'_>,
) -> Result<Followed, Fault> {
    let mut reader = Reader::new(MESSAGE_MAX);
    loop {
        let frame = match timeout_at(until, body.frame()).await.map_err(|_| Fault::Late)? {
            None => return Ok(Followed::Cut("its stream ended before the answer".to_owned())),
            Some(Err(error)) => return Ok(Followed::Cut(told(error.as_ref()))),
            Some(Ok(frame)) => frame,
        };
        let Ok(bytes) = frame.into_data() else { continue };
        let events = reader.push(&bytes).map_err(|error| Fault::Lost(error.to_string()))?;
        for event in events {
            place.pass(&event);
            if event.data.is_empty() {
                continue;
            }
            let mut heard = read(event.data.as_bytes(), hears);
            if let Some(reply) = heard.answer_to(id) {
                return reply.map(Followed::Answered);
            }
            for text in heard.owed {
                link.say(text).await?;
            }
        }
    }
}

impl HttpLink {
    /// Goes on with a stream after an event.
    async fn resume(&self, last: &str, until: Instant) -> Result<Stream, Fault> {
        let mut request = self.request_to(Method::GET, Bytes::new(), &Ask::default());
        if let Ok(last) = HeaderValue::from_str(last) {
            request.headers_mut().insert(HeaderName::from_static(header::LAST_EVENT_ID), last);
        }
        let response = self.0.client.begin(request, until).await?;
        if response.status().is_success() && is_stream(response.headers()) {
            return Ok(response.into_body());
        }
        let status = response.status();
        Err(Fault::Lost(format!("its stream broke, and going on with it was answered with HTTP status {status}")))
    }
}
