//! One dispatcher for every transport: a frame goes in, its calls run through the handler, and the text of
//! the answer comes out, or nothing where nothing may be said.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures_util::FutureExt;
use jsonrpsee_types::ErrorObjectOwned;
use reach_schemas::ErrorCode;

use super::batch::answer_batch;
use crate::envelope::{Answer, Call, Flaw, Frame, Id, Invalid, Limits, Message, Outcome, StrayResponses, refusal};

/// How much of a caller's method name goes into the log.
const LOGGED_NAME_MAX: usize = 64;

/// What a handler has to say to one call.
#[derive(Debug)]
pub enum Said {
    /// An answer.
    Outcome(Outcome),
    /// Nothing, though it was asked: its caller has called it off.
    Nothing,
}

impl From<Outcome> for Said {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(outcome)
    }
}

/// Reads a frame, runs what it asks for, and gives the text of the answer: one line of JSON, or `None` for
/// a notification, a batch of nothing else, or an ignored response.
///
/// The handler is asked once for every well-formed call, notifications included, whose outcome is dropped. A call that it
/// has nothing to say to is left out of the answer.
/// Calls of a batch run side by side up to the limit, on the task that awaits this future; dropping it drops
/// them all. A handler that panics ends its own call with an internal error (-32603) and no other.
pub async fn answer<'f, H, F>(frame: &'f [u8], limits: &Limits, handler: H) -> Option<Bytes>
where
    H: Fn(Call<'f>) -> F,
    F: Future<Output: Into<Said>>,
{
    answer_frame(Frame::parse(frame, limits), limits, handler).await
}

/// Does what [`answer`] does, for a transport that has read the frame itself.
pub async fn answer_frame<'f, H, F>(frame: Frame<'f>, limits: &Limits, handler: H) -> Option<Bytes>
where
    H: Fn(Call<'f>) -> F,
    F: Future<Output: Into<Said>>,
{
    match frame {
        Frame::Single(message) => answer_message(message, limits, &handler).await.map(Answer::into_bytes),
        Frame::Batch(messages) => answer_batch(messages, limits, &handler).await,
    }
}

/// The answer to one message, if it gets one.
pub(super) async fn answer_message<'f, H, F>(message: Message<'f>, limits: &Limits, handler: &H) -> Option<Answer<'f>>
where
    H: Fn(Call<'f>) -> F,
    F: Future<Output: Into<Said>>,
{
    match message {
        Message::Call(call) => {
            let id = call.id;
            match run(call, handler).await {
                Said::Outcome(outcome) => id.map(|id| Answer { id, outcome }),
                Said::Nothing => None,
            }
        }
        Message::Response(_) => refuse(Invalid { id: Id::NULL, flaw: Flaw::StrayResponse, is_response: true }, limits),
        Message::Invalid(invalid) => refuse(invalid, limits),
    }
}

fn refuse<'f>(invalid: Invalid<'f>, limits: &Limits) -> Option<Answer<'f>> {
    if invalid.is_response && limits.stray_responses == StrayResponses::Ignore {
        tracing::debug!(flaw = %invalid.flaw, "dropped a response that nobody waits for");
        return None;
    }
    Some(Answer { id: invalid.id, outcome: Err(invalid.flaw.to_error()) })
}

/// Runs one call and turns a panic into its outcome. The future is dropped then, and with it what was only
/// its own; what handlers share must be whole at every await, which dropping a call asks of them anyway.
async fn run<'f, H, F>(call: Call<'f>, handler: &H) -> Said
where
    H: Fn(Call<'f>) -> F,
    F: Future<Output: Into<Said>>,
{
    let (method, is_notification) = (call.method.clone(), call.is_notification());
    let said = AssertUnwindSafe(async { handler(call).await.into() }).catch_unwind().await;
    let said = said.unwrap_or_else(|panic| Said::Outcome(Err(internal_error(&method, panic.as_ref()))));
    if let (true, Said::Outcome(Err(error))) = (is_notification, &said) {
        tracing::debug!(method = beginning(&method), code = error.code(), "a notification failed; nobody is told");
    }
    said
}

fn internal_error(method: &str, panic: &(dyn Any + Send)) -> ErrorObjectOwned {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text");
    tracing::error!(method = beginning(method), panic = text, "a call ended by a panic");
    refusal(ErrorCode::Internal, "the call failed inside the gateway, whose log says why; call again later")
}

/// The beginning of a caller's text, as much as a log line should carry.
fn beginning(text: &str) -> &str {
    text.char_indices().nth(LOGGED_NAME_MAX).map_or(text, |(end, _)| &text[..end])
}
