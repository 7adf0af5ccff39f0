//! The standard road (OAuth 2): clients that say who they are and sign it with their keys, and what is told of tokens and done
//! to them in its words.

use std::sync::Arc;

use reach_core::access::Grant;
use reach_core::identity::{Claims, Principal};
use reach_schemas::call::{AgentToken, KeyTrust, KnownAgent};
use reach_schemas::{AgentId, AuditKind, ErrorCode, Failure, Permission, Role};

use super::settle::Change;
use crate::gateway::Gateway;
use crate::identity::{AgentPass, Pass, point, read_assertion, thumbprint};
use crate::store::IdentityRow;

/// What is told of a token (RFC 7662).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Introspected {
    /// It is good.
    Active(Box<Claims>),
    /// It is not, or is none of the caller's business.
    Inactive,
}

fn unknown(message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::Unauthenticated, message)
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
        let admitted = admitted.map_err(|flaw| unknown(format!("the client assertion is not accepted: {flaw}")))?;
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
        let Some(claims) = self.identity.claims(token) else { return Introspected::Inactive };
        let lifetimes = &self.identity.settings().lifetimes;
        let judged = self
            .identity
            .book()
            .judge(&claims, self.identity.audience(), self.now(), lifetimes)
            .map(|(agent, _)| agent);
        match (pass, judged) {
            (Pass::Open | Pass::Operator(_), Ok(_)) => Introspected::Active(Box::new((*claims).clone())),
            (Pass::Agent(own), Ok(agent)) if own.agent_id == agent => Introspected::Active(Box::new((*claims).clone())),
            (Pass::Open | Pass::Operator(_) | Pass::Agent(_) | Pass::Nobody, Ok(_) | Err(_)) => Introspected::Inactive,
        }
    }

    /// Ends a token: an agent its own, an administrator any. One that is none is ended already (RFC 7009).
    ///
    /// # Errors
    /// It is another's, or cannot be stored.
    pub async fn end_token(&self, pass: &Pass, token: &str) -> Result<(), Failure> {
        let Some(claims) = self.identity.claims(token) else { return Ok(()) };
        let Some(agent) = claims.agent() else { return Ok(()) };
        let may = match pass {
            Pass::Open => true,
            Pass::Nobody => false,
            Pass::Agent(own) => own.agent_id == agent,
            Pass::Operator(operator) => operator.operator.role == Role::Admin,
        };
        if !may {
            let message =
                format!("a token is ended by its own agent or by an administrator ({:?})", Permission::Administer);
            return Err(Failure::new(ErrorCode::Forbidden, message));
        }
        self.revoke_agent(&pass.to_string(), &agent, Some(&claims.jti), false).await.map(|_| ())
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
