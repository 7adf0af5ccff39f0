//! When a peer that is busy says to come again.

use std::time::UNIX_EPOCH;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use reach_schemas::{Span, Timestamp};

/// `Retry-After` as RFC 9110 section 10.2.3 has it: seconds, or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Span> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit()) {
        // A number too large for us is still a long time.
        return Some(Span::from_ms(text.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1000)));
    }
    let at = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_ms(Span::from(at).as_ms()).since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date_and_anything_else_is_nothing() {
        let now = "2026-11-30T08:00:00Z".parse().unwrap();
        let read = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            retry_after(&headers, now)
        };
        assert_eq!(read("7"), Some(Span::from_secs(7)));
        assert_eq!(read("99999999999999999999"), Some(Span::from_ms(u64::MAX)));
        assert_eq!(read(""), None);
        assert_eq!(read("Mon, 30 Nov 2026 08:01:00 GMT"), Some(Span::from_secs(60)));
        assert_eq!(read("Mon, 30 Nov 2026 07:00:00 GMT"), Some(Span::ZERO));
        assert_eq!(read("soon"), None);
        assert_eq!(read("-1"), None);
    }
}
