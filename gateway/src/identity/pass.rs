//! What was found out of a caller when it showed who it is. It is asked again, as long as its connection lasts, whether that
//! still holds.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use reach_core::access::{Caller, Operator};
use reach_core::identity::Claims;
use reach_schemas::{AgentId, Timestamp};

/// By whom a request or a connection is.
#[derive(Debug, Clone, Default)]
pub enum Pass {
    /// Callers are not asked: it is an operator, or the agent that it says it is.
    #[default]
    Open,
    /// It has not shown who it is.
    Nobody,
    /// An agent, by its token.
    Agent(Arc<AgentPass>),
    /// An operator, by a token.
    Operator(Arc<OperatorPass>),
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.pad("operator"),
            Self::Nobody => f.pad("nobody"),
            Self::Agent(agent) => agent.agent_id.fmt(f),
            Self::Operator(pass) => Caller::Operator(pass.operator.clone()).fmt(f),
        }
    }
}

/// An agent that has shown its token.
#[derive(Debug)]
pub struct AgentPass {
    /// Which.
    pub agent_id: AgentId,
    /// Of which of its generations.
    pub generation: u64,
    /// The token: on a connection that lasts, the one that it was last given takes the place of the one that it came with.
    token: Mutex<Token>,
}

/// What matters of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) jti: String,
    pub(super) rot: u64,
    pub(super) renew_at: Timestamp,
    pub(super) expires_at: Timestamp,
}

impl Token {
    pub(super) fn of(claims: &Claims) -> Self {
        Self { jti: claims.jti.clone(), rot: claims.rot, renew_at: claims.renew_at(), expires_at: claims.expires_at() }
    }
}

/// An operator that has shown a token.
#[derive(Debug)]
pub struct OperatorPass {
    /// Who, and what they may do.
    pub operator: Operator,
    /// What is kept of the token. None: the key in the gateway's own folder.
    pub(super) hash: Option<String>,
}

impl AgentPass {
    pub(crate) fn new(agent_id: AgentId, claims: &Claims) -> Self {
        Self { agent_id, generation: claims.generation, token: Mutex::new(Token::of(claims)) }
    }

    pub(super) fn token(&self) -> Token {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The connection goes on under the agent's next token.
    pub(super) fn renew(&self, token: Token) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }
}

/// By whom something is, and in whose name it says that it is.
#[derive(Debug, Clone, Default)]
pub struct Speaker {
    pass: Pass,
    named: Option<AgentId>,
}

impl Speaker {
    /// One who has shown who it is, and says that it speaks in the name of an agent.
    #[must_use]
    pub const fn new(pass: Pass, named: Option<AgentId>) -> Self {
        Self { pass, named }
    }

    /// By whom it is.
    #[must_use]
    pub const fn pass(&self) -> &Pass {
        &self.pass
    }

    /// The agent in whose name it speaks. None: an operator.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        match &self.pass {
            Pass::Agent(agent) => Some(&agent.agent_id),
            Pass::Open | Pass::Nobody | Pass::Operator(_) => self.named.as_ref(),
        }
    }

    /// Whether both are the same, with whichever of its tokens.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let are_same = match (&self.pass, &other.pass) {
            (Pass::Open, Pass::Open) | (Pass::Nobody, Pass::Nobody) => true,
            (Pass::Agent(a), Pass::Agent(b)) => a.agent_id == b.agent_id && a.generation == b.generation,
            (Pass::Operator(a), Pass::Operator(b)) => a.operator == b.operator,
            (Pass::Open | Pass::Nobody | Pass::Agent(_) | Pass::Operator(_), _) => false,
        };
        are_same && self.agent() == other.agent()
    }
}
