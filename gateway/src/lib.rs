//! The Agent-Reach gateway: finds the live agent that can do what is wanted, gets the request there once, proves that
//! it arrived, and brings back a result or an explained failure.
//!
//! The layers, lowest first: ports (`store`, `audit`, `bus`, `adapter`, `clock`, `envelope`, `sessions`, `metrics`, `outbound`,
//! `spans`, `webhook`, `mcp::wire`, `child`, `upstream`), edges (their implementations, `telemetry`), use cases (`gateway`,
//! `identity`, `stores`, `turns`, `outbox`, `ops`, `worker`, `waiters`), dialects (`rpc`, `rest`, `mcp`, `oauth`), transports
//! (`transport`), assembly (`boot`, `reload`, `cli`, `embed`). A layer names only those below it, and use cases never name an edge.

pub mod adapter;
pub mod audit;
pub mod boot;
pub mod bus;
mod child;
pub mod cli;
pub mod clock;
pub mod config;
mod demo;
pub mod effects;
pub mod embed;
pub mod envelope;
pub mod gateway;
pub mod identity;
pub mod mcp;
pub mod metrics;
pub mod oauth;
pub mod open_tasks;
pub mod ops;
pub mod outbound;
pub mod outbox;
pub mod rates;
pub mod reload;
pub mod rest;
pub mod rpc;
pub mod sessions;
pub mod spans;
pub mod store;
pub mod stores;
pub mod telemetry;
pub mod transport;
pub mod turns;
pub mod upstream;
pub mod waiters;
pub mod webhook;
pub mod worker;
