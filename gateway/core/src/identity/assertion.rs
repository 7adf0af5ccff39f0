//! What a client says of itself when it asks for a token by the standard road (RFC 7523, section 3; `private_key_jwt`).

use reach_schemas::{AgentId, Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::principal::{Principal, Used};
use super::proof::ProofFlaw;

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
    ) -> Result<Principal, ProofFlaw> {
        if !names.iter().any(|name| self.aud.holds(name)) {
            return Err(ProofFlaw::Elsewhere);
        }
        let at = |secs: u64| Timestamp::from_ms(secs.saturating_mul(1000));
        let is_early = self.nbf.is_some_and(|nbf| at(nbf) > now + skew);
        if is_early || at(self.exp) + skew <= now || at(self.exp) > now + AHEAD_MAX + skew {
            return Err(ProofFlaw::Stale);
        }
        let proofs = Used::once(&known.proofs, &self.jti, at(self.exp) + skew, now)?;
        let is_revoked = known.revoked_generation == known.generation;
        let (generation, used_rot) =
            if is_revoked { (known.generation + 1, 0) } else { (known.generation, known.used_rot) };
        Ok(Principal { proofs, generation, used_rot, proven_at: now, ..known.clone() })
    }
}
