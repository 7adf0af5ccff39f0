//! Tokens that operators hand out and end, and who has one.

use reach_core::access::Grant;
use reach_core::identity::{Join, KeyState, OperatorRow, Principal};
use reach_schemas::call::{
    JoinCreate, JoinToken, KnownAgent, KnownOperator, Nothing, OpenJoin, OperatorCreate, OperatorToken, Revoked,
    SigningKey, TokenRevoke, Tokens,
};
use reach_schemas::{AgentId, AuditKind, ErrorCode, Failure, OperatorName, Span};

use super::settle::Change;
use crate::gateway::Gateway;
use crate::identity::{JOIN_PREFIX, KeysError, OPERATOR_PREFIX, hash, made};
use crate::store::IdentityRow;

/// How long a join token is good unless it is said otherwise, and at most.
const JOIN_LIFE: Span = Span::from_mins(15);
const JOIN_LIFE_MAX: Span = Span::from_hours(24);
/// How many join tokens there may be that nobody has used.
const JOINS_MAX: usize = 10_000;
/// How many operators there may be.
const OPERATORS_MAX: usize = 1_000;

fn wrong(message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::InvalidParams, message)
}

pub(super) fn known_agent(known: &Principal) -> KnownAgent {
    KnownAgent {
        agent_id: known.agent_id.clone(),
        thumbprint: known.thumbprint.clone(),
        generation: known.generation,
        joined_at: known.joined_at,
        proven_at: known.proven_at,
    }
}

/// How long the id of a token may be.
const ID_MAX: usize = 128;

/// Whether a text can be the id of a token. It goes into the audit log.
fn is_id(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    !text.is_empty() && text.len() <= ID_MAX && text.chars().all(fits)
}

impl Gateway {
    /// Makes a token by which one agent can join, once.
    ///
    /// # Errors
    /// It is for agents of more than one namespace, for too long, or there are too many.
    pub async fn create_join(&self, grant: Grant, request: JoinCreate) -> Result<JoinToken, Failure> {
        let JoinCreate { agents, expires_in } = request;
        if agents.to_string().rsplit('@').next().is_none_or(|namespace| namespace.contains('*')) {
            return Err(wrong("agents: name the namespace in full, for example \"*@media\""));
        }
        let life = expires_in.unwrap_or(JOIN_LIFE);
        if life == Span::ZERO || life > JOIN_LIFE_MAX {
            return Err(wrong(format!("expires_in: is {life}: it is more than nothing and at most {JOIN_LIFE_MAX}")));
        }
        let _turn = self.identity.changing.lock().await;
        if self.identity.book().joins.len() >= JOINS_MAX {
            return Err(Failure::new(ErrorCode::Overloaded, format!("{JOINS_MAX} join tokens were made and not used")));
        }
        let (join, now) = (made(JOIN_PREFIX), self.now());
        let expires_at = now + life;
        let row = Join { hash: hash(join.reveal()), agents: agents.clone(), made_at: now, expires_at };
        let told = self.audit_event(AuditKind::JoinCreated, grant.caller().to_string()).on(agents.to_string());
        self.keep_identity(Change::Put(IdentityRow::Join(row)), vec![told]).await?;
        Ok(JoinToken { join, agents, expires_at })
    }

    /// Makes a token for a person or tool that operates the gateway. One that the name had before is over.
    ///
    /// # Errors
    /// It is for no time, or there are too many.
    pub async fn create_operator(&self, grant: Grant, request: OperatorCreate) -> Result<OperatorToken, Failure> {
        let OperatorCreate { name, role, expires_in } = request;
        if expires_in == Some(Span::ZERO) {
            return Err(wrong("expires_in: is zero"));
        }
        let _turn = self.identity.changing.lock().await;
        if self.identity.book().operators.len() >= OPERATORS_MAX {
            return Err(Failure::new(ErrorCode::Overloaded, format!("there are {OPERATORS_MAX} operators")));
        }
        let (token, now) = (made(OPERATOR_PREFIX), self.now());
        let expires_at = expires_in.map(|life| now + life);
        let row = OperatorRow { hash: hash(token.reveal()), name: name.clone(), role, made_at: now, expires_at };
        let told = self.audit_event(AuditKind::OperatorCreated, grant.caller().to_string()).on(name.as_str());
        let told = told.because(format!("role {role}"));
        self.keep_identity(Change::Put(IdentityRow::Operator(row)), vec![told]).await?;
        Ok(OperatorToken { token, name, role, expires_at })
    }

    /// Ends tokens at once.
    ///
    /// # Errors
    /// It does not say whose, or nobody is known by that name.
    pub async fn revoke(&self, grant: Grant, request: TokenRevoke) -> Result<Revoked, Failure> {
        let TokenRevoke { agent_id, jti, forget_key, operator } = request;
        if jti.as_ref().is_some_and(|jti| !is_id(jti)) {
            return Err(wrong(
                "jti: is no id of a token: those have at most 128 letters, digits, `-`, `_`, `.` and `:`",
            ));
        }
        let by = grant.caller().to_string();
        match (agent_id, operator) {
            (Some(agent), None) => self.revoke_agent(&by, &agent, jti.as_deref(), forget_key).await,
            (None, Some(operator)) if jti.is_none() && !forget_key => self.revoke_operator(&by, &operator, None).await,
            (Some(_) | None, Some(_) | None) => Err(wrong("name one of `agent_id` and `operator`")),
        }
    }

