//! Caller's JSON that is only carried. It is kept as the text that came in, so that big numbers, key order,
//! white space inside values and unknown fields come out as they went in.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON value as text. Cloning shares the text.
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

impl RawJson {
    /// Takes a text that must be one JSON value.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        RawValue::from_string(text.to_owned()).map(Self::from)
    }

    /// Writes a value as JSON.
    ///
    /// # Errors
    /// The value cannot be written as JSON (for example a map whose keys are not text).
    pub fn of<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(value).map(Self::from)
    }

    /// The text, as it came in.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The value as raw JSON.
    #[must_use]
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Reads the value into a type.
    ///
    /// # Errors
    /// The value does not have the form of the type.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(self.get())
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw.into())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(d).map(Self::from)
    }
}

#[cfg(feature = "json-schema")]
impl schemars::JsonSchema for RawJson {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AnyJson".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "description": "Any JSON value; it is carried as it came." })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_order_and_unknown_fields_come_out_as_they_went_in() -> serde_json::Result<()> {
        let text = r#"{"z":1.10,"a":123456789012345678901234567890,"m":{"é":"\u00e9"}}"#;
        let json: RawJson = serde_json::from_str(text)?;
        assert_eq!(serde_json::to_string(&json)?, text);
        assert!(RawJson::parse("{").is_err());
        Ok(())
    }
}
