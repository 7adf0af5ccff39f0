//! Points in time and lengths of time, both counted in whole milliseconds. On the wire a time is RFC 3339
//! text in UTC, and a length is text such as `"30s"`, `"1m 30s"` or `"12h"`. Nothing here reads a clock.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is not a length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is not a length of time: write a number with its unit, for example \"250ms\", \"30s\", \"15m\" or \"12h\""
)]
pub struct SpanError {
    given: String,
}

/// A text that is not a point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not a time: write it in UTC as RFC 3339 has it, for example \"2026-11-30T08:00:00Z\"")]
pub struct TimestampError {
    given: String,
}

/// A length of time in whole milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// So many milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// So many seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1000)
    }

    /// So many minutes.
    #[must_use]
    pub const fn from_mins(mins: u64) -> Self {
        Self(mins * 60_000)
    }

    /// So many hours.
    #[must_use]
    pub const fn from_hours(hours: u64) -> Self {
        Self(hours * 3_600_000)
    }

    /// In milliseconds.
    #[must_use]
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// In seconds, with their fraction.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        Duration::from(self).as_secs_f64()
    }

    /// `self` times `factor`, or the longest span there is.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_millis(span.0)
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl FromStr for Span {
    type Err = SpanError;
    fn from_str(text: &str) -> Result<Self, SpanError> {
        humantime::parse_duration(text)
            .map(Self::from)
            .map_err(|_| SpanError { given: text.chars().take(40).collect() })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&humantime::format_duration((*self).into()).to_string())
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        crate::text::read(d, "a length of time such as \"30s\"")
    }
}

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

/// 9999-12-31T23:59:59.999Z: the last time that RFC 3339 can write.
const LAST_MS: u64 = 253_402_300_799_999;

impl Timestamp {
    /// So many milliseconds after 1970 began, at most the end of the year 9999.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(if ms > LAST_MS { LAST_MS } else { ms })
    }

    /// Milliseconds since 1970 began.
    #[must_use]
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; nothing if it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Timestamp {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self::from_ms(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Timestamp {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let wrong = || TimestampError { given: text.chars().take(40).collect() };
        let time = humantime::parse_rfc3339(text).map_err(|_| wrong())?;
        let since = time.duration_since(UNIX_EPOCH).map_err(|_| wrong())?;
        Ok(Self::from_ms(Span::from(since).0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = UNIX_EPOCH + Duration::from_millis(self.0);
        f.pad(&humantime::format_rfc3339_millis(time).to_string())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        crate::text::read(d, "a time such as \"2026-11-30T08:00:00Z\"")
    }
}

#[cfg(feature = "json-schema")]
mod schema {
    use std::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    impl JsonSchema for super::Span {
        fn schema_name() -> Cow<'static, str> {
            "Span".into()
        }
        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "type": "string",
                "pattern": r"^(0|\s*([0-9][0-9.]*\s*[A-Za-zµ]+\s*)+)$",
                "description": "A length of time: numbers with their units (ms, s, m, h, days), for example \"30s\".",
                "examples": ["250ms", "30s", "12h"]
            })
        }
    }

    impl JsonSchema for super::Timestamp {
        fn schema_name() -> Cow<'static, str> {
            "Timestamp".into()
        }
        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "type": "string", "format": "date-time" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_and_write_as_people_do() {
        for text in ["250ms", "30s", "12h", "1m 30s"] {
            assert_eq!(text.parse::<Span>().map(|span| span.to_string()), Ok(text.to_owned()));
        }
        assert!("thirty".parse::<Span>().unwrap_err().to_string().contains("\"30s\""));
        assert!("30".parse::<Span>().is_err());
    }

    #[test]
    fn times_are_rfc_3339_with_milliseconds() {
        let time = Timestamp::from_ms(1_700_000_000_123);
        assert_eq!(time.to_string(), "2023-11-14T22:13:20.123Z");
        assert_eq!(time.to_string().parse(), Ok(time));
        assert_eq!((Timestamp::from_ms(u64::MAX) + Span::from_secs(1)).to_string(), "9999-12-31T23:59:59.999Z");
    }
}
