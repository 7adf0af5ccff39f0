//! Everybody who is known: agents by their keys, operators, and join tokens that were not used.

use std::collections::BTreeMap;

use reach_schemas::{AgentId, ErrorCode, OperatorName, Span, Timestamp};

use super::claims::{Claims, Lifetimes, Rejection};
use super::principal::Principal;
use super::proof::{Proof, ProofFlaw};
use super::tickets::{Join, OperatorRow};

/// Everybody who is known.
#[derive(Debug, Clone, Default)]
pub struct Book {
    /// Agents by their keys.
    pub principals: BTreeMap<AgentId, Principal>,
    /// Operators, by their names.
    pub operators: BTreeMap<OperatorName, OperatorRow>,
    /// Join tokens, by their hashes.
    pub joins: BTreeMap<String, Join>,
}

/// An agent that shows its key.
#[derive(Debug, Clone, Copy)]
pub struct Joining<'a> {
    /// Which.
    pub agent: &'a AgentId,
    /// The key that the proof is by, and its thumbprint.
    pub key: (&'a str, &'a str),
    /// The proof, whose signature was found right.
    pub proof: &'a Proof,
    /// By which names the gateway may be called. None at all: nobody can have meant it.
    pub hosts: &'a [&'a str],
    /// The hash of the join token that came with it.
    pub join: Option<&'a str>,
    /// Whether what came with it is the secret of the agent's namespace.
    pub has_secret: bool,
}

/// Why an agent is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The proof proves nothing.
    #[error("the proof is not accepted: {0}")]
    Proof(#[from] ProofFlaw),
    /// The join token is none, was used, is over, or is for others.
    #[error("the join token is not accepted: it is none, was used, is over, or is for agents of another name")]
    Join,
    /// It has not joined.
    #[error("no agent of this name has joined with this key; send a join token along")]
    Unknown,
}

impl Refusal {
    /// What it is called on the wire. Nobody is told whether there is an agent of the name.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Proof(ProofFlaw::TooMany) => ErrorCode::Overloaded,
            Self::Proof(_) | Self::Join | Self::Unknown => ErrorCode::Unauthenticated,
        }
    }
}

impl Book {
    /// Whether a token whose signature was found right still stands.
    ///
    /// # Errors
    /// Why it does not.
    pub fn judge(
        &self,
        claims: &Claims,
        audience: &str,
        now: Timestamp,
        lifetimes: &Lifetimes,
    ) -> Result<(AgentId, &Principal), Rejection> {
        let agent = claims.check(audience, now, lifetimes)?;
        let principal = self.principals.get(&agent).ok_or(Rejection::Unknown)?;
        principal.check((claims.generation, claims.rot, &claims.jti), now, lifetimes)?;
        Ok((agent, principal))
    }

    /// Lets an agent in: for the first time or under another key by a join token or its namespace's secret, else by the key
    /// that is known. Gives what is to be known of it from now on: a generation more than before.
    ///
    /// # Errors
    /// Why it is not let in.
    pub fn admit(&self, joining: &Joining<'_>, now: Timestamp, skew: Span) -> Result<Principal, Refusal> {
        let known = self.principals.get(joining.agent);
        let (key, thumbprint) = joining.key;
        let is_known = known.is_some_and(|known| known.thumbprint == thumbprint);
        match joining.join {
            _ if joining.has_secret => {}
            Some(hash) => {
                let join = self.joins.get(hash).filter(|join| join.admits(joining.agent, now));
                join.ok_or(Refusal::Join)?;
            }
            None if is_known => {}
            None => return Err(Refusal::Unknown),
        }
        let used = known.map_or(&[][..], |known| &known.proofs);
        let proofs = joining.proof.check(joining.hosts, used, now, skew)?;
        let key = (key.to_owned(), thumbprint.to_owned());
        Ok(Principal { proofs, ..Principal::trusted(joining.agent.clone(), key, known, now) })
    }

    /// The operator whose token has this hash.
    ///
    /// # Errors
    /// There is none (any more), or its time is over.
    pub fn operator(&self, hash: &str, now: Timestamp) -> Result<&OperatorRow, Rejection> {
        let row = self.operators.values().find(|row| row.hash == hash).ok_or(Rejection::Withdrawn)?;
        if row.expires_at.is_none_or(|at| now < at) { Ok(row) } else { Err(Rejection::Expired) }
    }
}
