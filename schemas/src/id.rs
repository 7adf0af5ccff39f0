//! Names of things on the wire. Each is checked when it is made, so that a value of the type is proof
//! of its form; an error says which character or length is wrong. Nothing here looks anything up.

mod stamped;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use stamped::{TaskId, WebhookId};

/// Why a text is not the name it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// Nothing was given.
    #[error("{what} is empty")]
    Empty {
        /// The kind of name, in words.
        what: &'static str,
    },
    /// More characters than allowed.
    #[error("{what} has {length} characters, at most {max} are allowed")]
    TooLong {
        /// The kind of name, in words.
        what: &'static str,
        /// How many characters it has.
        length: usize,
        /// How many it may have.
        max: usize,
    },
    /// A character outside the alphabet.
    #[error("{what} has {found:?} at character {position}; allowed are {allowed}")]
    Character {
        /// The kind of name, in words.
        what: &'static str,
        /// The character that is not allowed.
        found: char,
        /// Where it stands, counted from 1.
        position: usize,
        /// The alphabet, in words.
        allowed: &'static str,
    },
    /// An agent id without its `@`.
    #[error("{given:?} has no '@': an agent id is name@namespace, for example news_reader@media")]
    NoNamespace {
        /// The text as given.
        given: String,
    },
    /// A task id that is not a UUID.
    #[error("{given:?} is not a task id: a task id is a UUID, as the submit call returned it")]
    NotUuid {
        /// The text as given.
        given: String,
    },
    /// A webhook id that is none.
    #[error("{given:?} is not a webhook id: that is msg_ and 32 hexadecimal digits, as in the header webhook-id")]
    NotWebhook {
        /// The text as given.
        given: String,
    },
}

const NAME_CHARS: &str = "a-z, 0-9, '_', '-' and '.', first a letter or digit";
const KEY_CHARS: &str = "printable ASCII characters";
const NAME_MAX: usize = 64;
const KEY_MAX: usize = 255;

fn check_name(what: &'static str, text: &str) -> Result<(), IdError> {
    check(what, text, NAME_MAX, NAME_CHARS, |position, c| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || (position > 0 && matches!(c, '_' | '-' | '.'))
    })
}

fn check_key(what: &'static str, text: &str) -> Result<(), IdError> {
    check(what, text, KEY_MAX, KEY_CHARS, |_, c| matches!(c, ' '..='~'))
}

fn check(
    what: &'static str,
    text: &str,
    max: usize,
    allowed: &'static str,
    fits: impl Fn(usize, char) -> bool,
) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty { what });
    }
    let wrong = text.chars().enumerate().find(|(position, c)| !fits(*position, *c));
    if let Some((position, found)) = wrong {
        return Err(IdError::Character { what, found, position: position + 1, allowed });
    }
    let length = text.chars().count();
    if length > max {
        return Err(IdError::TooLong { what, length, max });
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $expected:literal, $check:path, $pattern:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Box<str>);

        impl $type {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                $check($what, text)?;
                Ok(Self(text.into()))
            }
        }

        impl TryFrom<String> for $type {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                $check($what, &text)?;
                Ok(Self(text.into()))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.0)
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
                schemars::json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

name!(
    /// The tenant wall that an agent lives behind: `a-z 0-9 _ - .`, at most 64 characters.
    Namespace, "the namespace", "a namespace such as \"media\"", check_name, "^[a-z0-9][a-z0-9_.-]{0,63}$"
);
name!(
    /// The name of an agent within its namespace: `a-z 0-9 _ - .`, at most 64 characters.
    AgentName, "the agent name", "an agent name such as \"news_reader\"", check_name, "^[a-z0-9][a-z0-9_.-]{0,63}$"
);
name!(
    /// The name of a person or tool that operates the gateway: `a-z 0-9 _ - .`, at most 64 characters.
    OperatorName, "the operator's name", "an operator's name such as \"alice\"", check_name, "^[a-z0-9][a-z0-9_.-]{0,63}$"
);
name!(
    /// The name of a queue that people take tasks from: `a-z 0-9 _ - .`, at most 64 characters.
    QueueName, "the queue name", "a queue name such as \"support\"", check_name, "^[a-z0-9][a-z0-9_.-]{0,63}$"
);
name!(
    /// The name of what an agent offers: `a-z 0-9 _ - .`, at most 64 characters.
    CapabilityName, "the capability name", "a capability name such as \"headlines\"", check_name, "^[a-z0-9][a-z0-9_.-]{0,63}$"
);
name!(
    /// The caller's name for one intention: 1 to 255 printable ASCII characters. Kept 24 h after the
    /// task is done, within the caller's scope (IETF draft-ietf-httpapi-idempotency-key-header-07).
    IdempotencyKey, "the idempotency key", "an idempotency key: text of 1 to 255 printable ASCII characters", check_key, "^[ -~]{1,255}$"
);

/// An agent: `name@namespace`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId {
    text: Box<str>,
    at: usize,
}

impl AgentId {
    /// Joins a name and a namespace.
    #[must_use]
    pub fn new(name: &AgentName, namespace: &Namespace) -> Self {
        Self { text: format!("{name}@{namespace}").into(), at: name.as_str().len() }
    }

    /// The id as text, `name@namespace`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the `@`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.text[..self.at]
    }

    /// The part after the `@`.
    #[must_use]
    pub fn namespace(&self) -> Namespace {
        Namespace(self.namespace_str().into())
    }

    /// The part after the `@`, without a copy.
    #[must_use]
    pub fn namespace_str(&self) -> &str {
        &self.text[self.at + 1..]
    }
}

impl FromStr for AgentId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let (name, namespace) =
            text.split_once('@').ok_or_else(|| IdError::NoNamespace { given: text.chars().take(80).collect() })?;
        check_name("the agent name", name)?;
        check_name("the namespace", namespace)?;
        Ok(Self { text: text.into(), at: name.len() })
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl Serialize for AgentId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for AgentId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        crate::text::read(d, "an agent id such as \"news_reader@media\"")
    }
}

#[cfg(feature = "json-schema")]
impl schemars::JsonSchema for AgentId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AgentId".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^[a-z0-9][a-z0-9_.-]{0,63}@[a-z0-9][a-z0-9_.-]{0,63}$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_agent(text: &str, expected: &str) {
        let said = match text.parse::<AgentId>() {
            Ok(id) => format!("{} | {}", id.name(), id.namespace()),
            Err(error) => error.to_string(),
        };
        assert_eq!(said, expected);
    }

    #[test]
    fn an_agent_id_is_a_name_and_a_namespace_or_says_what_is_wrong() {
        check_agent("agent_ops_v2@ns", "agent_ops_v2 | ns");
        check_agent("ops", "\"ops\" has no '@': an agent id is name@namespace, for example news_reader@media");
        check_agent("@ns", "the agent name is empty");
        check_agent("a@", "the namespace is empty");
        check_agent(
            "a@b@c",
            "the namespace has '@' at character 2; allowed are a-z, 0-9, '_', '-' and '.', first a letter or digit",
        );
        check_agent(
            "Ops@ns",
            "the agent name has 'O' at character 1; allowed are a-z, 0-9, '_', '-' and '.', first a letter or digit",
        );
        check_agent(&format!("{}@n", "a".repeat(65)), "the agent name has 65 characters, at most 64 are allowed");
    }

    #[test]
    fn a_key_may_hold_spaces_but_no_line_break() {
        assert!("order 17/a".parse::<IdempotencyKey>().is_ok());
        assert!("a\nb".parse::<IdempotencyKey>().is_err());
        assert!("".parse::<IdempotencyKey>().is_err());
    }
}
