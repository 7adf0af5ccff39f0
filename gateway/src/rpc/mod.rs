//! The front of the gateway for JSON-RPC 2.0: text in, text out. It reads a frame strictly, runs what it
//! asks for through one handler, and writes the answer. It never opens a socket, never knows a method by
//! name, and never reads further into `params` and results than it must: they pass as the text they came as.
//!
//! Every transport (HTTP, WebSocket, stdio) calls [`answer`], so that they cannot differ. A transport whose
//! peer also answers questions of ours parses the [`Frame`] itself, takes its responses out with
//! [`Frame::take_responses`] and gives the rest to [`answer_frame`].
//!
//! The rules are those of <https://www.jsonrpc.org/specification>, with its open points decided so:
//!
//! * Ids are strings, numbers and `null`, and come back byte for byte. `"id":null` is a request, not a
//!   notification: it is answered, with id `null`.
//! * A member given twice is refused, whatever its name: two readers of such a frame may see two requests.
//! * A top-level member that the specification does not name is let through and not looked at.
//! * A frame that is no valid request is answered even when it has no id: only a valid notification is silent.
//! * A frame nested too deep is a parse error: it was given up on before it was known to be JSON.

mod batch;
mod card;
mod dispatch;
pub mod enrol;
pub mod methods;
mod near;
mod params;

#[cfg(test)]
mod tests;

pub use crate::envelope::{
    Call, Flaw, Frame, Id, Invalid, Limits, Message, Outcome, Response, StrayResponses, error_of, read_value, refusal,
    refused,
};
pub use card::{decode_card, decode_policy};
pub use dispatch::{Said, answer, answer_frame};
pub use jsonrpsee_types::ErrorObjectOwned;
pub use params::{decode, decode_params};
