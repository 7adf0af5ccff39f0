//! Checks a gateway: over HTTP, over WebSocket and over standard input and output, as a caller and as an agent.

mod acts;
mod peer;
mod stage;

pub(crate) use stage::{Options, check};
