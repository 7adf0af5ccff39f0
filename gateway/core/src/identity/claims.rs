//! What an agent's token says (RFC 9068), and whether it says it to us and now.

use reach_schemas::{AgentId, ErrorCode, Span, Timestamp};
use serde::{Deserialize, Serialize};

/// How long things last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// An agent's token.
    pub token: Span,
    /// By how much clocks may differ.
    pub skew: Span,
    /// How long a token is still good once the next one was used.
    pub after_next: Span,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self { token: Span::from_hours(12), skew: Span::from_secs(60), after_next: Span::from_mins(10) }
    }
}

/// Which key the holder has (RFC 7800).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// Its thumbprint (RFC 7638).
    pub jkt: String,
}

/// What a token says. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Who made it.
    pub iss: String,
    /// Whose it is: `agent:{namespace}/{name}`.
    pub sub: String,
    /// For whom it is.
    pub aud: String,
    /// The same agent, as clients are named: `name@namespace`.
    pub client_id: String,
    /// Since when there is it.
    pub iat: u64,
    /// Not before.
    pub nbf: u64,
    /// Not after.
    pub exp: u64,
    /// Its id.
    pub jti: String,
    /// What it is for, at most; what exactly, the live rules say.
    pub scope: String,
    /// The agent's generation.
    #[serde(rename = "gen")]
    pub generation: u64,
    /// Which token of its generation it is, counted from 0.
    pub rot: u64,
    /// The agent's key.
    pub cnf: Confirmation,
}

/// Why a token is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Rejection {
    /// It is none of ours: no JWT, another algorithm, a key that we do not have, a signature that does not fit.
    #[error("it is no token of this gateway")]
    Foreign,
    /// It has the form of an operator's token, and is none that stands.
    #[error("no operator has it: it was revoked, another one was made for its name, or it is of another gateway")]
    Withdrawn,
    /// It does not say what a token says.
    #[error("it does not say whose it is")]
    Malformed,
    /// It is for somebody else.
    #[error("it is for another gateway")]
    Audience,
    /// Its time has not come.
    #[error("its time has not come yet: are the clocks right?")]
    Early,
    /// Its time is over.
    #[error("its time is over")]
    Expired,
    /// The next one has been in use for too long.
    #[error("the one after it has been in use for a while")]
    Replaced,
    /// Nobody of this name has joined.
    #[error("no agent of this name has joined")]
    Unknown,
    /// Another copy of the agent has registered since.
    #[error("another copy of the agent has registered since")]
    Superseded,
    /// It was revoked.
    #[error("it was revoked")]
    Revoked,
}

impl Rejection {
    /// What it is called on the wire.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Foreign | Self::Withdrawn | Self::Malformed | Self::Audience | Self::Early | Self::Unknown => {
                ErrorCode::Unauthenticated
            }
            Self::Expired | Self::Replaced => ErrorCode::TokenExpired,
            Self::Superseded => ErrorCode::Superseded,
            Self::Revoked => ErrorCode::TokenRevoked,
        }
    }
}

/// A time in seconds, as claims have it.
const fn at(secs: u64) -> Timestamp {
    Timestamp::from_ms(secs.saturating_mul(1000))
}

impl Claims {
    /// The subject that stands for an agent.
    #[must_use]
    pub fn subject(agent: &AgentId) -> String {
        format!("agent:{}/{}", agent.namespace_str(), agent.name())
    }

    /// Whose it is. None: it is no agent's.
    #[must_use]
    pub fn agent(&self) -> Option<AgentId> {
        let (namespace, name) = self.sub.strip_prefix("agent:")?.split_once('/')?;
        let agent: AgentId = format!("{name}@{namespace}").parse().ok()?;
        (agent.as_str() == self.client_id).then_some(agent)
    }

    /// Since when there is it.
    #[must_use]
    pub const fn issued_at(&self) -> Timestamp {
        at(self.iat)
    }

    /// When it is over.
    #[must_use]
    pub const fn expires_at(&self) -> Timestamp {
        at(self.exp)
    }

    /// From when on heartbeats are answered with the next one: half of its life, and up to a tenth more, so that
    /// agents that joined together do not renew together. Which part of the tenth, its id decides.
    #[must_use]
    pub fn renew_at(&self) -> Timestamp {
        let life = self.exp.saturating_sub(self.iat).saturating_mul(1000);
        let spread = self.jti.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        self.issued_at() + Span::from_ms(life / 2 + (life / 10 / 1000) * (spread % 1000))
    }

    /// Whether it is for this gateway and for now. Whether it was revoked, the [`Book`](super::Book) knows.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self, audience: &str, now: Timestamp, lifetimes: &Lifetimes) -> Result<AgentId, Rejection> {
        let agent = self.agent().ok_or(Rejection::Malformed)?;
        if self.aud != audience || self.iss != audience {
            return Err(Rejection::Audience);
        }
        let soon = now + lifetimes.skew;
        if at(self.iat) > soon || at(self.nbf) > soon {
            return Err(Rejection::Early);
        }
        if self.expires_at() + lifetimes.skew <= now {
            return Err(Rejection::Expired);
        }
        Ok(agent)
    }
}
