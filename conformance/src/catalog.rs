//! The requirements, as `requirements.toml` has them: read once, and held to their own rules by a test.

use std::sync::OnceLock;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

const TEXT: &str = include_str!("../requirements.toml");

/// How much it matters that a requirement is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// It breaks the wire.
    Must,
    /// It costs somebody something.
    Should,
    /// Good to have.
    May,
}

impl Level {
    /// The word in reports.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
        }
    }
}

/// What is held to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Subject {
    /// An agent.
    Agent,
    /// A gateway.
    Gateway,
    /// An MCP server, of which a gateway makes an agent.
    Server,
}

/// One requirement; the fields are described at the head of `requirements.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirement {
    pub(crate) id: String,
    pub(crate) subject: Subject,
    pub(crate) profile: String,
    pub(crate) level: Level,
    pub(crate) check: String,
    pub(crate) says: String,
    pub(crate) source: String,
    pub(crate) fix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalog {
    requirement: Vec<Requirement>,
}

/// Every requirement, in the order in which they are told.
pub(crate) fn all() -> &'static [Requirement] {
    static ALL: OnceLock<Vec<Requirement>> = OnceLock::new();
    ALL.get_or_init(|| toml::from_str::<Catalog>(TEXT).expect("a test reads the catalog").requirement)
}

/// The requirement with this id.
pub(crate) fn find(id: &str) -> Option<&'static Requirement> {
    all().iter().find(|requirement| requirement.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_requirement_has_a_name_of_its_own_and_says_what_to_do() {
        let names: BTreeSet<_> = all().iter().map(|requirement| &requirement.id).collect();
        assert_eq!(names.len(), all().len());
        for requirement in all() {
            let Requirement { id, profile, check, says, source, fix, .. } = requirement;
            assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{id}");
            assert!(!profile.is_empty() && !check.is_empty(), "{id}");
            assert!(says.ends_with('.') && fix.ends_with('.') && !source.is_empty(), "{id}");
        }
    }

    /// A section of a specification that everybody can read.
    fn is_in_a_specification(place: &str) -> bool {
        ["JSON-RPC 2.0, section", "MCP 20", "RFC "].into_iter().any(|name| place.starts_with(name))
    }

    #[test]
    fn what_a_requirement_is_taken_from_is_there() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        for requirement in all() {
            for place in requirement.source.split("; ").filter(|place| !is_in_a_specification(place)) {
                let (file, section) = place.split_once(", ").unwrap_or((place, ""));
                let file = file.split(" and ").next().unwrap();
                let text = std::fs::read_to_string(format!("{root}/{file}"));
                let text = text.unwrap_or_else(|error| panic!("{}: {file}: {error}", requirement.id));
                let has = |line: &str| line.starts_with('#') && line.contains(section);
                assert!(section.is_empty() || text.lines().any(has), "{}: no section {section}", requirement.id);
            }
        }
    }
}
