//! Heads of requests and answers on their way through: what belongs to one hop, or to the gateway, stays behind.

use http::header::{
    AGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE,
    COOKIE, ETAG, EXPECT, EXPIRES, FORWARDED, HOST, LAST_MODIFIED, ORIGIN, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    REFERER, RETRY_AFTER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::mcp::wire::header;

/// What belongs to one hop (RFC 9110, section 7.6.1), and what is said of the body anew.
const OF_ONE_HOP: [HeaderName; 7] =
    [CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, PROXY_AUTHENTICATE];
/// What a client tells the gateway and no server: who it is, where its page is from, by which name it calls.
const OF_THE_CLIENT: [HeaderName; 8] =
    [HOST, ORIGIN, REFERER, AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE, EXPECT, FORWARDED];
/// What a server tells of its message, which is all that goes back. Anything else is about the place where it was said, and to
/// a client that place is the gateway: where to go instead, what to store, whom to trust, where to log in, which of its own
/// files a proxy in front should send.
const OF_THE_MESSAGE: [HeaderName; 10] = [
    CONTENT_TYPE,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CACHE_CONTROL,
    EXPIRES,
    AGE,
    ETAG,
    LAST_MODIFIED,
    VARY,
    RETRY_AFTER,
];
/// The same, of headers that have no constant.
const OF_THE_MESSAGE_TOO: [&str; 7] =
    ["x-accel-buffering", "x-request-id", "x-correlation-id", "traceparent", "tracestate", "baggage", "deprecation"];
/// How names begin of which all go back: MCP's own, and how much more may be asked.
const OF_THE_MESSAGE_ALL: [&str; 3] = ["mcp-", "ratelimit", "x-ratelimit-"];

/// The headers of a request as they go on to the server, in the session that it knows.
pub(super) fn onward(headers: &HeaderMap, session: Option<&HeaderValue>) -> HeaderMap {
    let mut onward = passing(headers, |name| !OF_THE_CLIENT.contains(name));
    onward.remove(header::SESSION_ID);
    if let Some(session) = session {
        onward.insert(header::SESSION_ID, session.clone());
    }
    onward
}

/// The headers of an answer as they go back to the client, in the session that it knows.
pub(super) fn back(headers: &HeaderMap, session: Option<&HeaderValue>) -> HeaderMap {
    let mut back = passing(headers, |name| {
        OF_THE_MESSAGE.contains(name)
            || OF_THE_MESSAGE_TOO.contains(&name.as_str())
            || OF_THE_MESSAGE_ALL.iter().any(|begin| name.as_str().starts_with(begin))
    });
    if back.remove(header::SESSION_ID).is_some()
        && let Some(session) = session
    {
        back.insert(header::SESSION_ID, session.clone());
    }
    back
}

/// What goes through of what is not of one hop, and so of nobody further on.
fn passing(headers: &HeaderMap, goes_through: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let named: Vec<String> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let stays = |name: &HeaderName| {
        !goes_through(name)
            || OF_ONE_HOP.contains(name)
            || name.as_str() == "keep-alive"
            || name.as_str().starts_with("x-forwarded-")
            || named.iter().any(|named| named == name.as_str())
    };
    headers.iter().filter(|(name, _)| !stays(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn what_is_for_the_server_goes_on_and_what_is_for_the_gateway_does_not() {
        let came = map(&[
            ("host", "localhost"),
            ("authorization", "Bearer x"),
            ("cookie", "a=b"),
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("mcp-session-id", "ours"),
            ("mcp-param-region", "eu"),
            ("accept", "application/json"),
            ("x-vendor", "kept"),
        ]);
        let session = HeaderValue::from_static("theirs");
        let expected = map(&[
            ("mcp-param-region", "eu"),
            ("accept", "application/json"),
            ("x-vendor", "kept"),
            ("mcp-session-id", "theirs"),
        ]);
        assert_eq!(onward(&came, Some(&session)), expected);
        assert!(onward(&came, None).get("mcp-session-id").is_none());
    }

    #[test]
    fn what_is_of_the_message_comes_back_and_nothing_that_is_of_the_place() {
        let came = map(&[
            ("content-type", "text/event-stream"),
            ("transfer-encoding", "chunked"),
            ("connection", "x-ratelimit-hop"),
            ("x-ratelimit-hop", "1"),
            ("set-cookie", "a=b"),
            ("www-authenticate", "Bearer"),
            ("location", "/rpc"),
            ("refresh", "0; url=/rpc"),
            ("clear-site-data", "*"),
            ("strict-transport-security", "max-age=1"),
            ("alt-svc", "h2=:1"),
            ("access-control-allow-origin", "*"),
            ("x-accel-redirect", "/etc/passwd"),
            ("x-sendfile", "/etc/passwd"),
            ("retry-after", "1"),
            ("x-ratelimit-remaining", "9"),
            ("mcp-session-id", "theirs"),
            ("x-accel-buffering", "no"),
        ]);
        let session = HeaderValue::from_static("ours");
        let expected = map(&[
            ("content-type", "text/event-stream"),
            ("x-accel-buffering", "no"),
            ("retry-after", "1"),
            ("x-ratelimit-remaining", "9"),
            ("mcp-session-id", "ours"),
        ]);
        assert_eq!(back(&came, Some(&session)), expected);
        assert!(back(&came, None).get("mcp-session-id").is_none());
    }
}