    /// Ends the token of an operator; of several that it had one after another, the one with this hash.
    ///
    /// # Errors
    /// It has none.
    pub(super) async fn revoke_operator(
        &self,
        by: &str,
        name: &OperatorName,
        hash: Option<&str>,
    ) -> Result<Revoked, Failure> {
        let _turn = self.identity.changing.lock().await;
        let row = self.identity.book().operators.get(name).cloned();
        if row.as_ref().is_some_and(|row| hash.is_some_and(|hash| hash != row.hash)) {
            // The name was given another meanwhile, by which this one has ended.
            return Ok(Revoked { generation: None });
        }
        let row = row.ok_or_else(|| wrong(format!("operator: {name} has no token")))?;
        let told = self.audit_event(AuditKind::TokenRevoked, by).on(name.as_str());
        self.keep_identity(Change::Take(IdentityRow::Operator(row)), vec![told]).await?;
        Ok(Revoked { generation: None })
    }

    /// Ends tokens of an agent: all that it has, or one by its id.
    ///
    /// # Errors
    /// No agent of this name has joined.
    pub(crate) async fn revoke_agent(
        &self,
        by: &str,
        agent: &AgentId,
        jti: Option<&str>,
        forget_key: bool,
    ) -> Result<Revoked, Failure> {
        let _turn = self.identity.changing.lock().await;
        let known = self.identity.book().principals.get(agent).cloned();
        let known = known.ok_or_else(|| {
            Failure::new(ErrorCode::AgentNotFound, format!("{agent} has no token that could be ended"))
        })?;
        let (now, life) = (self.now(), self.identity.settings().lifetimes);
        let revoked = match jti {
            Some(jti) if !forget_key => known.revoked_one(jti, now + life.token + life.skew + life.skew, now),
            // What is left of it keeps its older tokens from coming to life again with its next generation.
            Some(_) | None if forget_key => {
                Principal { key: String::new(), thumbprint: String::new(), ..known.revoked_all() }
            }
            Some(_) | None => known.revoked_all(),
        };
        let generation = (revoked.revoked_generation == revoked.generation).then_some(revoked.generation);
        let told = self.audit_event(AuditKind::TokenRevoked, by).on(agent.as_str());
        let told = told.because(if forget_key {
            "all of them, and its key".to_owned()
        } else {
            jti.map_or_else(|| "all of them".to_owned(), |jti| format!("the one with the id {jti}"))
        });
        self.keep_identity(Change::Put(IdentityRow::Agent(revoked)), vec![told]).await?;
        Ok(Revoked { generation })
    }

    /// Who may call.
    #[must_use]
    pub fn tokens(&self, _grant: Grant, Nothing {}: Nothing) -> Tokens {
        let now = self.now();
        let signing = |key: KeyState| SigningKey { kid: key.kid, stage: key.stage, since: key.since };
        let signing_keys = self.identity.key_states().into_iter().map(signing).collect();
        let book = self.identity.book();
        let operator = |row: &OperatorRow| KnownOperator {
            name: row.name.clone(),
            role: row.role,
            made_at: row.made_at,
            expires_at: row.expires_at,
        };
        let joins = book.joins.values().filter(|join| now < join.expires_at);
        Tokens {
            agents: book.principals.values().map(known_agent).collect(),
            operators: book.operators.values().map(operator).collect(),
            joins: joins.map(|join| OpenJoin { agents: join.agents.clone(), expires_at: join.expires_at }).collect(),
            signing_keys,
        }
    }

    /// Has signing keys move on in their lives, and writes down when another signs.
    ///
    /// # Errors
    /// They cannot be kept.
    pub(crate) fn turn_keys(&self) -> Result<(), KeysError> {
        let before = self.identity.active_key();
        if self.identity.turn_keys(self.now())? {
            tracing::info!("signing keys have changed");
        }
        if let (Some(before), Some(active)) = (before, self.identity.active_key())
            && before != active
        {
            let told = self.audit_event(AuditKind::KeysRotated, "gateway").on(active.as_str());
            self.audit
                .note(told.because(format!("it signs from now on; what {before} signed holds as long as it says")));
        }
        Ok(())
    }

    /// Forgets join tokens that nobody used in time.
    ///
    /// # Errors
    /// It cannot be stored.
    pub(crate) async fn forget_old_joins(&self) -> Result<(), Failure> {
        let now = self.now();
        let over: Vec<Join> =
            self.identity.book().joins.values().filter(|join| join.expires_at <= now).cloned().collect();
        for join in over {
            let _turn = self.identity.changing.lock().await;
            self.keep_identity(Change::Take(IdentityRow::Join(join)), Vec::new()).await?;
        }
        Ok(())
    }
}
