//! Heads of requests and answers on their way through: what belongs to one hop, or to the gateway, stays behind.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, DATE, EXPECT, FORWARDED, HOST, ORIGIN, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, REFERER, SERVER, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::mcp::wire::header;

/// What belongs to one hop (RFC 9110, section 7.6.1), and what is said of the body anew.
const OF_ONE_HOP: [HeaderName; 7] =
    [CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, PROXY_AUTHENTICATE];
/// What a client tells the gateway and no server: who it is, where its page is from, by which name it calls.
const OF_THE_CLIENT: [HeaderName; 8] =
    [HOST, ORIGIN, REFERER, AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE, EXPECT, FORWARDED];
/// What a server tells its own clients, of which the gateway is one. A challenge would send its reader to another's
/// authorization server.
const OF_THE_SERVER: [HeaderName; 4] = [SET_COOKIE, WWW_AUTHENTICATE, DATE, SERVER];

/// The headers of a request as they go on to the server, in the session that it knows.
pub(super) fn onward(headers: &HeaderMap, session: Option<&HeaderValue>) -> HeaderMap {
    let mut onward = without(headers, &OF_THE_CLIENT);
    onward.remove(header::SESSION_ID);
    if let Some(session) = session {
        onward.insert(header::SESSION_ID, session.clone());
    }
    onward
}

/// The headers of an answer as they go back to the client, in the session that it knows.
pub(super) fn back(headers: &HeaderMap, session: Option<&HeaderValue>) -> HeaderMap {
    let mut back = without(headers, &OF_THE_SERVER);
    if back.remove(header::SESSION_ID).is_some()
        && let Some(session) = session
    {
        back.insert(header::SESSION_ID, session.clone());
    }
    back
}

fn without(headers: &HeaderMap, own: &[HeaderName]) -> HeaderMap {
    let named: Vec<String> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let stays = |name: &HeaderName| {
        OF_ONE_HOP.contains(name)
            || own.contains(name)
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
    fn what_is_for_the_client_comes_back_and_no_challenge_of_another() {
        let came = map(&[
            ("content-type", "text/event-stream"),
            ("transfer-encoding", "chunked"),
            ("set-cookie", "a=b"),
            ("www-authenticate", "Bearer"),
            ("mcp-session-id", "theirs"),
            ("x-accel-buffering", "no"),
        ]);
        let session = HeaderValue::from_static("ours");
        let expected =
            map(&[("content-type", "text/event-stream"), ("x-accel-buffering", "no"), ("mcp-session-id", "ours")]);
        assert_eq!(back(&came, Some(&session)), expected);
        assert!(back(&came, None).get("mcp-session-id").is_none());
    }
}
