//! The gateway's own MCP server over real sockets: its rules on the wire, the official conformance suite, and clients that
//! are not ours.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod common;
mod victim;

mod mcp {
    mod clients;
    mod conformance;
    mod giving_up;
    mod http;
    mod many;
    mod once;
    mod reach;
    mod restart;
    mod rmcp;
    mod tools;
    mod world;
    mod ws;
}
