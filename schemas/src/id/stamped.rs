//! Ids that are made, not chosen: a UUID of version 7 (RFC 9562) sorts by the time at which it was made. Time and chance
//! are given by whoever makes one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::IdError;

/// What stands before the digits of a webhook's id.
const WEBHOOK_PREFIX: &str = "msg_";

macro_rules! stamped {
    ($(#[$doc:meta])* $type:ident, $expected:literal, $schema:expr, $read:path, $write:path) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(uuid::Uuid);

        impl $type {
            /// Makes a version 7 id out of a time and 74 bits of chance, both given by the caller.
            #[must_use]
            pub fn from_parts(unix_ms: u64, random: u128) -> Self {
                Self(uuid::Builder::from_unix_timestamp_millis(unix_ms, &random_bytes(random)).into_uuid())
            }

            /// The 16 bytes, as stored.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// Back from the 16 stored bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(uuid::Uuid::from_bytes(bytes))
            }
        }

        impl FromStr for $type {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                $read(text).map(Self)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $write(&self.0, f)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                crate::text::read(d, $expected)
            }
        }

        #[cfg(feature = "json-schema")]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}

stamped!(
    /// A task, by a UUID (version 7, RFC 9562: it sorts by the time it was made). It is also the
    /// `reach_id` in logs, headers and messages.
    TaskId, "a task id: a UUID, as the submit call returned it",
    schemars::json_schema!({ "type": "string", "format": "uuid" }), read_uuid, fmt::Display::fmt
);

stamped!(
    /// A webhook: one message to one receiver, as `msg_` and 32 digits. It goes out in the header `webhook-id` and is the
    /// same over every try, so that the receiver can tell a repeat.
    WebhookId, "a webhook id: msg_ and 32 hexadecimal digits",
    schemars::json_schema!({ "type": "string", "pattern": "^msg_[0-9a-f]{32}$" }), read_webhook, write_webhook
);

fn random_bytes(random: u128) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes.copy_from_slice(&random.to_le_bytes()[..10]);
    bytes
}

fn read_uuid(text: &str) -> Result<uuid::Uuid, IdError> {
    uuid::Uuid::try_parse(text).map_err(|_| IdError::NotUuid { given: text.chars().take(80).collect() })
}

fn read_webhook(text: &str) -> Result<uuid::Uuid, IdError> {
    let digits = text.strip_prefix(WEBHOOK_PREFIX).filter(|digits| digits.len() == 32);
    let id = digits.and_then(|digits| uuid::Uuid::try_parse(digits).ok());
    id.ok_or_else(|| IdError::NotWebhook { given: text.chars().take(80).collect() })
}

fn write_webhook(id: &uuid::Uuid, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.pad(&format!("{WEBHOOK_PREFIX}{}", id.simple()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_id_keeps_its_time_and_its_text() {
        let id = TaskId::from_parts(1_700_000_000_000, 7);
        assert_eq!(id.to_string().parse::<TaskId>(), Ok(id));
        assert!(id < TaskId::from_parts(1_700_000_000_001, 0));
        assert_eq!(TaskId::from_bytes(*id.as_bytes()), id);
    }

    #[test]
    fn a_webhook_id_keeps_its_time_and_its_text_and_is_nothing_else() {
        let id = WebhookId::from_parts(1_700_000_000_000, 7);
        assert_eq!(id.to_string(), "msg_018bcfe5680077008000000000000000");
        assert_eq!(id.to_string().parse::<WebhookId>(), Ok(id));
        assert!(id < WebhookId::from_parts(1_700_000_000_001, 0));
        let said = |text: &str| text.parse::<WebhookId>().unwrap_err().to_string();
        let task = TaskId::from_parts(1, 1).to_string();
        assert!(said(&task).contains("is not a webhook id"));
        assert!(said(&format!("msg_{task}")).contains("is not a webhook id"), "with hyphens it is another text");
    }
}
