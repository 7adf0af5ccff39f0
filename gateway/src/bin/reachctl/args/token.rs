//! The flags of tokens.

use agent_reach_sdk::schemas::{AgentPattern, OperatorName, Role};
use agent_reach_sdk::{AgentId, Span};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make a token by which one agent can join, once; print it
    CreateJoin {
        /// Which agents it lets in, for example '*@media' or news_reader@media
        agents: AgentPattern,
        /// For how long, at most 1d
        #[arg(long, value_name = "SPAN", default_value = "15m")]
        expires_in: Span,
    },
    /// Make a token for a person or tool that operates the gateway; print it
    CreateOperator {
        /// Who; one that the name had before is over
        name: OperatorName,
        /// What they may do: viewer (see), operator (act), admin (change who may do what)
        #[arg(long)]
        role: Role,
        /// For how long [default: until it is revoked]
        #[arg(long, value_name = "SPAN")]
        expires_in: Option<Span>,
    },
    /// Make an agent known by its public key, for clients that show it by OAuth 2 (private_key_jwt) and cannot join
    TrustKey {
        agent: AgentId,
        /// The x of its Ed25519 JWK
        x: String,
    },
    /// List who may call: agents with keys, operators, join tokens that were not used, signing keys
    List,
    /// End tokens at once
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// All tokens of this agent; it may get another one by its key
    #[arg(long, required_unless_present = "operator", conflicts_with = "operator")]
    pub(crate) agent: Option<AgentId>,
    /// Only the one of this id
    #[arg(long, requires = "agent", conflicts_with_all = ["forget_key", "operator"])]
    pub(crate) jti: Option<String>,
    /// The agent's key as well: it needs a join token to come back
    #[arg(long, requires = "agent", conflicts_with = "operator")]
    pub(crate) forget_key: bool,
    /// The token of this operator
    #[arg(long)]
    pub(crate) operator: Option<OperatorName>,
}
