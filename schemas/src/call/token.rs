//! Who may call: how agents come by their tokens, and how operators see and end them.

use serde::{Deserialize, Serialize};

use crate::{AgentCard, AgentId, AgentPattern, OperatorName, Role, Secret, Span, Timestamp};

/// The parameters of `agent/register`: a card; or a card with what shows that its agent may have it. It is never read as
/// this type: which of the two it is, is told by whether there is a `card`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Register {
    /// The card, by whoever may act for the agent.
    Card(AgentCard),
    /// The card, and a key or a join token; the answer has the agent's token.
    Enrolment(Enrolment),
}

/// A card with what shows that its agent may have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Enrolment {
    /// The card.
    pub card: AgentCard,
    /// A join token, or the secret of the namespace. None: the agent's key is known already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<Secret>,
    /// That the agent has its key: see [`TokenIssue::proof`].
    pub proof: Secret,
}

/// `token/issue`: an agent shows its key. It is given a token, and whoever had one before is the agent no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenIssue {
    /// Which agent.
    pub agent_id: AgentId,
    /// A join token, or the secret of the namespace. None: the agent's key is known already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<Secret>,
    /// A JWT of the form of DPoP (RFC 9449): `typ` is `dpop+jwt`, `alg` is `EdDSA`, `jwk` is the public key, `htm` is
    /// `POST`, `htu` the gateway's address as the agent has it, `iat` now, `jti` never used before.
    pub proof: Secret,
}

/// An agent's token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct AgentToken {
    /// Whose.
    pub agent_id: AgentId,
    /// The token: a JWT (RFC 9068), to be sent as a bearer token.
    pub token: Secret,
    /// Grows with each registration by key; older ones are refused.
    pub generation: u64,
    /// When it is over.
    pub expires_at: Timestamp,
    /// From when on heartbeats are answered with the next one.
    pub renew_at: Timestamp,
}

/// `token/create_join`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinCreate {
    /// Which agents it lets in: one of this form, in one namespace that is named in full.
    pub agents: AgentPattern,
    /// For how long, at most a day. None: 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<Span>,
}

/// A token by which one agent can join, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct JoinToken {
    /// The token. It is not kept and cannot be shown again.
    pub join: Secret,
    /// Which agents it lets in.
    pub agents: AgentPattern,
    /// When it is over.
    pub expires_at: Timestamp,
}

/// `token/trust_key`: for clients that show their keys by OAuth 2 (`private_key_jwt`) and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeyTrust {
    /// Which agent. If it is known by another key, it is known by this one from now on, and its tokens are refused.
    pub agent_id: AgentId,
    /// Its public key, an Ed25519 point in base64url: the `x` of its JWK (RFC 8037).
    pub x: String,
}

/// `token/create_operator`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OperatorCreate {
    /// Who. A name that has a token gets another one, and the one before it is over.
    pub name: OperatorName,
    /// What they may do.
    pub role: Role,
    /// For how long. None: until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<Span>,
}

/// A token of a person or tool that operates the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct OperatorToken {
    /// The token. It is not kept and cannot be shown again.
    pub token: Secret,
    /// Whose.
    pub name: OperatorName,
    /// What they may do.
    pub role: Role,
    /// When it is over. None: it is not, until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// `token/revoke`: one of `agent_id` and `operator`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TokenRevoke {
    /// An agent: all its tokens, or the one that `jti` names. It may get another one by its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// One token of the agent, by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
    /// The agent's key as well: it needs a join token to come back.
    pub forget_key: bool,
    /// An operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorName>,
}

/// The answer to `token/revoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Revoked {
    /// Of an agent: tokens of this generation and older ones are refused from now on. None: single ones were ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// The answer to `token/list`: who may call. No secret is in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Tokens {
    /// Agents whose keys are known, in the order of their ids.
    pub agents: Vec<KnownAgent>,
    /// Operators, in the order of their names.
    pub operators: Vec<KnownOperator>,
    /// Join tokens that were not used and are not over.
    pub joins: Vec<OpenJoin>,
    /// Keys that agents' tokens are or were signed with, or will be.
    pub signing_keys: Vec<SigningKey>,
}

/// An agent whose key is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct KnownAgent {
    /// Which.
    pub agent_id: AgentId,
    /// Its key's thumbprint (RFC 7638).
    pub thumbprint: String,
    /// Grows with each registration by key.
    pub generation: u64,
    /// When it joined.
    pub joined_at: Timestamp,
    /// When it last showed its key.
    pub proven_at: Timestamp,
}

/// An operator with a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct KnownOperator {
    /// Who.
    pub name: OperatorName,
    /// What they may do.
    pub role: Role,
    /// When the token was made.
    pub made_at: Timestamp,
    /// When it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A join token that was not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct OpenJoin {
    /// Which agents it lets in.
    pub agents: AgentPattern,
    /// When it is over.
    pub expires_at: Timestamp,
}

/// A key that agents' tokens are signed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct SigningKey {
    /// Its id, as tokens and `/.well-known/jwks.json` name it.
    pub kid: String,
    /// Where it is in its life.
    pub stage: KeyStage,
    /// Since when.
    pub since: Timestamp,
}

/// Where a signing key is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum KeyStage {
    /// Published, and not used yet.
    Next,
    /// Tokens are signed with it.
    Active,
    /// Tokens that it has signed are still good.
    Retiring,
}
