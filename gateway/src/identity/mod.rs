//! Who callers are: the state of it in memory, what is asked of it with every call, and the keys that sign. What is decided
//! is decided in [`reach_core::identity`]; how it is changed, in `ops::identity`.

pub(crate) mod authenticate;
mod cache;
mod jwt;
mod pass;
mod secrets;
mod settings;
mod signing;
mod state;

pub use authenticate::{Presented, Stranger, bearer};
pub(crate) use jwt::{SignedProof, point, read_assertion, read_proof, thumbprint};
pub(crate) use pass::Who;
pub use pass::{AgentPass, Pass, Speaker};
pub(crate) use secrets::{JOIN_PREFIX, OPERATOR_PREFIX, hash, is_equal, made};
pub use settings::{Mode, Settings};
pub use signing::{KeyHome, KeysError};
pub use state::Identity;
