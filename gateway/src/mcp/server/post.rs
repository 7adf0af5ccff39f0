//! One message over Streamable HTTP: which era it is of, whether its headers may stand, and with which status it is
//! answered.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use jsonrpsee_types::ErrorObjectOwned;
use reach_schemas::{AgentId, ErrorCode, Span};

use super::asking::{Asking, meta, named, opening};
use super::{AGENT_HEADER, Line, Server, Session, Stream, stateless};
use crate::envelope::{Answer, Call, Flaw, Frame, Id, Limits, Message, error_of, refusal};
use crate::identity::{Pass, Speaker};
use crate::mcp::wire::{Era, Revision, code, header};
use crate::rest::traceparent_of;
use crate::rpc::{Said, answer_frame};

/// What the audit log calls what is asked for before it is known what it is.
const ENDPOINT: &str = "/mcp";

/// What is said to one POST.
#[derive(Debug)]
pub struct Posted {
    /// The status, unless a stream was begun before.
    pub status: StatusCode,
    /// The text. None: nothing is said.
    pub text: Option<Bytes>,
    /// The session that was opened by it.
    pub opened: Option<Arc<Session>>,
    /// When to come again, if it asked too fast.
    pub retry_after: Option<Span>,
}

impl Posted {
    fn error(status: StatusCode, id: Id<'_>, error: ErrorObjectOwned) -> Self {
        Self::said(status, Some(Answer { id, outcome: Err(error) }.into_bytes()))
    }

    fn accepted() -> Self {
        Self::said(StatusCode::ACCEPTED, None)
    }

    /// What is said under a status, and nothing else.
    #[must_use]
    pub const fn said(status: StatusCode, text: Option<Bytes>) -> Self {
        Self { status, text, opened: None, retry_after: None }
    }
}

/// Why a session is not to be had.
#[derive(Debug)]
pub struct NoSession(pub StatusCode, pub ErrorObjectOwned);

impl Server {
    /// Answers one POST.
    pub async fn post(&self, pass: &Pass, headers: &HeaderMap, body: &[u8], line: &Line) -> Posted {
        let limits = Limits::of_peer(self.gateway.texts());
        let frame = Frame::parse(body, &limits);
        let agent = match agent_of(headers) {
            Ok(agent) => agent,
            Err(error) => return Posted::error(StatusCode::BAD_REQUEST, id_of(&frame), error),
        };
        let speaker = match self.speaker(pass, agent, ENDPOINT) {
            Ok(speaker) => speaker,
            Err(failure) => return Posted::error(StatusCode::FORBIDDEN, id_of(&frame), error_of(failure, None)),
        };
        // The messages of a batch are counted one by one, as they are answered.
        if matches!(frame, Frame::Single(_))
            && let Err(failure) = self.pace(&speaker, ENDPOINT)
        {
            let retry_after = failure.retry_after;
            let refused = Posted::error(StatusCode::TOO_MANY_REQUESTS, id_of(&frame), error_of(failure, None));
            return Posted { retry_after, ..refused };
        }
        if is_stateless(headers, &frame) {
            return self.post_alone(headers, frame, &speaker, line).await;
        }
        match &frame {
            Frame::Single(Message::Call(call)) if opening(call).is_some() => self.post_opening(call, speaker),
            Frame::Single(_) | Frame::Batch(_) => self.post_in_session(headers, frame, &speaker, line).await,
        }
    }

