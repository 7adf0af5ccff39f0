//! Who may call: agents that show their keys, tokens that are made and ended, and what a caller is granted.

mod access;
mod hand_out;
mod issue;
mod pace;
mod settle;
mod vouch;

pub use access::Ended;
pub use vouch::{EndedToken, Introspected};
