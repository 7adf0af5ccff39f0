//! The runner as a gateway that asks who calls: it takes proofs of a key, gives tokens, and refuses those that are over, as
//! docs/identity.md has it. What it is shown is noted.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reach_schemas::{ErrorCode, Span};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};

use super::desk::keep;
use super::work::now;

/// What lets an agent in for the first time, and once.
pub(crate) const JOIN: &str = "reach_join_conformance-0123456789abcdef";
/// How old a proof may be, beside what clocks may differ.
const AGE_MAX_MS: u64 = 120_000;
/// How many proofs are kept.
const PROOFS_MAX: usize = 200;

/// A call or a connection, and what it showed.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) at: Instant,
    pub(crate) token: Option<String>,
    pub(crate) is_taken: bool,
    pub(crate) opens_socket: bool,
}

/// A proof of a key.
#[derive(Debug, Clone)]
pub(crate) struct Proof {
    pub(crate) at: Instant,
    pub(crate) has_join: bool,
    /// The public key, as it was written.
    pub(crate) key: String,
    pub(crate) wrong: Option<String>,
}

/// What was given and shown.
#[derive(Default)]
pub(crate) struct Tokens {
    /// Whether calls need a token at all.
    pub(crate) are_demanded: bool,
    /// Those that are good; the last is the newest.
    good: Vec<String>,
    given: u64,
    has_joined: bool,
    pub(crate) shown: VecDeque<Shown>,
    pub(crate) proofs: Vec<Proof>,
    used: BTreeSet<String>,
    /// Another has taken the agent's place.
    pub(crate) is_superseded: bool,
    /// The next heartbeat is answered with the next token.
    pub(crate) brings_next: bool,
    pub(crate) brought_at: Option<Instant>,
}

impl Tokens {
    /// Whether who shows this is let in.
    pub(crate) fn admit(&mut self, token: Option<&str>, opens_socket: bool) -> Result<(), ErrorCode> {
        if !self.are_demanded {
            return Ok(());
        }
        let admitted = match token {
            _ if self.is_superseded => Err(ErrorCode::Superseded),
            None => Err(ErrorCode::Unauthenticated),
            Some(token) if self.good.iter().any(|good| good == token) => Ok(()),
            Some(_) => Err(ErrorCode::TokenExpired),
        };
        let token = token.map(str::to_owned);
        keep(&mut self.shown, Shown { at: Instant::now(), token, is_taken: admitted.is_ok(), opens_socket });
        admitted
    }

    /// All that were given are over.
    pub(crate) fn end_all(&mut self) {
        self.good.clear();
    }

    /// The newest that is good.
    pub(crate) fn newest(&self) -> Option<&str> {
        self.good.last().map(String::as_str)
    }

    /// Gives the next.
    pub(crate) fn give(&mut self, agent_id: &str) -> Value {
        self.given += 1;
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let (made_at, until) = (now(), now() + Span::from_secs(12 * 3600));
        let head = part(&json!({ "typ": "at+jwt", "alg": "EdDSA", "kid": "conformance" }));
        let body =
            json!({ "sub": agent_id, "iat": made_at.as_ms() / 1000, "exp": until.as_ms() / 1000, "jti": self.given });
        let token = format!("{head}.{}.{}", part(&body), URL_SAFE_NO_PAD.encode([0_u8; 64]));
        self.good.push(token.clone());
        let renew_at = made_at + Span::from_secs(6 * 3600);
        json!({ "agent_id": agent_id, "token": token, "generation": self.given, "expires_at": until, "renew_at": renew_at })
    }

    /// Takes a proof, and gives a token for it. `host` is what the agent calls us by. `Err`: it is not let in.
    pub(crate) fn prove(
        &mut self,
        agent_id: &str,
        join: Option<&str>,
        proof: &str,
        host: &str,
    ) -> Result<Value, String> {
        let (key, wrong) = match self.read(proof, host) {
            Ok(key) => (key, None),
            Err(why) => (String::new(), Some(why)),
        };
        let is_known = self.has_joined && (key.is_empty() || self.proofs.iter().any(|proof| proof.key == key));
        let may_join = join == Some(JOIN) && !self.has_joined;
        if self.proofs.len() < PROOFS_MAX {
            self.proofs.push(Proof { at: Instant::now(), has_join: join.is_some(), key, wrong });
        }
        // A key that is new is told of as such; so is a proof that is wrong. Both are let in here, to see what comes next.
        if self.is_superseded || !(may_join || is_known || (self.has_joined && join.is_none())) {
            return Err("show a join token that is good, or the key that joined".to_owned());
        }
        self.has_joined = true;
        Ok(self.give(agent_id))
    }

    /// The public key of a proof that is in order.
    fn read(&mut self, proof: &str, host: &str) -> Result<String, String> {
        let (signed, signature) = proof.rsplit_once('.').ok_or("it is no JWT")?;
        let (head, body) = signed.split_once('.').ok_or("it is no JWT")?;
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|error| format!("it is no JWT: {error}"));
        let read = |part: &str| -> Result<Value, String> {
            serde_json::from_slice(&decoded(part)?).map_err(|error| format!("it is no JWT: {error}"))
        };
        let (head, body) = (read(head)?, read(body)?);
        if head["typ"] != "dpop+jwt" || head["alg"] != "EdDSA" || head["jwk"]["crv"] != "Ed25519" {
            return Err(format!("its header is {head}"));
        }
        let key = head["jwk"]["x"].as_str().unwrap_or_default().to_owned();
        let public = UnparsedPublicKey::new(&ED25519, decoded(&key)?);
        public.verify(signed.as_bytes(), &decoded(signature)?).map_err(|_| "its signature is not by the key in it")?;
        let named = body["htu"].as_str().unwrap_or_default().split_once("://").map_or("", |(_, rest)| rest);
        let named = named.split(['/', '?', '#']).next().unwrap_or_default();
        if body["htm"] != "POST" || !named.eq_ignore_ascii_case(host) {
            return Err(format!("htm is {}, and htu {}, where POST is meant and {host}", body["htm"], body["htu"]));
        }
        let made_at = body["iat"].as_u64().unwrap_or_default().saturating_mul(1000);
        if made_at.abs_diff(now().as_ms()) > AGE_MAX_MS {
            return Err(format!("iat is {}, which is not now", body["iat"]));
        }
        let id = body["jti"].as_str().filter(|id| !id.is_empty()).ok_or("it has no jti")?;
        if self.used.len() < PROOFS_MAX && !self.used.insert(id.to_owned()) {
            return Err(format!("jti {id} was used before"));
        }
        Ok(key)
    }
}