    /// A request that stands alone.
    async fn post_alone(&self, headers: &HeaderMap, frame: Frame<'_>, speaker: &Speaker, line: &Line) -> Posted {
        let call = match frame {
            Frame::Single(Message::Call(call)) => call,
            Frame::Single(Message::Invalid(invalid)) => {
                return Posted::error(StatusCode::BAD_REQUEST, invalid.id, invalid.flaw.to_error());
            }
            Frame::Single(Message::Response(_)) => {
                return Posted::error(StatusCode::BAD_REQUEST, Id::NULL, Flaw::StrayResponse.to_error());
            }
            Frame::Batch(_) => {
                let error = refusal(ErrorCode::InvalidRequest, "this revision has no batches; send each message alone");
                return Posted::error(StatusCode::BAD_REQUEST, Id::NULL, error);
            }
        };
        let id = call.id.unwrap_or(Id::NULL);
        let checked = meta(call.params).and_then(|meta| {
            // A version header that nobody speaks is told before what else is missing.
            let said = stateless::one(headers, header::PROTOCOL_VERSION)?;
            if let (Some(said), None) = (said, meta.protocol_version.as_deref()) {
                stateless::check_version(said)?;
            }
            if meta.protocol_version.is_some() {
                stateless::check_headers(headers, &call, &meta)?;
            }
            stateless::check_meta(&meta)?;
            let tool = (call.method == "tools/call").then(|| stateless::name_of(&call)).flatten();
            let view = tool.map(|name| (self.view(speaker), name));
            match view.as_ref().and_then(|(view, name)| view.get(name)) {
                Some(tool) => stateless::check_mirrored(headers, tool, call.params),
                None => Ok(()),
            }
        });
        if let Err(error) = checked {
            self.note_error(speaker, named(&call.method), &error);
            return Posted::error(StatusCode::BAD_REQUEST, id, error);
        }
        if call.is_notification() {
            return Posted::accepted();
        }
        let asking = Asking {
            server: self,
            speaker,
            era: Era::Stateless,
            line,
            session: None,
            outlives_connection: false,
            is_counted: true,
            traceparent: traceparent_of(headers),
        };
        let status = OnceLock::new();
        let limits = Limits::of(self.gateway.texts());
        let text = answer_frame(Frame::Single(Message::Call(call)), &limits, |call| async {
            let said = asking.say(call).await;
            if let Said::Outcome(Err(error)) = &said {
                // One message is answered once.
                let _ = status.set(status_of(error.code()));
            }
            said
        });
        let text = text.await;
        Posted::said(status.get().copied().unwrap_or(StatusCode::OK), text)
    }

    fn post_opening(&self, call: &Call<'_>, speaker: Speaker) -> Posted {
        let Some(opening) = opening(call) else { return Posted::accepted() };
        let answer = Answer { id: call.id.unwrap_or(Id::NULL), outcome: opening.answer() };
        if let Err(error) = &answer.outcome {
            self.note_error(&speaker, named(&call.method), error);
        }
        let opened = opening.revision().map(|revision| self.sessions.open(speaker, revision));
        let status = if opened.is_some() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        Posted { opened, ..Posted::said(status, Some(answer.into_bytes())) }
    }

    async fn post_in_session(&self, headers: &HeaderMap, frame: Frame<'_>, speaker: &Speaker, line: &Line) -> Posted {
        let session = match self.session_of(headers, speaker) {
            Ok(session) => session,
            Err(NoSession(status, error)) => return Posted::error(status, id_of(&frame), error),
        };
        let revision = session.revision().unwrap_or(Revision::ASSUMED);
        match &frame {
            Frame::Single(Message::Invalid(invalid)) => {
                return Posted::error(StatusCode::BAD_REQUEST, invalid.id, invalid.flaw.to_error());
            }
            Frame::Batch(_) if !revision.takes_batches() => {
                let error =
                    refusal(ErrorCode::InvalidRequest, format!("{revision} has no batches; send each message alone"));
                return Posted::error(StatusCode::BAD_REQUEST, Id::NULL, error);
            }
            Frame::Single(Message::Call(_) | Message::Response(_)) | Frame::Batch(_) => {}
        }
        line.belongs_to(&session);
        let text = self.answer_in_session(&session, speaker, frame, line, true, traceparent_of(headers)).await;
        match text {
            Some(text) => Posted::said(StatusCode::OK, Some(text)),
            None => Posted::accepted(),
        }
    }

    /// Answers what a frame asks within a session.
    pub(super) async fn answer_in_session(
        &self,
        session: &Session,
        speaker: &Speaker,
        frame: Frame<'_>,
        line: &Line,
        outlives_connection: bool,
        traceparent: Option<reach_schemas::Traceparent>,
    ) -> Option<Bytes> {
        let limits = Limits::of_peer(self.gateway.texts());
        // Over HTTP a message that comes alone was counted with its request.
        let is_counted = outlives_connection && matches!(frame, Frame::Single(_));
        let answer = async |call| {
            // One call of a batch is called off without the others.
            let line = &line.for_another();
            let (server, session) = (self, Some(session));
            let asking = Asking {
                server,
                speaker,
                era: Era::Handshake,
                line,
                session,
                outlives_connection,
                is_counted,
                traceparent,
            };
            asking.say(call).await
        };
        answer_frame(frame, &limits, answer).await
    }

