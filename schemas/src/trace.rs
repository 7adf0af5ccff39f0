//! The trace that a request belongs to, as W3C Trace Context writes it (<https://www.w3.org/TR/trace-context-2/>, level 1
//! and 2, section 3.2): carried, never changed beyond what the specification asks of one who carries it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is not a `traceparent`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is not a W3C traceparent: write version, trace id, parent id and flags in lower-case hexadecimal, for \
     example \"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"; neither id is all zeros"
)]
pub struct TraceparentError {
    given: String,
}

/// Where the dashes are in version 00; its text ends where a fourth would be.
const DASHES: [usize; 3] = [2, 35, 52];
/// How long it is in version 00.
const LEN: usize = 55;
/// The flags that have a meaning: sampled (level 1), and that the trace id is random (level 2).
const KNOWN_FLAGS: u8 = 0b11;

/// A `traceparent`, in version 00. One of a newer version is read by its first four fields and carried on in version 00,
/// with the flags that are known, as the specification has it (section 4.3).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Traceparent(Box<str>);

impl Traceparent {
    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Traceparent {
    type Err = TraceparentError;
    fn from_str(text: &str) -> Result<Self, TraceparentError> {
        read(text).ok_or_else(|| TraceparentError { given: text.chars().take(80).collect() })
    }
}

fn read(text: &str) -> Option<Traceparent> {
    let first = text.get(..LEN).filter(|first| first.is_ascii())?;
    let is_in_place = |(at, byte): (usize, u8)| match byte {
        b'-' => DASHES.contains(&at),
        b'0'..=b'9' | b'a'..=b'f' => !DASHES.contains(&at),
        _ => false,
    };
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let (version, ids, flags) = (&first[..2], &first[2..53], &first[53..]);
    if !first.bytes().enumerate().all(is_in_place) || is_zero(&first[3..35]) || is_zero(&first[36..52]) {
        return None;
    }
    match (version, &text[LEN..]) {
        ("ff", _) => None,
        ("00", rest) => rest.is_empty().then(|| Traceparent(first.into())),
        (_, rest) => {
            let known = u8::from_str_radix(flags, 16).ok()? & KNOWN_FLAGS;
            let has_more = rest.is_empty() || rest.starts_with('-');
            has_more.then(|| Traceparent(format!("00{ids}{known:02x}").into()))
        }
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Traceparent {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Traceparent {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        crate::text::read(d, "a W3C traceparent")
    }
}

#[cfg(feature = "json-schema")]
impl schemars::JsonSchema for Traceparent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Traceparent".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$",
            "description": "A W3C traceparent. Neither id is all zeros, and the version is not ff.",
            "examples": ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const PARENT: &str = "b7ad6b7169203331";

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let read = text.parse::<Traceparent>().ok();
        assert_eq!(read.as_ref().map(Traceparent::as_str), expected, "{text}");
    }

    #[test]
    fn version_00_is_kept_as_it_is() {
        for flags in ["00", "01", "03", "ff"] {
            let text = format!("00-{TRACE}-{PARENT}-{flags}");
            check(&text, Some(&text));
        }
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        let zeros = "0".repeat(32);
        let wrong = [
            String::new(),
            "00-1".to_owned(),
            format!("00-{TRACE}-{PARENT}"),
            format!("00-{TRACE}-{PARENT}-1"),
            format!("00-{TRACE}-{PARENT}-011"),
            format!("00-{TRACE}-{PARENT}-01-"),
            format!("00-{TRACE}-{PARENT}-01-more"),
            format!("00-{}-{PARENT}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{PARENT}-0G"),
            format!("00-{zeros}-{PARENT}-01"),
            format!("00-{TRACE}-{}-01", &zeros[..16]),
            format!("ff-{TRACE}-{PARENT}-01"),
            format!("0-0{TRACE}-{PARENT}-01"),
            format!(" 00-{TRACE}-{PARENT}-01"),
            format!("00-{}é-{PARENT}-01", &TRACE[..30]),
        ];
        for text in wrong {
            check(&text, None);
        }
    }

    #[test]
    fn a_newer_version_is_read_by_its_first_four_fields() {
        let known = |flags: &str| format!("00-{TRACE}-{PARENT}-{flags}");
        check(&format!("01-{TRACE}-{PARENT}-01"), Some(&known("01")));
        check(&format!("cc-{TRACE}-{PARENT}-fe-what-é"), Some(&known("02")));
        check(&format!("cc-{TRACE}-{PARENT}-01-"), Some(&known("01")));
        check(&format!("cc-{TRACE}-{PARENT}-01.what"), None);
    }
}
