//! What a client says of itself when it asks for a token by the standard road (RFC 7523, section 3; `private_key_jwt`).

use reach_schemas::{AgentId, ErrorCode, Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::principal::{Principal, Used};
use super::proof::ProofFlaw;

/// Why what a client says of itself is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum AssertionFlaw {
    /// It is for another gateway.
    #[error("`aud` is neither the address of this gateway nor that of the endpoint that was asked")]
    Elsewhere,
    /// Its time has not come.
    #[error("`nbf` is yet to come: are the clocks right?")]
    Early,
    /// Its time is over.
    #[error("`exp` is past: are the clocks right?")]
    Over,
    /// It would be good for too long.
    #[error("`exp` is more than {} ahead", AHEAD_MAX)]
    Long,
    /// It was used before.
    #[error("`jti` was used before, or is no id")]
    Replayed,
    /// There were very many of late.
    #[error("there were very many of late; wait for ten minutes")]
    TooMany,
}

impl AssertionFlaw {
    /// What it is called on the wire.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::TooMany => ErrorCode::Overloaded,
            Self::Elsewhere | Self::Early | Self::Over | Self::Long | Self::Replayed => ErrorCode::Unauthenticated,
        }
    }
}

/// How far ahead an assertion may end: until then its id is remembered.
const AHEAD_MAX: Span = Span::from_mins(10);

/// For whom something is: one, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Audience {
    fn holds(&self, name: &str) -> bool {
        let is_it = |one: &String| one.trim_end_matches('/') == name.trim_end_matches('/');
        match self {
            Self::One(one) => is_it(one),
            Self::Many(many) => many.iter().any(is_it),
        }
    }
}

/// What a client says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assertion {
    /// Who says it: the client.
    pub iss: String,
    /// Of whom: the client.
    pub sub: String,
    /// To whom: this gateway, or its token endpoint.
    pub aud: Audience,
    /// Not after, in seconds since 1970.
    pub exp: u64,
    /// Not before.
    #[serde(default)]
    pub nbf: Option<u64>,
    /// Its id, never used before.
    pub jti: String,
}

impl Assertion {
    /// The client. None: it is no agent, or it is said of another.
    #[must_use]
    pub fn client(&self) -> Option<AgentId> {
        (self.iss == self.sub).then(|| self.sub.parse().ok()).flatten()
    }

    /// The agent as it is known from now on: what was said is not believed a second time. If its tokens were revoked, it
    /// is a generation on; else tokens that it has stay as good as they were, for clients of this kind ask for one
    /// whenever they start.
    ///
    /// # Errors
    /// It is not for one of these names, not for now, or was used before.
    pub fn admit(
        &self,
        known: &Principal,
        names: &[String],
        now: Timestamp,
        skew: Span,
    ) -> Result<Principal, AssertionFlaw> {
        if !names.iter().any(|name| self.aud.holds(name)) {
            return Err(AssertionFlaw::Elsewhere);
        }
        let at = |secs: u64| Timestamp::from_ms(secs.saturating_mul(1000));
        if self.nbf.is_some_and(|nbf| at(nbf) > now + skew) {
            return Err(AssertionFlaw::Early);
        }
        if at(self.exp) + skew <= now {
            return Err(AssertionFlaw::Over);
        }
        if at(self.exp) > now + AHEAD_MAX + skew {
            return Err(AssertionFlaw::Long);
        }
        let proofs = Used::once(&known.proofs, &self.jti, at(self.exp) + skew, now).map_err(|flaw| match flaw {
            ProofFlaw::TooMany => AssertionFlaw::TooMany,
            ProofFlaw::Foreign | ProofFlaw::Elsewhere | ProofFlaw::Stale | ProofFlaw::Replayed => {
                AssertionFlaw::Replayed
            }
        })?;
        let is_revoked = known.revoked_generation == known.generation;
        let (generation, used_rot) =
            if is_revoked { (known.generation + 1, 0) } else { (known.generation, known.used_rot) };
        Ok(Principal { proofs, generation, used_rot, proven_at: now, ..known.clone() })
    }
}
