//! The words of MCP, as every revision that is spoken here has them: revisions, headers, error codes, and the keys of
//! `_meta`. Both faces go by them, the server that hosts mount and the client of servers behind the gateway. It decides
//! nothing.
//!
//! Sources: the MCP specification of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28.

pub mod header;
pub mod meta;
pub mod object;
mod revision;
pub mod sse;

pub use revision::{Era, Revision};

/// Error numbers that MCP adds to those of JSON-RPC.
pub mod code {
    /// Handshake era: no such resource. The stateless era says "invalid params" instead.
    pub const RESOURCE_NOT_FOUND: i32 = -32002;
    /// 2025-11-25 only: the caller has to open an address first.
    pub const URL_ELICITATION_REQUIRED: i32 = -32042;
    /// Stateless era: a header is missing, or says other than the body.
    pub const HEADER_MISMATCH: i32 = -32020;
    /// Stateless era: the request needs a capability of the client that it did not declare.
    pub const MISSING_CLIENT_CAPABILITY: i32 = -32021;
    /// Stateless era: the revision is not spoken here; `data.supported` lists those that are.
    pub const UNSUPPORTED_REVISION: i32 = -32022;
}

/// The extension by which long work is a task (2026-07-28).
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
