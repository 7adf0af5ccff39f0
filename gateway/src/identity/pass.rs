//! What was found out of a caller when it showed who it is. It is asked again, as long as its connection lasts, whether that
//! still holds.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use reach_core::access::{Caller, Operator};
use reach_core::identity::Claims;
use reach_schemas::{AgentId, ErrorCode, Failure, Role, Timestamp};

use super::authenticate::nobody;

/// By whom a request or a connection is.
#[derive(Debug, Clone)]
pub enum Pass {
    /// Callers are not asked: it is an operator, or the agent that it says it is.
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

impl Pass {
    /// Whether it may hold no more while its call waits: only of who has shown who it is.
    #[must_use]
    pub const fn can_end(&self) -> bool {
        matches!(self, Self::Agent(_) | Self::Operator(_))
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

/// By whom something is, and in whose name it says that it is. Who has not shown who it is cannot be one, and neither can an
/// agent that speaks in the name of another.
#[derive(Debug, Clone)]
pub struct Speaker(Who);

#[derive(Debug, Clone)]
pub(crate) enum Who {
    /// Callers are not asked: the agent that it says it is. None: an operator.
    Anybody(Option<AgentId>),
    /// An agent, which speaks as itself.
    Agent(Arc<AgentPass>),
    /// An operator, in the name of an agent or in its own.
    Operator(Arc<OperatorPass>, Option<AgentId>),
}

impl Speaker {
    /// Whoever has the process itself, in the name of an agent or in its own.
    #[must_use]
    pub const fn of_own_process(named: Option<AgentId>) -> Self {
        Self(Who::Anybody(named))
    }

    /// One who has shown who it is, and says in whose name it speaks.
    ///
    /// # Errors
    /// It has not shown who it is, or may not speak in that name.
    pub(crate) fn of(pass: &Pass, named: Option<AgentId>) -> Result<Self, Failure> {
        let refused = |message: String| Err(Failure::new(ErrorCode::Forbidden, message));
        match (pass, named) {
            (Pass::Nobody, _) => Err(nobody()),
            (Pass::Open, named) => Ok(Self(Who::Anybody(named))),
            (Pass::Agent(agent), Some(named)) if named != agent.agent_id => {
                refused(format!("{} may not act as {named}", agent.agent_id))
            }
            (Pass::Agent(agent), _) => Ok(Self(Who::Agent(Arc::clone(agent)))),
            (Pass::Operator(pass), Some(named)) if pass.operator.role < Role::Operator => {
                refused(format!("a {} may not act as {named}", pass.operator.role))
            }
            (Pass::Operator(pass), named) => Ok(Self(Who::Operator(Arc::clone(pass), named))),
        }
    }

    pub(crate) const fn who(&self) -> &Who {
        &self.0
    }

    /// By whom it is.
    #[must_use]
    pub fn pass(&self) -> Pass {
        match &self.0 {
            Who::Anybody(_) => Pass::Open,
            Who::Agent(agent) => Pass::Agent(Arc::clone(agent)),
            Who::Operator(pass, _) => Pass::Operator(Arc::clone(pass)),
        }
    }

    /// The agent in whose name it speaks. None: an operator.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        match &self.0 {
            Who::Agent(agent) => Some(&agent.agent_id),
            Who::Anybody(named) | Who::Operator(_, named) => named.as_ref(),
        }
    }

    /// Whether both are the same, with whichever of its tokens.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Who::Anybody(a), Who::Anybody(b)) => a == b,
            (Who::Agent(a), Who::Agent(b)) => a.agent_id == b.agent_id && a.generation == b.generation,
            (Who::Operator(a, as_a), Who::Operator(b, as_b)) => a.operator == b.operator && as_a == as_b,
            (Who::Anybody(_) | Who::Agent(_) | Who::Operator(..), _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_shown_who_it_is_speaks_for_nobody_least_of_all_for_the_operator() {
        for named in [None, "a@x".parse().ok()] {
            assert_eq!(
                Speaker::of(&Pass::Nobody, named).map_err(|failure| failure.code).err(),
                Some(ErrorCode::Unauthenticated)
            );
        }
    }

    #[test]
    fn an_agent_speaks_as_itself_whatever_it_leaves_out_and_a_viewer_as_nobody_else() {
        let claims = Claims {
            iss: String::new(),
            sub: "agent:x/a".to_owned(),
            aud: String::new(),
            client_id: "a@x".to_owned(),
            iat: 0,
            nbf: 0,
            exp: 0,
            jti: String::new(),
            scope: String::new(),
            generation: 1,
            rot: 0,
            cnf: reach_core::identity::Confirmation { jkt: String::new() },
        };
        let (own, other): (AgentId, AgentId) = ("a@x".parse().unwrap(), "b@x".parse().unwrap());
        let agent = Pass::Agent(Arc::new(AgentPass::new(own.clone(), &claims)));
        assert_eq!(Speaker::of(&agent, None).unwrap().agent(), Some(&own));
        assert_eq!(Speaker::of(&agent, Some(other.clone())).unwrap_err().code, ErrorCode::Forbidden);
        let operator =
            |role| Pass::Operator(Arc::new(OperatorPass { operator: Operator { name: None, role }, hash: None }));
        assert_eq!(Speaker::of(&operator(Role::Viewer), Some(own)).unwrap_err().code, ErrorCode::Forbidden);
        assert_eq!(Speaker::of(&operator(Role::Operator), Some(other.clone())).unwrap().agent(), Some(&other));
    }
}
