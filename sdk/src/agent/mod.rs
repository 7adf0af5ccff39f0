//! The serving side: an [`Agent`] registers, gets work, runs it through [`Handler`]s, and brings the results back.
//!
//! Work comes over a WebSocket that the agent opens (the default, and the way from behind NAT), by pulling, or by HTTP
//! requests to the agent. Whichever way, an attempt is accepted before it begins, runs at most once however often it
//! is delivered, is stopped when another attempt has taken over, and its result is kept until the gateway has it.
//!
//! ```no_run
//! use agent_reach_sdk::{Agent, Capability, Context, Effect, HandlerError, Task, capability, card};
//!
//! async fn count(task: Task, _context: Context) -> Result<usize, HandlerError> {
//!     let text: String = task.params()?;
//!     Ok(text.split_whitespace().count())
//! }
//!
//! # async fn run() -> Result<(), agent_reach_sdk::Error> {
//! let counts = Capability {
//!     description: "Counts the words of a text".to_owned(),
//!     effect: Effect::Read,
//!     ..capability("count_words")?
//! };
//! Agent::builder(card("counter@demo")?).capability(counts, count).run().await
//! # }
//! ```

mod attempts;
mod builder;
mod card;
mod context;
mod handler;
mod health;
mod heartbeat;
mod http;
mod listen;
mod outcome;
mod pull;
mod running;
mod signal;
mod socket;
mod worker;

pub use builder::{Agent, AgentBuilder};
pub use card::{capability, card};
pub use context::Context;
pub use handler::{Handler, Task};
pub use health::Health;
pub use http::HttpAnswer;
pub use outcome::HandlerError;
pub use running::AgentHandle;
pub use signal::shutdown_signal;
