//! What operators hand out: tokens by which an agent joins once, and tokens of operators. Only their hashes are known here.

use reach_schemas::{AgentId, AgentPattern, OperatorName, Role, Timestamp};
use serde::{Deserialize, Serialize};

/// A token by which one agent can join, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// SHA-256 of the token, in hexadecimal digits.
    pub hash: String,
    /// Which agents it lets in.
    pub agents: AgentPattern,
    /// When it was made.
    pub made_at: Timestamp,
    /// When it is over.
    pub expires_at: Timestamp,
}

impl Join {
    /// Whether it lets an agent in now.
    #[must_use]
    pub fn admits(&self, agent: &AgentId, now: Timestamp) -> bool {
        now < self.expires_at && self.agents.matches(agent)
    }
}

/// An operator with a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorRow {
    /// SHA-256 of the token, in hexadecimal digits.
    pub hash: String,
    /// Who.
    pub name: OperatorName,
    /// What they may do.
    pub role: Role,
    /// When the token was made.
    pub made_at: Timestamp,
    /// When it is over. None: it is not, until it is revoked.
    pub expires_at: Option<Timestamp>,
}
