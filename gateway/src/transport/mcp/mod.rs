//! MCP over its transports: Streamable HTTP at `/mcp`, one message a frame over WebSocket at `/mcp/ws`, and one a line over
//! standard input and output. What a message means, and what is said to it, the dialect knows.

mod bridge;
mod conversation;
mod events;
mod http;
mod published;
mod stdio;
mod ws;

pub use bridge::{BridgeError, bridge};
pub(super) use conversation::Peer;
pub(super) use http::{delete, get, post};
pub(super) use published::{Published, published};
pub use stdio::serve_mcp_stdio;
pub(super) use ws::get as upgrade;

/// Where the endpoint is.
pub(super) const PATH: &str = "/mcp";
/// Where its WebSocket is.
pub(super) const SOCKET_PATH: &str = "/mcp/ws";
/// Where the server's own card is (MCP Server Cards: the endpoint, and `/server-card`).
pub(super) const CARD_PATH: &str = "/mcp/server-card";
/// Where the catalogue of all that can be reached is.
pub(super) const CATALOG_PATH: &str = "/.well-known/ai-catalog.json";
/// Where the card of an agent is.
pub(super) const AGENT_CARD_PATH: &str = "/agents/{id}/agent-card.json";
/// The subprotocol of its WebSocket.
const SUBPROTOCOL: &str = "mcp";
