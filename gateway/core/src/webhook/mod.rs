//! Webhooks: who is told of the end of a task and what, and when a message that did not arrive is sent again. It makes
//! no ids, signs nothing and sends nothing.

pub mod announce;
pub mod schedule;

pub use announce::{Announcement, body};
pub use schedule::{Answer, Next};
