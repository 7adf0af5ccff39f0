//! An agent as it is known by its key, and which of its tokens still stand.

use reach_schemas::{AgentId, Timestamp};
use serde::{Deserialize, Serialize};

use super::claims::{Claims, Lifetimes, Rejection};
use super::proof::ProofFlaw;

/// How many single tokens of one agent may be revoked at once. Beyond, all of its generation are.
const REVOKED_MAX: usize = 64;
/// How many proofs of one agent are remembered. More than these at once are no agent that lost its token.
const USED_MAX: usize = 16;
/// How long the id of a proof may be.
const JTI_MAX: usize = 128;

/// An id that was used or revoked, and until when that matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// The id.
    pub jti: String,
    /// Afterwards it is refused by its time.
    pub until: Timestamp,
}

impl Used {
    /// Those that were used, with one more.
    ///
    /// # Errors
    /// It is one of them, or no id; or there were very many of late.
    pub(super) fn once(used: &[Self], jti: &str, until: Timestamp, now: Timestamp) -> Result<Vec<Self>, ProofFlaw> {
        if jti.is_empty() || jti.len() > JTI_MAX || used.iter().any(|used| used.jti == jti) {
            return Err(ProofFlaw::Replayed);
        }
        let mut kept: Vec<Self> = used.iter().filter(|used| used.until > now).cloned().collect();
        if kept.len() >= USED_MAX {
            return Err(ProofFlaw::TooMany);
        }
        kept.push(Self { jti: jti.to_owned(), until });
        Ok(kept)
    }
}

/// An agent as it is known by its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// Which.
    pub agent_id: AgentId,
    /// Its public key, an Ed25519 point in base64url.
    pub key: String,
    /// The key's thumbprint (RFC 7638).
    pub thumbprint: String,
    /// Grows with each registration by key; tokens of an older one are refused.
    pub generation: u64,
    /// Tokens of this generation and older ones were revoked. 0: none was.
    pub revoked_generation: u64,
    /// The newest token of the generation that was used.
    pub used_rot: u64,
    /// Since when.
    pub used_since: Timestamp,
    /// Single tokens that were revoked.
    pub revoked: Vec<Used>,
    /// Proofs that were used and would still be good.
    pub proofs: Vec<Used>,
    /// When it joined.
    pub joined_at: Timestamp,
    /// When it last showed its key.
    pub proven_at: Timestamp,
}

impl Principal {
    /// An agent that is known by this key and its thumbprint from now on, a generation on from what was known of it.
    #[must_use]
    pub fn trusted(
        agent_id: AgentId,
        (key, thumbprint): (String, String),
        known: Option<&Self>,
        now: Timestamp,
    ) -> Self {
        Self {
            agent_id,
            key,
            thumbprint,
            generation: known.map_or(1, |known| known.generation + 1),
            revoked_generation: known.map_or(0, |known| known.revoked_generation),
            used_rot: 0,
            used_since: now,
            revoked: Vec::new(),
            proofs: known.map_or_else(Vec::new, |known| known.proofs.clone()),
            joined_at: known.map_or(now, |known| known.joined_at),
            proven_at: now,
        }
    }

    /// Whether a token of this agent still stands.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check(
        &self,
        (generation, rot, jti): (u64, u64, &str),
        now: Timestamp,
        lifetimes: &Lifetimes,
    ) -> Result<(), Rejection> {
        if generation <= self.revoked_generation || self.revoked.iter().any(|revoked| revoked.jti == jti) {
            return Err(Rejection::Revoked);
        }
        if generation != self.generation {
            return Err(if generation < self.generation { Rejection::Superseded } else { Rejection::Unknown });
        }
        if rot < self.used_rot && now.since(self.used_since) > lifetimes.after_next {
            return Err(Rejection::Replaced);
        }
        Ok(())
    }

    /// The agent once a token was used, if that says anything new: the one before it has not long to live.
    #[must_use]
    pub fn used(&self, claims: &Claims, now: Timestamp) -> Option<Self> {
        let is_newer = claims.generation == self.generation && claims.rot > self.used_rot;
        is_newer.then(|| Self { used_rot: claims.rot, used_since: now, ..self.clone() })
    }

    /// The agent with all its tokens revoked.
    #[must_use]
    pub fn revoked_all(&self) -> Self {
        Self { revoked_generation: self.generation, revoked: Vec::new(), ..self.clone() }
    }

    /// The agent with one token revoked, which nobody can have beyond `until`.
    #[must_use]
    pub fn revoked_one(&self, jti: &str, until: Timestamp, now: Timestamp) -> Self {
        let mut revoked: Vec<Used> = self.revoked.iter().filter(|revoked| revoked.until > now).cloned().collect();
        if revoked.len() >= REVOKED_MAX {
            return self.revoked_all();
        }
        if revoked.iter().all(|revoked| revoked.jti != jti) {
            revoked.push(Used { jti: jti.to_owned(), until });
        }
        Self { revoked, ..self.clone() }
    }
}
