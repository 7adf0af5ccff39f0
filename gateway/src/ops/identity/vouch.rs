//! The standard road (OAuth 2): clients that say who they are and sign it with their keys, and what is told of tokens and done
//! to them in its words.

use std::sync::Arc;

use reach_core::access::{Grant, Operator};
use reach_core::identity::{Claims, Join, OperatorRow, Principal};
use reach_schemas::call::{AgentToken, KeyTrust, KnownAgent};
use reach_schemas::{AgentId, AuditKind, ErrorCode, Failure, Role};

use super::settle::Change;
use crate::gateway::Gateway;
use crate::identity::{AgentPass, JOIN_PREFIX, OPERATOR_PREFIX, Pass, hash, point, read_assertion, thumbprint};
use crate::store::IdentityRow;

/// What is told of a token (RFC 7662): what a call with it would find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Introspected {
    /// It is good, and an agent's.
    Agent(Box<Claims>),
    /// It is good, and an operator's. None beside it: it is the key in the gateway's own folder.
    Operator(Operator, Option<Box<OperatorRow>>),
    /// It is not good, or is none of the caller's business.
    Inactive,
}

/// What came of ending a token (RFC 7009).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedToken {
    /// It is good no more, if it ever was.
    Ended,
    /// It stays good: tokens of its kind are not ended so.
    Unsupported,
}

fn unknown(message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::Unauthenticated, message)
}

/// Whether somebody may end a token.
fn may_end(pass: &Pass, is_own: bool) -> Result<(), Failure> {
    let is_admin = match pass {
        Pass::Open => true,
        Pass::Nobody | Pass::Agent(_) => false,
        Pass::Operator(operator) => operator.operator.role == Role::Admin,
    };
    if is_own || is_admin {
        return Ok(());
    }
    let message = "a token is ended by whoever has it or by an administrator";
    Err(Failure::new(ErrorCode::Forbidden, message))
}

impl Gateway {
    /// Which agent a client is that says so and signs it with its key. What it said is not believed a second time.
    ///
    /// # Errors
    /// It is no agent that is known by its key; or what it said is not for one of these names of the gateway, not for now,
    /// or was used before.
    pub async fn vouched(&self, assertion: &str, names: &[String]) -> Result<Principal, Failure> {
        let key_of = |agent: &AgentId| self.identity.book().principals.get(agent).map(|known| known.key.clone());
        let said = read_assertion(assertion, key_of).ok_or_else(|| {
            unknown("the client assertion is no JWT that is signed (EdDSA) by the key that is known of its `sub`")
        })?;
        let _turn = self.identity.changing.lock().await;
        let known = said.client().and_then(|client| self.identity.book().principals.get(&client).cloned());
        let known = known.ok_or_else(|| unknown("no agent of this name has joined"))?;
        let skew = self.identity.settings().lifetimes.skew;
        let admitted = said.admit(&known, names, self.now(), skew);
        let admitted = admitted
            .map_err(|flaw| Failure::new(flaw.code(), format!("the client assertion is not accepted: {flaw}")))?;
        self.count_agent(&admitted.agent_id)?;
        let told = self.admitted(&admitted);
        self.keep_identity(Change::Put(IdentityRow::Agent(admitted.clone())), vec![told]).await?;
        Ok(admitted)
    }

    /// A token for a client that has said who it is. Others that it has stay good.
    ///
    /// # Errors
    /// There is no key that signs.
    pub fn token_of(&self, client: &Principal) -> Result<(AgentToken, Claims), Failure> {
        let signed = self.identity.sign(client, client.used_rot, self.now());
        signed.ok_or_else(|| Failure::new(ErrorCode::Internal, "there is no key that signs tokens"))
    }

    /// A client that has said who it is, as a caller with a token of its own would be.
    ///
    /// # Errors
    /// There is no key that signs.
    pub fn pass_of(&self, client: &Principal) -> Result<Pass, Failure> {
        let (_, claims) = self.token_of(client)?;
        Ok(Pass::Agent(Arc::new(AgentPass::new(client.agent_id.clone(), &claims))))
    }

