//! Moves bytes: HTTP and WebSocket on one port, and standard input and output. Each transport bounds what it takes in,
//! gives the text to a dialect (`rpc`, `rest`, `mcp`), and drains when it is told to stop. It decides nothing about a call.

mod app;
mod body;
mod connection;
mod conversation;
mod door;
mod drain;
mod finish;
mod guard;
mod http;
mod linger;
mod listen;
mod mcp;
mod oauth;
mod paths;
mod peers;
mod port;
mod rest;
mod servers;
mod stdio;
mod tls;
mod until;
mod ws;

use std::sync::Arc;
use std::time::Duration;

pub use listen::serve;
pub use mcp::{BridgeError, bridge, serve_mcp_stdio};
pub use paths::{Behind, PATHS, Path};
pub use stdio::serve_stdio;
pub use tls::{Tls, TlsError, TlsFiles};

use crate::mcp::server as mcp_server;

/// The largest body, WebSocket message or line that is taken unless another is set, in bytes.
pub const TEXT_MAX: usize = 4 * 1024 * 1024;

/// What may be set about the port.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The largest body and the largest WebSocket message, in bytes.
    pub body_max: usize,
    /// How many connections may be open at once. One more is answered `overloaded` and closed.
    pub connections_max: usize,
    /// How many of them one peer may have. None: half of all, so that nobody takes all places alone. In IPv6 a network of 64
    /// bits is one peer.
    pub connections_per_peer_max: Option<usize>,
    /// How many processes of MCP servers there may be at once for sessions of clients.
    pub processes_max: usize,
    /// How many of them the agents of one namespace may have together.
    pub processes_per_namespace_max: usize,
    /// How many of them one agent may have.
    pub processes_per_caller_max: usize,
    /// How large the head of a request may be, in bytes.
    pub head_max: u32,
    /// How many headers it may have, over HTTP/1.1; over HTTP/2 `head_max` alone bounds them.
    pub headers_max: usize,
    /// How long a new connection may take, its TLS handshake included, until its first request is read up to its body.
    pub first_request_timeout: Duration,
    /// How long the head of any later request may take, counted from the end of the one before: an idle connection
    /// is closed after it.
    pub idle_timeout: Duration,
    /// How long a body may take.
    pub body_timeout: Duration,
    /// How long calls in flight may go on once the gateway stops; then they are answered `shutting_down`.
    pub drain_timeout: Duration,
    /// Names by which the port may be called. Where it listens on loopback only, the names of loopback are allowed
    /// beside these and all others are refused; elsewhere an empty list allows every name.
    pub allowed_hosts: Vec<String>,
    /// Origins, such as `https://console.example.com`, whose web pages may call, beside those of loopback and of the
    /// host that is called.
    pub allowed_origins: Vec<String>,
    /// The gateway's own MCP server.
    pub mcp: mcp_server::Settings,
    /// Speaks TLS, and nothing else. None: plain text.
    pub tls: Option<Arc<Tls>>,
}

impl HttpSettings {
    /// How many connections one peer may have.
    #[must_use]
    pub fn per_peer_max(&self) -> usize {
        self.connections_per_peer_max.unwrap_or_else(|| self.connections_max.div_ceil(2))
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            body_max: TEXT_MAX,
            connections_max: 4096,
            connections_per_peer_max: None,
            processes_max: 256,
            processes_per_namespace_max: 64,
            processes_per_caller_max: 16,
            head_max: 32 * 1024,
            headers_max: 100,
            first_request_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            mcp: mcp_server::Settings::default(),
            tls: None,
        }
    }
}
