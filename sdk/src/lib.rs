//! The Rust client and agent of Agent-Reach.
//!
//! A [`Client`] says what it wants and gets a result or an explained failure. Every submit carries an idempotency
//! key, the same over all its retries, so a lost answer never makes the work run twice.
//!
//! ```no_run
//! use agent_reach_sdk::Client;
//!
//! # async fn run() -> Result<(), agent_reach_sdk::Error> {
//! let client = Client::from_env().await?;
//! let done = client
//!     .task("summarize")
//!     .params(&serde_json::json!({ "text": "a long text" }))
//!     .submit()
//!     .await?
//!     .wait()
//!     .await?;
//! let summary: String = done.result()?;
//! # Ok(())
//! # }
//! ```
//!
//! An [`Agent`] serves: see [`agent`].
#![warn(missing_docs)]

pub mod agent;
pub mod client;
pub mod error;
mod identity;
mod transport;

pub use agent::{
    Agent, AgentBuilder, AgentHandle, Context, Handler, HandlerError, Health, HttpAnswer, Task, capability, card,
    shutdown_signal,
};
pub use client::{CancelOnDrop, Client, ClientBuilder, Completed, RetryPolicy, TaskHandle, TaskRequest, Watch};
pub use error::{Error, Refusal, Result};
pub use reach_schemas as schemas;
pub use reach_schemas::{
    AgentCard, AgentId, Capability, CapabilityName, Delivery, Effect, ErrorCode, Explanation, FencingToken,
    IdempotencyKey, Method, Mode, PhaseName, RawJson, Span, Submit, TaskId, TaskView, Tier, Timestamp,
};

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
