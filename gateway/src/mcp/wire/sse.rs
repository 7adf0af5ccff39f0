//! Server-sent events as Streamable HTTP carries them (<https://html.spec.whatwg.org/multipage/server-sent-events.html>):
//! one message of JSON is one event.

pub mod read;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// The media type of a stream of events.
pub const MEDIA_TYPE: &str = "text/event-stream";

/// Whether what comes under these headers is a stream of events, whatever parameters its type has.
#[must_use]
pub fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::trim_start);
    let kind = kind.and_then(|kind| kind.get(..MEDIA_TYPE.len()));
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(MEDIA_TYPE))
}

/// A comment: it says nothing, and keeps whoever is in between from closing a silent stream.
#[must_use]
pub const fn keep_alive() -> Bytes {
    Bytes::from_static(b":\n\n")
}

/// One message as an event. `id`, if it is given, is what the reader names to go on after this event (`Last-Event-ID`).
///
/// A line break between two tokens of the message would end its line; a blank means the same in JSON.
#[must_use]
pub fn event(id: Option<&str>, message: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(message.len() + id.map_or(0, str::len) + 32);
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"event: message\ndata: ");
    out.extend(message.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// An event without a message: it gives the reader an id to come back with, should the stream break before the first
/// message (2025-11-25, Transports, Sending Messages to the Server).
#[must_use]
pub fn priming(id: &str) -> Bytes {
    format!("id: {id}\ndata: \n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_event_whatever_line_breaks_it_has() {
        assert_eq!(event(None, b"{\"a\":\r\n1}"), "event: message\ndata: {\"a\":  1}\n\n".as_bytes());
        assert_eq!(event(Some("3-1"), b"{}"), "id: 3-1\nevent: message\ndata: {}\n\n".as_bytes());
        assert_eq!(priming("3-0"), "id: 3-0\ndata: \n\n".as_bytes());
        assert!(keep_alive().starts_with(b":"));
    }

    #[test]
    fn a_stream_is_one_whatever_parameters_and_letters_its_type_has() {
        let is_stream = |kind: &str| is_stream(&HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().unwrap())]));
        for kind in ["text/event-stream", "text/event-stream; charset=utf-8", "Text/Event-Stream;charset=utf-8"] {
            assert!(is_stream(kind), "{kind}");
        }
        assert!(!is_stream("application/json") && !is_stream("text/event") && !super::is_stream(&HeaderMap::new()));
    }
}
