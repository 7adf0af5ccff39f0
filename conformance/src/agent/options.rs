//! What an agent is checked with.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

/// How the agent is reached.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    /// Over HTTP, at this address. None: at the one that its card names.
    Http(Option<String>),
    /// It connects, or pulls.
    Listen,
    /// It is a command.
    Process(String),
}

/// Everything that was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) asked: Asked,
    /// Where the runner listens as the agent's gateway. None: nowhere.
    pub(crate) listen: Option<SocketAddr>,
    /// The card, if the agent does not register.
    pub(crate) card: Option<Value>,
    /// Parameters by capability: `params`, `slow`, `bad`.
    pub(crate) samples: Map<String, Value>,
    /// The command that starts the agent.
    pub(crate) start: Option<String>,
    /// A file in which each effect leaves a line.
    pub(crate) effects: Option<PathBuf>,
    /// Whether the runner is a gateway that asks for tokens.
    pub(crate) demands_tokens: bool,
    /// How long one step may take.
    pub(crate) timeout: Duration,
    pub(crate) seed: u64,
}
