//! The headers of MCP over HTTP, and how a value that is no visible ASCII is carried in one
//! (2026-07-28, Transports, Standard Request Headers).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The session, given by the answer to `initialize` (handshake era).
pub const SESSION_ID: &str = "mcp-session-id";
/// The revision that a request is written in.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The method of the body (stateless era).
pub const METHOD: &str = "mcp-method";
/// The tool, prompt, resource or task that the body names (stateless era).
pub const NAME: &str = "mcp-name";
/// What the headers begin with that mirror a tool's parameters (stateless era).
pub const PARAM_PREFIX: &str = "mcp-param-";
/// The last event that a client has seen of a stream (handshake era).
pub const LAST_EVENT_ID: &str = "last-event-id";

const ENCODED_PREFIX: &str = "=?base64?";
const ENCODED_SUFFIX: &str = "?=";

/// A value as it goes into a header: as it is, or in base64 between `=?base64?` and `?=` where it would not survive.
#[must_use]
pub fn encode(value: &str) -> Cow<'_, str> {
    let is_visible = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let is_padded = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    let looks_encoded = value.starts_with(ENCODED_PREFIX);
    if is_visible && !is_padded && !looks_encoded {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{ENCODED_PREFIX}{}{ENCODED_SUFFIX}", STANDARD.encode(value)))
}

/// The value of a header. None: it says that it is base64 and is not, or is no Unicode.
#[must_use]
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let Some(inner) = value.strip_prefix(ENCODED_PREFIX).and_then(|rest| rest.strip_suffix(ENCODED_SUFFIX)) else {
        return Some(Cow::Borrowed(value));
    };
    let bytes = STANDARD.decode(inner).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_out_of_a_header_as_it_went_in() {
        for value in ["get_weather", "", " padded ", "ä", "新闻", "=?base64?", "=?base64?eA==?=", "line\nbreak", "a b"]
        {
            let encoded = encode(value);
            assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{encoded}");
            assert_eq!(decode(&encoded).as_deref(), Some(value));
        }
        assert_eq!(encode("get_weather"), "get_weather");
        assert_eq!(encode("ä"), "=?base64?w6Q=?=");
    }

    #[test]
    fn what_only_claims_to_be_base64_is_no_value() {
        assert_eq!(decode("=?base64?%%%?="), None);
        assert_eq!(decode("=?base64?/w==?="), None);
    }
}
