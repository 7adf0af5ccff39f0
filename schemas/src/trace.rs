//! The trace that a request belongs to, as W3C Trace Context writes it (<https://www.w3.org/TR/trace-context-2/>, level 1
//! and 2, section 3.2), and what whoever takes part in it may change: the span that the next one hangs under.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};
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
/// Whoever recorded what came before may have kept it (level 1).
const SAMPLED: u8 = 0b01;
/// The last 7 bytes of the trace's id are random (level 2).
const RANDOM: u8 = 0b10;

/// A trace: everything that came of one request, in whatever process. 32 hexadecimal digits, not all zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(NonZeroU128);

/// One thing that was done for a trace. 16 hexadecimal digits, not all zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(NonZeroU64);

macro_rules! number {
    ($type:ident, $plain:ty, $nonzero:ty, $form:literal) => {
        impl $type {
            /// The id with this number. None: it is zero, which stands for no id.
            #[must_use]
            pub const fn new(number: $plain) -> Option<Self> {
                match <$nonzero>::new(number) {
                    Some(number) => Some(Self(number)),
                    None => None,
                }
            }

            /// As a number.
            #[must_use]
            pub const fn get(self) -> $plain {
                self.0.get()
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $form, self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

number!(TraceId, u128, NonZeroU128, "{:032x}");
number!(SpanId, u64, NonZeroU64, "{:016x}");

impl TraceId {
    /// A number of 56 bits that is random if the trace's ids are as level 2 has them: what is decided by it is decided
    /// alike by all who take part.
    #[must_use]
    pub const fn randomness(self) -> u64 {
        (self.0.get() as u64) & ((1 << 56) - 1)
    }
}

/// A `traceparent`, in version 00. One of a newer version is read by its first four fields and carried on in version 00,
/// with the flags that are known, as the specification has it (section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Traceparent {
    trace_id: TraceId,
    parent_id: SpanId,
    flags: u8,
}

impl Traceparent {
    /// The context of a span of a trace whose id ends in 7 random bytes.
    #[must_use]
    pub const fn new(trace_id: TraceId, span: SpanId, is_sampled: bool) -> Self {
        Self { trace_id, parent_id: span, flags: if is_sampled { RANDOM | SAMPLED } else { RANDOM } }
    }

    /// The trace.
    #[must_use]
    pub const fn trace_id(&self) -> TraceId {
        self.trace_id
    }

    /// The span that whatever gets this hangs under.
    #[must_use]
    pub const fn parent_id(&self) -> SpanId {
        self.parent_id
    }

    /// Whether whoever takes part is asked to record it.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The flags, as a byte.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        self.flags
    }

    /// The same trace, for what hangs under another span of it. Flags that have no meaning yet are not carried on
    /// (section 3.2.2.5).
    #[must_use]
    pub const fn under(&self, span: SpanId) -> Self {
        Self { trace_id: self.trace_id, parent_id: span, flags: self.flags & (SAMPLED | RANDOM) }
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
    if !first.bytes().enumerate().all(is_in_place) {
        return None;
    }
    let trace_id = TraceId::new(u128::from_str_radix(&first[3..35], 16).ok()?)?;
    let parent_id = SpanId::new(u64::from_str_radix(&first[36..52], 16).ok()?)?;
    let flags = u8::from_str_radix(&first[53..], 16).ok()?;
    match (&first[..2], &text[LEN..]) {
        ("ff", _) => None,
        ("00", rest) => rest.is_empty().then_some(Traceparent { trace_id, parent_id, flags }),
        (_, rest) => {
            let has_more = rest.is_empty() || rest.starts_with('-');
            has_more.then_some(Traceparent { trace_id, parent_id, flags: flags & (SAMPLED | RANDOM) })
        }
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace_id, self.parent_id, self.flags)
    }
}

impl Serialize for Traceparent {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
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
        assert_eq!(read.map(|read| read.to_string()).as_deref(), expected, "{text}");
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

    #[test]
    fn what_hangs_under_another_span_is_of_the_same_trace_and_as_sampled() {
        let span = SpanId::new(0xab).unwrap();
        for (flags, carried) in [("00", "00"), ("01", "01"), ("03", "03"), ("ff", "03")] {
            let read: Traceparent = format!("00-{TRACE}-{PARENT}-{flags}").parse().unwrap();
            assert_eq!(read.under(span).to_string(), format!("00-{TRACE}-00000000000000ab-{carried}"));
            assert_eq!(read.under(span).is_sampled(), carried != "00");
        }
        let new = Traceparent::new(TraceId::new(0x1_ff00_0000_0000_0007).unwrap(), span, true);
        assert_eq!(new.to_string(), "00-0000000000000001ff00000000000007-00000000000000ab-03");
        assert_eq!(new.trace_id().randomness(), 7, "the last 7 bytes");
        assert!(SpanId::new(0).is_none() && TraceId::new(0).is_none());
    }
}
