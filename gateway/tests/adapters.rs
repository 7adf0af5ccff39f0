//! Every adapter against real peers: one contract for all of them, and what is particular to each.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod common;
#[path = "adapters/contract.rs"]
mod contract;
#[path = "adapters/http.rs"]
mod http;
#[path = "adapters/http_guard.rs"]
mod http_guard;
#[path = "adapters/mcp.rs"]
mod mcp;
#[path = "adapters/process.rs"]
mod process;
#[path = "adapters/session.rs"]
mod session;
