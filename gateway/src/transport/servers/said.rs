//! What a client of the handshake era said that a server must hear again when a session is opened anew: it was ready, how
//! much of the log it wants, and what it is subscribed to.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;

use crate::envelope::{Frame, Limits, Message};
use crate::mcp::wire::header;

/// How many subscriptions of one session are made again.
const SUBSCRIPTIONS_MAX: usize = 256;

/// What was said in one session.
#[derive(Default)]
pub(super) struct Said(Mutex<Words>);

#[derive(Default)]
struct Words {
    initialized: Option<Bytes>,
    level: Option<Bytes>,
    subscriptions: BTreeMap<String, Bytes>,
    version: Option<HeaderValue>,
}

#[derive(Deserialize)]
struct Resource {
    uri: String,
}

impl Said {
    /// Remembers what must be said again in a new session.
    pub(super) fn note(&self, word: &Word, headers: &HeaderMap, body: &Bytes) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.version.is_none() {
            said.version = headers.get(header::PROTOCOL_VERSION).cloned();
        }
        match word {
            Word::Initialized => said.initialized = Some(body.clone()),
            Word::Level => said.level = Some(body.clone()),
            Word::Subscribe(uri) if said.subscriptions.len() < SUBSCRIPTIONS_MAX => {
                said.subscriptions.insert(uri.clone(), body.clone());
            }
            Word::Unsubscribe(uri) => {
                said.subscriptions.remove(uri);
            }
            Word::Subscribe(_) | Word::Initialize | Word::Other => {}
        }
    }

    /// The revision that the client names, and what it said, in the order in which to say it again.
    pub(super) fn again(&self) -> (Option<HeaderValue>, Vec<Bytes>) {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let again = said.initialized.iter().chain(&said.level).chain(said.subscriptions.values());
        (said.version.clone(), again.cloned().collect())
    }
}

/// What a request of the handshake era is about, as far as the session depends on it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The session is opened.
    Initialize,
    /// The client is ready.
    Initialized,
    /// How much of the log is wanted.
    Level,
    /// A resource is subscribed to.
    Subscribe(String),
    /// It is no longer.
    Unsubscribe(String),
    /// Nothing that the session depends on.
    Other,
}

impl Word {
    /// What a body is about.
    pub(super) fn of(body: &[u8]) -> Self {
        if !may_matter(body) {
            return Self::Other;
        }
        let Frame::Single(Message::Call(call)) = Frame::parse(body, &Limits::default()) else { return Self::Other };
        let uri = || {
            call.params
                .and_then(|params| serde_json::from_str::<Resource>(params.get()).ok())
                .map(|resource| resource.uri)
        };
        match call.method.as_ref() {
            "initialize" => Self::Initialize,
            "notifications/initialized" => Self::Initialized,
            "logging/setLevel" => Self::Level,
            "resources/subscribe" => uri().map_or(Self::Other, Self::Subscribe),
            "resources/unsubscribe" => uri().map_or(Self::Other, Self::Unsubscribe),
            _ => Self::Other,
        }
    }
}

/// Whether a session may depend on a body, by a look that is quick: most are calls, which are read by their server only. A
/// name may be written with escapes, so what has any is read.
fn may_matter(body: &[u8]) -> bool {
    let text = std::str::from_utf8(body).unwrap_or_default();
    ["initialize", "setLevel", "subscribe", "\\u"].iter().any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_depends_on_is_said_again_and_nothing_else() {
        let said = Said::default();
        let headers =
            HeaderMap::from_iter([(header::PROTOCOL_VERSION.parse().unwrap(), HeaderValue::from_static("2025-06-18"))]);
        let texts = [
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a://1"}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a://2"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"a://1"}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"initialize"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        ];
        for text in texts {
            said.note(&Word::of(text.as_bytes()), &headers, &Bytes::from_static(text.as_bytes()));
        }
        let escaped = r#"{"jsonrpc":"2.0","id":5,"method":"logging\u002fsetLevel","params":{"level":"info"}}"#;
        assert_eq!(Word::of(escaped.as_bytes()), Word::Level);
        assert_eq!(Word::of(br#"{"jsonrpc":"2.0","id":6,"method":"tools/list"}"#), Word::Other);
        let (version, again) = said.again();
        assert_eq!(version.unwrap(), "2025-06-18");
        assert_eq!(again, [texts[4].as_bytes(), texts[1].as_bytes()]);
    }
}
