//! Reads the vectors in `schemas/vectors/`: bodies that must be understood, and bodies that must be refused with a
//! text that tells where and why.

#![allow(dead_code, reason = "each of the tests that share this module reads a part of it")]

use std::path::PathBuf;

use reach_schemas::RawJson;
use serde::Deserialize;

/// All vectors of one type.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Set {
    /// The name of the type, as its JSON Schema is named.
    pub(crate) r#type: String,
    pub(crate) good: Vec<Good>,
    pub(crate) bad: Vec<Bad>,
}

/// A body that must be understood.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Good {
    pub(crate) claim: String,
    pub(crate) body: RawJson,
}

/// A body that must be refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bad {
    pub(crate) claim: String,
    pub(crate) body: RawJson,
    /// The path of the value that is to blame; an empty text is the body itself.
    pub(crate) at: String,
    /// What the refusal says, up to the line and column.
    pub(crate) says: String,
    #[serde(default)]
    pub(crate) refused_by: RefusedBy,
}

/// Who must refuse a body.
#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefusedBy {
    /// The type and its JSON Schema.
    #[default]
    Both,
    /// The type only: JSON Schema cannot say it.
    Type,
    /// Whoever takes a card in: the type carries it, and JSON Schema cannot say it.
    Registration,
    /// Whoever takes a card in, and its JSON Schema: the type carries it.
    RegistrationAndSchema,
}

impl RefusedBy {
    pub(crate) const fn schema(self) -> bool {
        match self {
            Self::Both | Self::RegistrationAndSchema => true,
            Self::Type | Self::Registration => false,
        }
    }

    pub(crate) const fn r#type(self) -> bool {
        match self {
            Self::Both | Self::Type => true,
            Self::Registration | Self::RegistrationAndSchema => false,
        }
    }
}

/// The types that have vectors.
const TYPES: [&str; 5] = ["AgentCard", "Submit", "Heartbeat", "Delivery", "Complete"];

/// Every set, in a fixed order.
pub(crate) fn sets() -> Vec<Set> {
    TYPES.iter().copied().map(set).collect()
}

fn set(name: &str) -> Set {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("vectors/{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let set: Set = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(set.r#type, name, "{}", path.display());
    set
}
