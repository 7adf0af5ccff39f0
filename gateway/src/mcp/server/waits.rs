//! The calls that wait for their answers on a stream of events: whoever ends the stream before tells each of them why.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use reach_schemas::Failure;

use crate::envelope::{Call, Frame, Limits, Message, error_of};
use crate::mcp::wire::sse;

/// The calls of one request, by the texts of their ids. Cloning gives the same.
#[derive(Debug, Clone, Default)]
pub struct Waits {
    ids: Arc<[Box<str>]>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    is_over: AtomicBool,
    is_mute: AtomicBool,
}

impl Waits {
    /// The calls of a frame that are to be answered.
    #[must_use]
    pub fn of(frame: &[u8], limits: &Limits) -> Self {
        let messages = match Frame::parse(frame, limits) {
            Frame::Single(message) => vec![message],
            Frame::Batch(messages) => messages,
        };
        Self::of_calls(messages.iter().filter_map(|message| match message {
            Message::Call(call) => Some(call),
            Message::Response(_) | Message::Invalid(_) => None,
        }))
    }

    /// Those of these calls that are to be answered.
    pub fn of_calls<'a>(calls: impl IntoIterator<Item = &'a Call<'a>>) -> Self {
        let ids = calls.into_iter().filter_map(|call| call.id.as_ref().map(|id| id.get().into()));
        Self { ids: ids.collect(), state: Arc::default() }
    }

    /// The same calls, on another stream.
    #[must_use]
    pub fn elsewhere(&self) -> Self {
        Self { ids: Arc::clone(&self.ids), state: Arc::default() }
    }

    /// Notes that they have their answers.
    pub fn end(&self) {
        self.state.is_over.store(true, Ordering::Relaxed);
    }

    /// Notes whether nothing may be said to them just now: some may have their answers, or the stream is in the midst of an
    /// event.
    pub fn mute(&self, is_mute: bool) {
        self.state.is_mute.store(is_mute, Ordering::Relaxed);
    }

    /// Whether they have their answers.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state.is_over.load(Ordering::Relaxed)
    }

    /// The refusal of all of them, as events; nothing where nothing may be said.
    #[must_use]
    pub fn refused(&self, failure: &Failure) -> Bytes {
        if self.state.is_mute.load(Ordering::Relaxed) {
            return Bytes::new();
        }
        let error = serde_json::to_string(&error_of(failure.clone(), None));
        let error = error.expect("an error object can be written as JSON");
        let mut said = Vec::new();
        for id in &*self.ids {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
            said.extend_from_slice(&sse::event(None, text.as_bytes()));
        }
        said.into()
    }
}

#[cfg(test)]
mod tests {
    use reach_schemas::ErrorCode;

    use super::*;

    #[test]
    fn each_call_of_a_request_is_told_under_its_own_id() {
        let frame = br#"[{"jsonrpc":"2.0","id":"a","method":"x"},{"jsonrpc":"2.0","method":"y"},{"jsonrpc":"2.0","id":2,"method":"z"}]"#;
        let said =
            Waits::of(frame, &Limits::default()).refused(&Failure::new(ErrorCode::TokenRevoked, "it was revoked"));
        let said = String::from_utf8(said.to_vec()).unwrap();
        assert_eq!(said.matches("event: message\ndata: ").count(), 2);
        assert!(said.contains(r#""id":"a","error":"#) && said.contains(r#""id":2,"error":"#), "{said}");
    }
}
