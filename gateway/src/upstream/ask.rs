//! What is asked of a server, as text; the server's own words in it are put in as they came.

use http::{HeaderName, HeaderValue};
use serde::Serialize;

use crate::mcp::wire::meta;
use crate::mcp::wire::{Era, Revision};

/// Who asks, in the handshake and in `_meta`.
const CLIENT: &str = concat!(r#"{"name":"agent-reach","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// One request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask<'a> {
    /// The method.
    pub method: &'a str,
    /// The members of its params but `_meta`, as JSON without the braces.
    pub members: &'a str,
    /// What the headers name that mirror the body, in the stateless era.
    pub name: Option<&'a str>,
    /// Headers that mirror parameters of a tool, in the stateless era.
    pub mirrored: &'a [(HeaderName, HeaderValue)],
    /// What the work is to be done once for, as whoever does it is handed it.
    pub idempotency_key: Option<&'a str>,
    /// The trace that it belongs to.
    pub traceparent: Option<&'a str>,
    /// Whether notices of progress are wanted.
    pub wants_progress: bool,
}

/// Asks to be told of changes; the answer comes when there is no more to tell.
pub(super) const LISTEN: Ask<'static> = Ask {
    method: "subscriptions/listen",
    members: r#""notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}"#,
    name: None,
    mirrored: &[],
    idempotency_key: None,
    traceparent: None,
    wants_progress: false,
};

/// A text as JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text can be written as JSON")
}

/// The request as it is sent, under an id of ours, which is the progress token as well.
pub(super) fn frame(ask: &Ask<'_>, id: u64, era: Era) -> String {
    let mut own = Vec::with_capacity(6);
    if era == Era::Stateless {
        own.push(format!(r#""{}":"{}""#, meta::PROTOCOL_VERSION, Revision::NEWEST));
        own.push(format!(r#""{}":{CLIENT}"#, meta::CLIENT_INFO));
        own.push(format!(r#""{}":{{}}"#, meta::CLIENT_CAPABILITIES));
    }
    if ask.wants_progress {
        own.push(format!(r#""progressToken":{id}"#));
    }
    if let Some(traceparent) = ask.traceparent {
        own.push(format!(r#""traceparent":{}"#, quoted(traceparent)));
    }
    if let Some(key) = ask.idempotency_key {
        own.push(format!(r#""idempotencyKey":{}"#, quoted(key)));
    }
    let own = if own.is_empty() { String::new() } else { format!(r#""_meta":{{{}}}"#, own.join(",")) };
    let comma = if own.is_empty() || ask.members.is_empty() { "" } else { "," };
    let (method, members) = (quoted(ask.method), ask.members);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{{{members}{comma}{own}}}}}"#)
}

/// The request that opens a session.
pub(super) fn initialize() -> String {
    let revision = Revision::NEWEST_BY_HANDSHAKE;
    format!(r#""protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{CLIENT}"#)
}

/// A notice, as it is sent.
pub(super) fn notice<T: Serialize>(method: &str, params: Option<&T>) -> String {
    let params = params.and_then(|params| serde_json::to_string(params).ok());
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"{params}}}"#)
}

/// The notice that a request is called off.
pub(super) fn cancelled(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"called off"}}}}"#
    )
}

/// The answer to a question that a server asks in the handshake era: nobody here can give more than a sign of life.
pub(super) fn answer(id: &str, method: &str) -> String {
    if method == "ping" {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    }
    let message = quoted(&format!("{method} was not declared by this client, and nobody can answer it"));
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":{message}}}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_wrote_is_sent_byte_for_byte() {
        let members = r#""name":"x","arguments":{"n": 1.10}"#;
        let ask = Ask { method: "tools/call", members, wants_progress: true, ..Ask::default() };
        assert_eq!(
            frame(&ask, 7, Era::Handshake),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"n": 1.10},"_meta":{"progressToken":7}}}"#
        );
        let ask = Ask { method: "server/discover", ..Ask::default() };
        assert_eq!(
            frame(&ask, 1, Era::Handshake),
            r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}"#
        );
        let text = frame(&ask, 1, Era::Stateless);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    }
}