    /// The session that a request names. If there is none, that is written down.
    ///
    /// # Errors
    /// It names none (400), or one that is not there or another's, so that the client opens another (404).
    pub fn session_of(&self, headers: &HeaderMap, speaker: &Speaker) -> Result<Arc<Session>, NoSession> {
        let session = self.session_named(headers, speaker);
        session.inspect_err(|NoSession(_, error)| self.note_error(speaker, ENDPOINT, error))
    }

    fn session_named(&self, headers: &HeaderMap, speaker: &Speaker) -> Result<Arc<Session>, NoSession> {
        let bad = |error| NoSession(StatusCode::BAD_REQUEST, error);
        if let Some(version) = stateless::one(headers, header::PROTOCOL_VERSION).map_err(bad)?
            && Revision::by_name(version).is_none()
        {
            return Err(bad(stateless::check_version(version)
                .err()
                .unwrap_or_else(|| refusal(ErrorCode::InvalidRequest, version))));
        }
        let Some(id) = stateless::one(headers, header::SESSION_ID).map_err(bad)? else {
            let message = format!(
                "without a header {}, begin with `initialize`; or speak {} and say so in `_meta`",
                header::SESSION_ID,
                Revision::NEWEST
            );
            return Err(bad(refusal(ErrorCode::InvalidRequest, message)));
        };
        self.sessions.get(id, speaker).ok_or_else(|| {
            let message = "there is no such session any more; begin anew with `initialize`";
            NoSession(StatusCode::NOT_FOUND, refusal(ErrorCode::InvalidRequest, message))
        })
    }

    /// Ends a session.
    pub fn close(&self, session: &Session) {
        self.sessions.close(session);
    }

    /// A stream of a session, and after which of its messages to go on, by the id of the last event that was seen.
    #[must_use]
    pub fn resumed(&self, session: &Session, headers: &HeaderMap) -> Option<(Arc<Stream>, u64)> {
        let id = headers.get(header::LAST_EVENT_ID)?.to_str().ok()?;
        session.streams.find(id)
    }
}

/// The agent that the caller says it is.
///
/// # Errors
/// It is no agent's id.
pub fn agent_of(headers: &HeaderMap) -> Result<Option<AgentId>, ErrorObjectOwned> {
    let said = stateless::one(headers, AGENT_HEADER)?;
    let agent = said.map(str::parse::<AgentId>).transpose();
    agent.map_err(|error| refusal(ErrorCode::InvalidRequest, format!("the header {AGENT_HEADER}: {error}")))
}

/// Whether a frame is of the stateless era: its header or its `_meta` says so. A version that nobody knows says so as well,
/// save to a request that opens a session or belongs to one.
fn is_stateless(headers: &HeaderMap, frame: &Frame<'_>) -> bool {
    if let Frame::Single(Message::Call(call)) = frame {
        let says_so = meta(call.params).map_or(true, |meta| meta.is_stateless());
        if says_so {
            return true;
        }
        if opening(call).is_some() {
            return false;
        }
    }
    let version = headers.get(header::PROTOCOL_VERSION).and_then(|value| value.to_str().ok());
    match version.map(|text| Revision::by_name(text.trim())) {
        Some(Some(revision)) => revision.era() == Era::Stateless,
        Some(None) => !headers.contains_key(header::SESSION_ID),
        None => false,
    }
}

fn id_of<'a>(frame: &Frame<'a>) -> Id<'a> {
    match frame {
        Frame::Single(Message::Call(call)) => call.id.unwrap_or(Id::NULL),
        Frame::Single(Message::Invalid(invalid)) => invalid.id,
        Frame::Single(Message::Response(_)) | Frame::Batch(_) => Id::NULL,
    }
}

/// The status of an error of the stateless era (2026-07-28, Streamable HTTP).
fn status_of(number: i32) -> StatusCode {
    let is_not_found = number == ErrorCode::MethodNotFound.number();
    let is_bad = [
        ErrorCode::InvalidRequest.number(),
        ErrorCode::ParseError.number(),
        code::HEADER_MISMATCH,
        code::MISSING_CLIENT_CAPABILITY,
        code::UNSUPPORTED_REVISION,
    ];
    match number {
        _ if is_not_found => StatusCode::NOT_FOUND,
        number if is_bad.contains(&number) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
