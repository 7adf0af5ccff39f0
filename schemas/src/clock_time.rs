//! A time of day, `"08:30"`, as minutes since midnight.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is not a time of day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not a time of day: write it as \"08:30\", from \"00:00\" to \"24:00\"")]
pub struct ClockTimeError {
    given: String,
}

/// Minutes since midnight, 0 to 1440.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockTime(u16);

impl ClockTime {
    /// Minutes since midnight.
    #[must_use]
    pub const fn minutes(self) -> u16 {
        self.0
    }
}

impl FromStr for ClockTime {
    type Err = ClockTimeError;
    fn from_str(text: &str) -> Result<Self, ClockTimeError> {
        let wrong = || ClockTimeError { given: text.chars().take(20).collect() };
        let (hours, minutes) = text.split_once(':').ok_or_else(wrong)?;
        let digits = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(hours) || !digits(minutes) {
            return Err(wrong());
        }
        let hours: u16 = hours.parse().map_err(|_| wrong())?;
        let minutes: u16 = minutes.parse().map_err(|_| wrong())?;
        let total = hours * 60 + minutes;
        if minutes > 59 || total > 1440 { Err(wrong()) } else { Ok(Self(total)) }
    }
}

impl fmt::Display for ClockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl Serialize for ClockTime {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ClockTime {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        crate::text::read(d, "a time of day such as \"08:30\"")
    }
}

#[cfg(feature = "json-schema")]
impl schemars::JsonSchema for ClockTime {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ClockTime".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^([01][0-9]|2[0-4]):[0-5][0-9]$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_has_two_digits_each_and_ends_at_24() {
        assert_eq!("08:30".parse().map(ClockTime::minutes), Ok(510));
        assert_eq!("24:00".parse().map(ClockTime::minutes), Ok(1440));
        for wrong in ["24:01", "8:30", "08:60", "0830", "+8:30", ""] {
            assert!(wrong.parse::<ClockTime>().is_err(), "{wrong}");
        }
    }
}
