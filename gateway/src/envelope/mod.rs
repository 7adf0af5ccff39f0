//! Bytes in, messages out: what a frame of JSON-RPC 2.0 asks, answers, or gets wrong, for every dialect and every peer
//! that speaks it. Nothing is copied but a method or a key that is written with escapes.

mod answer;
mod error;
mod flaw;
mod limits;
pub(crate) mod lines;
mod members;
mod nesting;

use std::borrow::Cow;

use serde_json::value::RawValue;

pub(crate) use answer::batch_into_bytes;
pub use answer::{Answer, Outcome, refused};
pub use error::{error_of, refusal};
pub use flaw::Flaw;
pub use limits::{Limits, StrayResponses, TextLimits};
use members::{Entries, Member, Members};
use nesting::is_nested_beyond;

/// What one text of a transport holds.
#[derive(Debug)]
pub enum Frame<'a> {
    /// One message, or one flaw of the whole frame.
    Single(Message<'a>),
    /// A batch: at least one message and at most the limit, in the order they came.
    Batch(Vec<Message<'a>>),
}

/// One message: a question, an answer, or neither.
#[derive(Debug)]
pub enum Message<'a> {
    /// A request or a notification.
    Call(Call<'a>),
    /// An answer to something that this side asked.
    Response(Response<'a>),
    /// Something else.
    Invalid(Invalid<'a>),
}

/// A well-formed request or notification.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The caller's name for this call; none for a notification.
    pub id: Option<Id<'a>>,
    /// What is asked for.
    pub method: Cow<'a, str>,
    /// An array or an object as it came, or nothing.
    pub params: Option<&'a RawValue>,
}

impl Call<'_> {
    /// Whether the caller wants no answer, not even a refusal.
    #[must_use]
    pub fn is_notification(&self) -> bool {
        self.id.is_none()
    }
}

/// A well-formed answer of the peer.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The id that this side gave; `null` if the peer could not read it.
    pub id: Id<'a>,
    /// The result, or the error object, as it came.
    pub outcome: Result<&'a RawValue, &'a RawValue>,
}

/// A message that is refused.
#[derive(Clone, Debug)]
pub struct Invalid<'a> {
    /// The id to refuse it under: its own where that could be read, else `null`.
    pub id: Id<'a>,
    /// Why.
    pub flaw: Flaw,
    /// Whether it was meant as a response; [`StrayResponses`] says whether it is answered at all.
    pub is_response: bool,
}

/// A legal id as the text that came in: a string with its quotes, a number of any size, or `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id<'a>(&'a str);

impl<'a> Id<'a> {
    /// The id of answers to frames whose own id could not be read.
    pub const NULL: Id<'static> = Id("null");

    /// The JSON text, byte for byte as it came.
    #[must_use]
    pub fn get(self) -> &'a str {
        self.0
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self == Self::NULL
    }

    fn of(raw: &'a RawValue) -> Option<Self> {
        let is_legal = match raw.get().as_bytes().first()? {
            b'"' => string_of(raw).is_some(),
            b'-' | b'0'..=b'9' | b'n' => true,
            _ => false,
        };
        is_legal.then_some(Self(raw.get()))
    }
}

impl<'a> Frame<'a> {
    /// Reads a frame. It never refuses to answer: what cannot be read is a message that says so.
    #[must_use]
    pub fn parse(bytes: &'a [u8], limits: &Limits) -> Self {
        match read(bytes, limits) {
            Ok(frame) => frame,
            Err(flaw) => Self::Single(Message::Invalid(Invalid { id: Id::NULL, flaw, is_response: false })),
        }
    }

    /// Takes out the well-formed responses, for a transport that asked for them. What is left may be an
    /// empty batch, which is answered with nothing.
    pub fn take_responses(&mut self) -> Vec<Response<'a>> {
        let mut responses = Vec::new();
        match self {
            Self::Single(Message::Response(response)) => {
                responses.push(*response);
                *self = Self::Batch(Vec::new());
            }
            Self::Single(Message::Call(_) | Message::Invalid(_)) => {}
            Self::Batch(messages) => messages.retain(|message| match message {
                Message::Response(response) => {
                    responses.push(*response);
                    false
                }
                Message::Call(_) | Message::Invalid(_) => true,
            }),
        }
        responses
    }
}

/// Reads one JSON value that comes without an envelope, as strictly as a frame is read.
///
/// # Errors
/// It is not UTF-8, not JSON, or nested too deep.
pub fn read_value<'a>(bytes: &'a [u8], limits: &Limits) -> Result<&'a RawValue, Flaw> {
    serde_json::from_str(text_of(bytes, limits)?).map_err(not_json)
}

