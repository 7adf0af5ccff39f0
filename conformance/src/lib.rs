//! Validates agents and gateways against the Agent-Reach wire. It shares the words of the wire with the rest
//! (`reach-schemas`) and nothing else, so that it cannot share the mistakes of the SDK or of the gateway.

mod agent;
mod catalog;
mod child;
mod cli;
mod engine;
mod exchange;
mod gateway;
mod inputs;
mod instance;
mod json;
mod misfit;
mod report;
mod schema;
mod server;

pub use cli::{check, run};
