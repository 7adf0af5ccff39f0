//! Who is known, as it is kept.

use reach_core::identity::{Join, OperatorRow, Principal};
use serde::{Deserialize, Serialize};

/// Somebody, or a token that lets somebody in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentityRow {
    /// An agent by its key.
    Agent(Principal),
    /// An operator.
    Operator(OperatorRow),
    /// A join token.
    Join(Join),
}

impl IdentityRow {
    /// Under what it is kept: its kind, and its name among those.
    #[must_use]
    pub fn key(&self) -> (&'static str, &str) {
        match self {
            Self::Agent(principal) => ("agent", principal.agent_id.as_str()),
            Self::Operator(row) => ("operator", row.name.as_str()),
            Self::Join(join) => ("join", &join.hash),
        }
    }
}
