//! What is done with an agent, act by act. Each notes what it found; none relies on another but for what the stage keeps.

pub(super) mod begin;
pub(super) mod crowd;
pub(super) mod heart;
pub(super) mod identity;
pub(super) mod input;
pub(super) mod lease;
pub(super) mod link;
pub(super) mod once;
pub(super) mod slow;
pub(super) mod work;
