//! The gateway's own MCP server: what agents offer are its tools, and a call of one is a task. Text goes in, and what is to
//! be said comes out; it opens no socket and knows none. It speaks every revision from 2024-11-05 to 2026-07-28: those
//! with a handshake within a [`Session`], the stateless one request by request.
//!
//! It declares tools and nothing else, and so answers no prompts, resources, completion or logging. What servers behind it
//! have of those is reached through each of them.

mod asking;
mod call;
mod converse;
mod handshake;
mod in_flight;
mod line;
mod listen;
mod notice;
mod post;
mod progress;
mod publish;
mod reach;
mod result;
mod session;
mod stateless;
mod tasks;
mod waits;

use std::sync::Arc;

use jsonrpsee_types::ErrorObjectOwned;
use reach_core::access::Grant;
use reach_schemas::{AgentId, ErrorCode, Failure, Method};

use super::catalog::{Catalog, View};
use super::wire::object::Object;
use crate::gateway::Gateway;
use crate::identity::{Pass, Speaker};

pub use asking::METHODS;
pub use line::Line;
pub use post::{NoSession, Posted, agent_of};
pub use publish::SERVER_CARD;
pub use session::{Next, Session, SessionLimits, Stream};
pub use waits::Waits;

/// The header by which a caller says in which agent's name it speaks: without it, in its own, or as the operator.
pub const AGENT_HEADER: &str = "reach-agent";

/// What a host is told of the server, for its model.
const INSTRUCTIONS: &str = "Every tool here is something that an agent behind the gateway can do. A call is routed to an \
agent that is well, once only if it carries an idempotency key (params.idempotencyKey or _meta.idempotencyKey): sent again \
with the same key it runs no second time. A result with isError says what was wrong, whether to try again, and what else \
is near.";

/// What may be set.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Which tools hosts are shown.
    pub tools: Shown,
    /// How many sessions there may be, and for how long.
    pub sessions: SessionLimits,
}

/// Which tools hosts are shown. Those that are not can be called all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shown {
    /// One for each capability.
    #[default]
    Capabilities,
    /// Five that find and use them, for hosts with too many tools.
    Reach,
    /// All of these.
    Both,
}

impl Shown {
    /// The setting of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "capabilities" => Some(Self::Capabilities),
            "reach" => Some(Self::Reach),
            "both" => Some(Self::Both),
            _ => None,
        }
    }

    /// The name of the setting.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Capabilities => "capabilities",
            Self::Reach => "reach",
            Self::Both => "both",
        }
    }

    const fn has_capabilities(self) -> bool {
        matches!(self, Self::Capabilities | Self::Both)
    }

    const fn has_reach(self) -> bool {
        matches!(self, Self::Reach | Self::Both)
    }
}

/// The server.
pub struct Server {
    gateway: Arc<Gateway>,
    catalog: Catalog,
    shown: Shown,
    sessions: session::Sessions,
}

impl Server {
    /// A server in front of a gateway.
    #[must_use]
    pub fn new(gateway: &Arc<Gateway>, settings: &Settings) -> Self {
        Self {
            gateway: Arc::clone(gateway),
            catalog: Catalog::new(gateway, reach::NAMES),
            shown: settings.tools,
            sessions: session::Sessions::new(settings.sessions.clone()),
        }
    }

    /// Tells of tools that come and go, and forgets sessions that nobody uses, until it is dropped.
    pub async fn run(&self) {
        tokio::join!(self.catalog.run(), self.sessions.sweep());
    }

    /// How many sessions there are.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// One who says in whose name it speaks. `what`: what it asks for, for the audit log if it may not.
    ///
    /// # Errors
    /// It has not shown who it is, or may not speak in that name.
    pub fn speaker(&self, pass: &Pass, named: Option<AgentId>, what: &str) -> Result<Speaker, Failure> {
        let speaker = self.gateway.speaker(pass, named);
        speaker.inspect_err(|failure| self.gateway.refused(pass.to_string(), what, failure.code, &failure.message))
    }

    /// Writes down that something was refused. What is taken on as a task is written down where it is refused.
    fn note_refused(&self, speaker: &Speaker, what: &str, code: ErrorCode, message: &str) {
        self.gateway.refused(self.gateway.caller(speaker).to_string(), what, code, message);
    }

    /// What a speaker is granted whose request was counted.
    fn grant(&self, speaker: &Speaker, method: Method) -> Result<Grant, Failure> {
        self.gateway.grant_counted(&speaker.pass(), speaker.agent(), method)
    }

    /// Writes down that something was refused in the words of JSON-RPC, or of MCP, which has errors of its own.
    fn note_error(&self, speaker: &Speaker, what: &str, error: &ErrorObjectOwned) {
        let code = ErrorCode::by_number(error.code()).unwrap_or(ErrorCode::InvalidRequest);
        self.note_refused(speaker, what, code, error.message());
    }

    /// Counts one more request of a speaker. `what`: what it asks for, for the audit log if it may not just now.
    ///
    /// # Errors
    /// It, or its namespace, asks too fast.
    pub fn pace(&self, speaker: &Speaker, what: &str) -> Result<(), Failure> {
        let counted = self.gateway.count_speaker(speaker);
        counted.inspect_err(|failure| self.note_refused(speaker, what, failure.code, &failure.message))
    }

    fn view(&self, speaker: &Speaker) -> Arc<View> {
        self.catalog.view(&self.gateway.caller(speaker))
    }
}

/// Who answers.
fn server_info() -> Object {
    Object::default()
        .with("name", "agent-reach")
        .with("title", "Agent-Reach")
        .with("version", env!("CARGO_PKG_VERSION"))
}
