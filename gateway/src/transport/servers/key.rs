//! Idempotency keys of clients on their way to a server that many callers share: each goes on within its caller's scope, as the
//! keys of tasks do, so that nobody is given what was done under another's key, or takes it away. Nothing else is changed.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use reach_core::access::Caller;
use reach_core::idempotency::delivery_key;
use reach_schemas::{ErrorCode, Failure};
use serde_json::value::RawValue;

use crate::mcp::wire::object::{quoted, replaced};
use crate::ops::submit::scope;

/// Where a key stands in a message.
const KEY_AT: [&str; 3] = ["params", "_meta", "idempotencyKey"];
/// Where one stands in the head (draft-ietf-httpapi-idempotency-key-header-07).
const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// Without one of these in it, no text of JSON has a key: a name may be written with escapes, and what a server takes for
/// UTF-16 has zeros.
const SIGNS: [&str; 3] = ["idempotencyKey", "\\u", "\0"];

/// A body as it goes on, with the keys of its messages in their caller's scope; any other is not touched.
///
/// # Errors
/// It is no JSON, so that nobody can say which key a server would find in it.
pub(super) fn of_body(caller: &Caller, body: Bytes) -> Result<Bytes, Failure> {
    let unreadable =
        || Failure::new(ErrorCode::ParseError, "the body is not JSON in UTF-8; send a message of JSON-RPC");
    let text = std::str::from_utf8(&body).map_err(|_| unreadable())?;
    if !SIGNS.iter().any(|sign| text.contains(sign)) {
        return Ok(body);
    }
    let raw: &RawValue = serde_json::from_str(text).map_err(|_| unreadable())?;
    let own = scope(caller);
    let scoped = |message: &RawValue| replaced(message.get(), &KEY_AT, &mut |key: &RawValue| value(&own, key));
    let new = if raw.get().starts_with('[') {
        let messages: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| unreadable())?;
        let new: Vec<Option<String>> = messages.iter().map(|message| scoped(message)).collect();
        let is_changed = new.iter().any(Option::is_some);
        let each = new.iter().zip(&messages).map(|(new, old)| new.as_deref().unwrap_or_else(|| old.get()));
        is_changed.then(|| format!("[{}]", each.collect::<Vec<_>>().join(",")))
    } else {
        scoped(raw)
    };
    Ok(new.map_or(body, Bytes::from))
}

/// A key that is no text counts as it is written. Null is none.
fn value(own: &str, key: &RawValue) -> Option<String> {
    if key.get() == "null" {
        return None;
    }
    let text: String = serde_json::from_str(key.get()).unwrap_or_else(|_| key.get().to_owned());
    Some(quoted(&delivery_key(own, &text)))
}

/// The same for the header of that name.
pub(super) fn of_head(caller: &Caller, headers: &mut HeaderMap) {
    if !headers.contains_key(HEADER) {
        return;
    }
    let own = scope(caller);
    let scoped: Vec<HeaderValue> = headers.get_all(HEADER).iter().map(|key| header_value(&own, key)).collect();
    headers.remove(HEADER);
    for key in scoped {
        headers.append(HEADER, key);
    }
}

/// A key may be in quotes, as a string of RFC 9651, and then is so again.
fn header_value(own: &str, key: &HeaderValue) -> HeaderValue {
    // Each byte counts as the character of its number, so that no two values are one.
    let text: String = key.as_bytes().iter().map(|byte| char::from(*byte)).collect();
    let inside = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let scoped = delivery_key(own, inside.unwrap_or(&text));
    let scoped = if inside.is_some() { format!("\"{scoped}\"") } else { scoped };
    HeaderValue::try_from(scoped).expect("a key is printable ASCII, and so are quotes")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use reach_schemas::Access;

    use super::*;

    fn agent(id: &str) -> Caller {
        Caller::Agent { id: id.parse().unwrap(), access: Access::default(), rulings: Arc::default() }
    }

    #[track_caller]
    fn check(body: &str, expected: &str) {
        let new = of_body(&agent("a@x"), Bytes::copy_from_slice(body.as_bytes())).unwrap();
        assert_eq!(std::str::from_utf8(&new).unwrap(), expected, "{body}");
    }

    #[test]
    fn a_key_goes_on_within_its_callers_scope_wherever_a_server_could_find_it() {
        check(
            r#"{"id": 1.0,"params":{"_meta":{"idempotencyKey":"k","x":[1.10]},"arguments":{"idempotencyKey":"k"}}}"#,
            r#"{"id":1.0,"params":{"_meta":{"idempotencyKey":"a@x/k","x":[1.10]},"arguments":{"idempotencyKey":"k"}}}"#,
        );
        check(
            r#"{"params":{"_meta":{},"\u005fmeta":{"idempotency\u004bey":"k","idempotencyKey":7}}}"#,
            r#"{"params":{"_meta":{},"_meta":{"idempotencyKey":"a@x/k","idempotencyKey":"a@x/7"}}}"#,
        );
        check(
            r#"[{"id": 1}, {"params":{"_meta":{"idempotencyKey":"b@y/k"}}}]"#,
            r#"[{"id": 1},{"params":{"_meta":{"idempotencyKey":"a@x/b@y/k"}}}]"#,
        );
    }

    #[test]
    fn a_body_without_a_key_is_not_touched() {
        for body in [
            "",
            "no JSON, and without a key it is the server's to say so",
            r#"{ "params" : { "_meta" : { "progressToken" : 1 } } }"#,
            r#"{ "params" : { "_meta" : { "idempotencyKey" : null } , "arguments" : "\u00e9" } }"#,
            r#" [ { "params" : { "idempotencyKey" : "k" } } ] "#,
        ] {
            check(body, body);
        }
    }

    #[test]
    fn what_a_server_may_read_otherwise_is_refused() {
        let utf_16: Vec<u8> = r#"{"a":1}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let not_json = br#"{"params":{"_meta":{"idempotencyKey":"k"},"n":NaN}}"#.to_vec();
        for body in [utf_16, not_json, vec![0x1f, 0x8b, 0x08]] {
            let refused = of_body(&agent("a@x"), Bytes::from(body)).unwrap_err();
            assert_eq!(refused.code, ErrorCode::ParseError);
        }
    }

    #[test]
    fn a_key_in_the_head_is_within_the_scope_too() {
        let mut headers = HeaderMap::new();
        for key in ["k", "\"k\"", "\"", "\u{e9}"] {
            headers.append(HEADER, HeaderValue::from_bytes(key.as_bytes()).unwrap());
        }
        headers.insert("accept", HeaderValue::from_static("*/*"));
        of_head(&agent("a@x"), &mut headers);
        let told: Vec<&str> = headers.get_all(HEADER).iter().map(|key| key.to_str().unwrap()).collect();
        assert_eq!(told[..3], ["a@x/k", "\"a@x/k\"", "a@x/\""]);
        assert!(told[3].starts_with("a@x#") && told.len() == 4 && headers.len() == 5, "{told:?}");
    }
}
