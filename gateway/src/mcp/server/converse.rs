//! One message over a connection that stays open (WebSocket, standard input and output). The era is chosen by each message:
//! one that says its revision in `_meta` stands alone, all others belong to the session that `initialize` opens.

use bytes::Bytes;
use reach_schemas::{ErrorCode, Failure};

use super::asking::{Asking, meta, named, opening};
use super::{Line, Server, Session, stateless};
use crate::envelope::{Answer, Call, Frame, Id, Limits, Message, Outcome, error_of, refusal};
use crate::mcp::wire::Era;
use crate::mcp::wire::object::Object;
use crate::rpc::{Said, answer_frame};

impl Server {
    /// Answers one frame. None: nothing is to be said to it.
    pub async fn converse(&self, session: &Session, frame: &[u8], line: &Line) -> Option<Bytes> {
        let limits = Limits::of_peer(self.gateway.texts());
        let frame = Frame::parse(frame, &limits);
        let is_alone = |call: &Call<'_>| meta(call.params).is_ok_and(|meta| meta.is_stateless());
        match frame {
            Frame::Single(Message::Call(call)) if is_alone(&call) => self.answer_alone(session, call, line).await,
            Frame::Single(Message::Call(call)) if session.revision().is_none() => self.answer_first(session, &call),
            Frame::Batch(messages) if !session.revision().is_some_and(|revision| revision.takes_batches()) => {
                let error =
                    refusal(ErrorCode::InvalidRequest, "batches are of 2025-03-26 only; send each message alone");
                (!messages.is_empty()).then(|| Answer { id: Id::NULL, outcome: Err(error) }.into_bytes())
            }
            frame @ (Frame::Single(_) | Frame::Batch(_)) => {
                self.answer_in_session(session, &session.speaker, frame, line, false, None).await
            }
        }
    }

    /// Refuses every call of a frame, each under its own id.
    pub async fn refuse(&self, session: &Session, frame: &[u8], failure: &Failure) -> Option<Bytes> {
        let (limits, pass) = (Limits::of_peer(self.gateway.texts()), session.speaker.pass());
        let refuse = async |call: Call<'_>| -> Outcome {
            let failure = self.gateway.refuse(&pass, named(&call.method), failure.clone());
            Err(error_of(failure, None))
        };
        answer_frame(Frame::parse(frame, &limits), &limits, refuse).await
    }

    /// A message of the stateless era.
    async fn answer_alone(&self, session: &Session, call: Call<'_>, line: &Line) -> Option<Bytes> {
        let asking = Asking {
            server: self,
            speaker: &session.speaker,
            era: Era::Stateless,
            line,
            session: Some(session),
            outlives_connection: false,
            is_counted: false,
            traceparent: None,
        };
        let limits = Limits::of(self.gateway.texts());
        let answer = async |call: Call<'_>| match meta(call.params).and_then(|meta| stateless::check_meta(&meta)) {
            Ok(()) => asking.say(call).await,
            Err(error) => {
                self.note_error(&session.speaker, named(&call.method), &error);
                Said::Outcome(Err(error))
            }
        };
        answer_frame(Frame::Single(Message::Call(call)), &limits, answer).await
    }

    /// A message before any handshake.
    fn answer_first(&self, session: &Session, call: &Call<'_>) -> Option<Bytes> {
        let id = call.id?;
        if let Err(failure) = self.pace(&session.speaker, named(&call.method)) {
            return Some(Answer { id, outcome: Err(error_of(failure, None)) }.into_bytes());
        }
        let outcome: Outcome = match opening(call) {
            Some(opening) => {
                let outcome = opening.answer();
                if let Some(revision) = opening.revision() {
                    session.agree(revision);
                }
                outcome
            }
            None if call.method == "ping" => Ok(Object::default().into_raw()),
            None => {
                let message = "begin with `initialize`, or say your revision and capabilities in `_meta`";
                Err(refusal(ErrorCode::InvalidRequest, message))
            }
        };
        if let Err(error) = &outcome {
            self.note_error(&session.speaker, named(&call.method), error);
        }
        Some(Answer { id, outcome }.into_bytes())
    }
}
