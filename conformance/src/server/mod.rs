//! Checks an MCP server as Agent-Reach uses one that it makes an agent of: over Streamable HTTP or as a child process, in
//! the revisions with a handshake and in the stateless one. It speaks the protocol itself.

mod acts;
mod inbox;
mod revision;
mod session;
mod stage;
mod wire;

pub(crate) use stage::{Options, check};
