//! What comes back from a server, or why nothing does.

use std::fmt;

use reach_schemas::{RawJson, Span};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::envelope::{Call, Frame, Limits, Message};
use crate::outbound::Silence;
use crate::upstream::broken;

/// How large one message of a server may be, in bytes.
pub(super) const MESSAGE_MAX: usize = 16 * 1024 * 1024;

/// A server's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The result, as the server wrote it.
    Result(RawJson),
    /// An error object.
    Refused(Rejection),
}

/// An error object of a server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Rejection {
    /// Its number.
    #[serde(default)]
    pub code: i64,
    /// What it says.
    #[serde(default)]
    pub message: String,
    /// What goes with it.
    #[serde(default)]
    pub data: Option<RawJson>,
    /// The error object, as it came.
    #[serde(skip, default = "nothing")]
    pub raw: RawJson,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The request certainly did not reach the server.
    NeverSent(String),
    /// It may have reached the server, and the way back broke.
    Lost(String),
    /// It may have reached the server, and the time is over.
    Late,
    /// The server no longer knows the session, and has not taken the request.
    SessionGone,
    /// The server answered by an HTTP status alone.
    Status {
        /// Which.
        status: u16,
        /// The beginning of what it said.
        text: String,
        /// When to come again.
        retry_after: Option<Span>,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverSent(why) => write!(f, "{why}"),
            Self::Lost(why) => write!(f, "the connection was lost after the request may have arrived: {why}"),
            Self::Late => f.write_str("it did not answer in time"),
            Self::SessionGone => f.write_str("it does not know the session any more"),
            Self::Status { status, text, .. } if text.is_empty() => write!(f, "it answered with HTTP status {status}"),
            Self::Status { status, text, .. } => write!(f, "it answered with HTTP status {status}: {text}"),
        }
    }
}

impl From<Silence> for Fault {
    fn from(silence: Silence) -> Self {
        match silence {
            Silence::NeverSent(why) => Self::NeverSent(why),
            Silence::NeverConnected => Self::NeverSent("it let nobody connect in time".to_owned()),
            Silence::Lost(why) => Self::Lost(why),
            Silence::Late => Self::Late,
        }
    }
}

/// What a server says of its own accord: a notice, or in the handshake era a question.
#[derive(Debug)]
pub struct Word<'a> {
    /// The method.
    pub method: &'a str,
    /// Its params, as they came.
    pub params: Option<&'a RawValue>,
}

/// Whoever hears what a server says while it works.
pub type Hears<'a> = &'a mut (dyn FnMut(Word<'_>) + Send);

/// What one text of a server holds for whoever asked.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The answers, by the text of their ids.
    pub(super) answers: Vec<(String, Reply)>,
    /// Answers to what the server asked.
    pub(super) owed: Vec<String>,
    /// The texts of the ids of answers that cannot be read.
    pub(super) broken: Vec<String>,
}

/// Reads a text of a server. What is no message of JSON-RPC is passed over, unless it can be told whom it answers.
pub(super) fn read(bytes: &[u8], hears: Hears<'_>) -> Heard {
    let mut heard = Heard::default();
    match Frame::parse(bytes, &Limits::default()) {
        Frame::Single(message) => heard.take(message, bytes, hears),
        Frame::Batch(messages) => {
            let entries = serde_json::from_slice::<Vec<&RawValue>>(bytes).unwrap_or_default();
            for (message, entry) in messages.into_iter().zip(entries) {
                heard.take(message, entry.get().as_bytes(), hears);
            }
        }
    }
    heard
}

impl Heard {
    fn take(&mut self, message: Message<'_>, text: &[u8], hears: Hears<'_>) {
        match message {
            Message::Response(response) => {
                self.answers.push((response.id.get().to_owned(), reply_of(response.outcome)));
            }
            Message::Call(Call { id: Some(id), method, .. }) => self.owed.push(super::ask::answer(id.get(), &method)),
            Message::Call(Call { id: None, method, params }) => hears(Word { method: &method, params }),
            Message::Invalid(invalid) => {
                tracing::debug!(flaw = %invalid.flaw, "a server said something that is no message");
                self.broken.extend(broken::whose(text));
            }
        }
    }

    /// The answer to a request of ours, which may be none that can be read.
    pub(super) fn answer_to(&mut self, id: u64) -> Option<Result<Reply, Fault>> {
        let id = id.to_string();
        if self.broken.contains(&id) {
            return Some(Err(Fault::Lost(broken::NO_ANSWER.to_owned())));
        }
        let at = self.answers.iter().position(|(of, _)| *of == id)?;
        Some(Ok(self.answers.swap_remove(at).1))
    }
}

fn reply_of(outcome: Result<&RawValue, &RawValue>) -> Reply {
    match outcome {
        Ok(result) => Reply::Result(RawJson::from(result.to_owned())),
        Err(error) => Reply::Refused(rejection_of(error.get())),
    }
}

fn rejection_of(error: &str) -> Rejection {
    let raw = RawJson::parse(error).unwrap_or_else(|_| nothing());
    match serde_json::from_str::<Rejection>(error) {
        Ok(read) => Rejection { raw, ..read },
        Err(flaw) => {
            Rejection { code: 0, message: format!("an error object that cannot be read: {flaw}"), data: None, raw }
        }
    }
}

fn nothing() -> RawJson {
    RawJson::parse("null").expect("null is JSON")
}

impl Rejection {
    /// Whether only a server of the stateless era answers so (2026-07-28, Versioning).
    pub(super) const fn is_of_the_stateless_era(&self) -> bool {
        matches!(self.code, -32_022..=-32_020)
    }
}