fn text_of<'a>(bytes: &'a [u8], limits: &Limits) -> Result<&'a str, Flaw> {
    let text = std::str::from_utf8(bytes).map_err(|error| Flaw::NotUtf8 { at: error.valid_up_to() })?;
    if is_nested_beyond(bytes, limits.depth_max) {
        return Err(Flaw::TooDeep { depth_max: limits.depth_max });
    }
    // The white space of JSON, which is less than that of Unicode.
    Ok(text.trim_matches([' ', '\t', '\n', '\r']))
}

fn read<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Frame<'a>, Flaw> {
    let text = text_of(bytes, limits)?;
    match text.as_bytes().first() {
        Some(b'{') => Ok(Frame::Single(Members::read(text).map_err(not_json)?.into_message())),
        Some(b'[') => read_batch(text, limits.batch_max),
        Some(_) | None => {
            serde_json::from_str::<&RawValue>(text).map_err(not_json)?;
            Err(Flaw::NotAnObject)
        }
    }
}

/// The array is read whole before its messages are looked into: a batch that is not JSON runs no call.
fn read_batch(text: &str, batch_max: usize) -> Result<Frame<'_>, Flaw> {
    let entries = Entries::read(text, batch_max).map_err(not_json)?;
    match entries {
        Entries::TooMany => Err(Flaw::BatchTooLong { batch_max }),
        Entries::All(entries) if entries.is_empty() => Err(Flaw::EmptyBatch),
        Entries::All(entries) => Ok(Frame::Batch(entries.into_iter().map(read_entry).collect())),
    }
}

fn read_entry(entry: &RawValue) -> Message<'_> {
    let flaw = if entry.get().starts_with('{') {
        match Members::read(entry.get()) {
            Ok(members) => return members.into_message(),
            // The entry is JSON, so this is a key that is no Unicode.
            Err(error) => not_json(error),
        }
    } else {
        Flaw::NotAnObject
    };
    Message::Invalid(Invalid { id: Id::NULL, flaw, is_response: false })
}

impl<'a> Members<'a> {
    fn into_message(mut self) -> Message<'a> {
        let is_response =
            self.get(Member::Method).is_none() && (self.get(Member::Result).or(self.get(Member::Error))).is_some();
        let read = match self.came_twice() {
            Some(flaw) => Err(flaw),
            None if is_response => self.response().map(Message::Response),
            None => self.call().map(Message::Call),
        };
        read.unwrap_or_else(|flaw| {
            let own = if self.has_one_id() && !is_response { self.get(Member::Id).and_then(Id::of) } else { None };
            Message::Invalid(Invalid { id: own.unwrap_or(Id::NULL), flaw, is_response })
        })
    }

    fn call(&self) -> Result<Call<'a>, Flaw> {
        self.check_version()?;
        let id = self.get(Member::Id).map(|raw| Id::of(raw).ok_or(Flaw::Id)).transpose()?;
        let method = self.get(Member::Method).and_then(string_of).ok_or(Flaw::Method)?;
        let params = self.get(Member::Params);
        if params.is_some_and(|params| !params.get().starts_with(['{', '['])) {
            return Err(Flaw::Params);
        }
        let answer = [Member::Result, Member::Error].into_iter().find(|member| self.get(*member).is_some());
        match answer {
            Some(member) => Err(Flaw::AsksAndAnswers { name: member.name() }),
            None => Ok(Call { id, method, params }),
        }
    }

    fn response(&self) -> Result<Response<'a>, Flaw> {
        self.check_version()?;
        let id = self.get(Member::Id).and_then(Id::of).ok_or(Flaw::BrokenResponse)?;
        let outcome = match (self.get(Member::Result), self.get(Member::Error)) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) if error.get().starts_with('{') => Err(error),
            (Some(_) | None, Some(_)) | (None, None) => return Err(Flaw::BrokenResponse),
        };
        Ok(Response { id, outcome })
    }

    fn check_version(&self) -> Result<(), Flaw> {
        let version = self.get(Member::Jsonrpc).and_then(string_of);
        if version.as_deref() == Some("2.0") { Ok(()) } else { Err(Flaw::Version) }
    }
}

/// The string that a raw value is; none if it is no string, or one whose escapes are no Unicode.
fn string_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(raw.get()).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

fn not_json(error: serde_json::Error) -> Flaw {
    Flaw::NotJson { reason: error.to_string() }
}
