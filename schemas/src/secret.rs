//! A text that is not to be seen: tokens and what proves who somebody is. It goes over the wire and nowhere else: what is
//! shown of it, in a log or an error, is that there is one. Its memory is wiped when it is dropped.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

/// A text that is not to be seen.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The text, for whoever has to send it or compare it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(...)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(feature = "json-schema")]
impl schemars::JsonSchema for Secret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "A text that is not to be seen in logs." })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_goes_over_the_wire_and_is_not_shown() {
        let secret: Secret = serde_json::from_str("\"s3cret\"").unwrap();
        assert_eq!(secret.reveal(), "s3cret");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "Secret(...) Some(Secret(...))");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"s3cret\"");
    }
}