    /// What is told of a token: operators are told of all, an agent of its own.
    #[must_use]
    pub fn introspect(&self, pass: &Pass, token: &str) -> Introspected {
        let found = self.found(token);
        let may = match (pass, &found) {
            (Pass::Nobody, _) => false,
            (Pass::Open | Pass::Operator(_), _) => true,
            (Pass::Agent(own), Introspected::Agent(claims)) => claims.agent().as_ref() == Some(&own.agent_id),
            (Pass::Agent(_), Introspected::Operator(..) | Introspected::Inactive) => false,
        };
        if may { found } else { Introspected::Inactive }
    }

    /// What a call with a token would find now.
    fn found(&self, token: &str) -> Introspected {
        let (identity, now) = (&self.identity, self.now());
        if let Some(operator) = identity.folder_operator(token) {
            return Introspected::Operator(operator, None);
        }
        if token.starts_with(OPERATOR_PREFIX) {
            let row = identity.book().operator(&hash(token), now).ok().cloned();
            return row.map_or(Introspected::Inactive, |row| {
                let operator = Operator { name: Some(row.name.clone()), role: row.role };
                Introspected::Operator(operator, Some(Box::new(row)))
            });
        }
        let Some(claims) = identity.claims(token) else { return Introspected::Inactive };
        let judged = identity.book().judge(&claims, identity.audience(), now, &identity.settings().lifetimes).is_ok();
        if judged { Introspected::Agent(Box::new((*claims).clone())) } else { Introspected::Inactive }
    }

    /// Ends a token: whoever has it its own, an administrator any. One that is none is ended already (RFC 7009).
    ///
    /// # Errors
    /// It is another's, or cannot be stored.
    pub async fn end_token(&self, pass: &Pass, token: &str) -> Result<EndedToken, Failure> {
        if self.identity.folder_operator(token).is_some() || self.is_open_join(token) {
            return Ok(EndedToken::Unsupported);
        }
        let by = pass.to_string();
        if token.starts_with(OPERATOR_PREFIX) {
            let hash = hash(token);
            let row = self.identity.book().operator(&hash, self.now()).ok().cloned();
            let Some(row) = row else { return Ok(EndedToken::Ended) };
            let is_own = matches!(pass, Pass::Operator(own) if own.operator.name.as_ref() == Some(&row.name));
            may_end(pass, is_own)?;
            return self.revoke_operator(&by, &row.name, Some(&hash)).await.map(|_| EndedToken::Ended);
        }
        let Some(claims) = self.identity.claims(token) else { return Ok(EndedToken::Ended) };
        let Some(agent) = claims.agent() else { return Ok(EndedToken::Ended) };
        may_end(pass, matches!(pass, Pass::Agent(own) if own.agent_id == agent))?;
        if !self.identity.book().principals.contains_key(&agent) {
            return Ok(EndedToken::Ended);
        }
        self.revoke_agent(&by, &agent, Some(&claims.jti), false).await.map(|_| EndedToken::Ended)
    }

    /// Whether a text is a join token that nobody has used.
    fn is_open_join(&self, token: &str) -> bool {
        let now = self.now();
        let is_open = |join: &Join| now < join.expires_at;
        token.starts_with(JOIN_PREFIX) && self.identity.book().joins.get(&hash(token)).is_some_and(is_open)
    }

    /// Makes an agent known by its public key. If it was known by another one, its tokens are refused from now on.
    ///
    /// # Errors
    /// It is no Ed25519 key, or the agent is one of the configuration.
    pub async fn trust_key(&self, grant: Grant, request: KeyTrust) -> Result<KnownAgent, Failure> {
        let KeyTrust { agent_id, x } = request;
        if point(&x).is_none() {
            let message = "x: is not an Ed25519 key (32 bytes, of no small order) in base64url without padding";
            return Err(Failure::new(ErrorCode::InvalidParams, message));
        }
        self.refuse_own(&agent_id)?;
        let _turn = self.identity.changing.lock().await;
        let (known, now) = (self.identity.book().principals.get(&agent_id).cloned(), self.now());
        let trusted = Principal::trusted(agent_id, (x.clone(), thumbprint(&x)), known.as_ref(), now);
        let told = self.audit_event(AuditKind::KeyTrusted, grant.caller().to_string()).on(trusted.agent_id.as_str());
        self.keep_identity(Change::Put(IdentityRow::Agent(trusted.clone())), vec![told]).await?;
        Ok(super::hand_out::known_agent(&trusted))
    }
}
