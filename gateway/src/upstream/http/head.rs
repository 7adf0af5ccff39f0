//! The headers of a request to a server, and what the head of its answer means.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde::Deserialize;

use super::Way;
use crate::mcp::wire::{Era, header};
use crate::upstream::ask::Ask;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The headers of one request: those of the configuration, then those of the transport, which nobody may set.
pub(super) fn of(way: &Way, method: &Method, ask: &Ask<'_>) -> HeaderMap {
    let mut headers = way.headers.clone();
    headers.insert(ACCEPT, if *method == Method::GET { STREAM } else { EITHER });
    if *method == Method::POST {
        headers.insert(CONTENT_TYPE, JSON);
    }
    if let Some(session) = &way.session {
        headers.insert(header::SESSION_ID, session.clone());
    }
    let is_initialize = ask.method == "initialize";
    if !is_initialize {
        headers.insert(header::PROTOCOL_VERSION, HeaderValue::from_static(way.revision.as_str()));
    }
    if way.era == Era::Stateless {
        for (name, value) in [(header::METHOD, Some(ask.method)), (header::NAME, ask.name)] {
            let value = value.and_then(|value| HeaderValue::from_str(&header::encode(value)).ok());
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        headers.extend(ask.mirrored.iter().cloned());
    }
    headers
}

#[derive(Deserialize)]
struct Body {
    error: Error,
}

#[derive(Deserialize)]
struct Error {
    code: i64,
    #[serde(default)]
    message: String,
}

/// Whether an answer says that the session is not known any more, so that the request was not taken. The specification
/// has 404 for it; common servers answer 400 and say so in words.
pub(crate) fn is_session_gone(status: u16, body: &[u8]) -> bool {
    match status {
        404 => true,
        400 => serde_json::from_slice::<Body>(body).is_ok_and(|Body { error }| {
            let message = error.message.to_ascii_lowercase();
            (-32_099..=-32_000).contains(&error.code)
                && !(-32_022..=-32_020).contains(&error.code)
                && (message.contains("session") || message.contains("not initialized"))
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_session_is_told_from_a_bad_request() {
        let says = |message: &str, code: i64| {
            format!(r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":"{message}"}},"id":null}}"#)
        };
        assert!(is_session_gone(404, b""));
        assert!(is_session_gone(400, says("Bad Request: No valid session ID provided", -32000).as_bytes()));
        assert!(is_session_gone(400, says("Bad Request: Server not initialized", -32000).as_bytes()));
        assert!(!is_session_gone(400, says("Mcp-Session-Id is not for this revision", -32020).as_bytes()));
        assert!(!is_session_gone(400, says("Invalid params: session", -32602).as_bytes()));
        assert!(!is_session_gone(400, b"bad session"));
        assert!(!is_session_gone(500, says("session", -32000).as_bytes()));
    }
}
