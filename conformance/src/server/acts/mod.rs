//! What is done with a server, act by act. None relies on another but for what the stage keeps.

pub(super) mod begin;
pub(super) mod frames;
pub(super) mod input;
pub(super) mod session;
pub(super) mod slow;
pub(super) mod tools;
