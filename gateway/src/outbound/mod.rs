//! Where the gateway goes when somebody else names the address, a webhook's receiver or an agent's endpoint: one guard that
//! judges addresses, a resolver that lets no name mean one that is not permitted, and the requests that are made of agents
//! and servers.

pub mod address;
mod client;
pub mod resolve;

pub use address::Guard;
pub(crate) use client::{Answered, BODY_MAX, Body, Client, Silence, Stream, read, told};
pub use resolve::Resolver;
