//! What the gateway keeps of its word when there is more work than agents, when they all fall down at once, and when
//! many wait. Each story prints its figures; `--no-capture` shows them. The short forms run with all tests; the
//! environment lengthens them: `REACH_LOAD_SECS=180` (9,000 tasks), `REACH_STORM_SECS=20`, `REACH_SOAK_SECS=600`.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod victim;

#[path = "under_load/bulkhead.rs"]
mod bulkhead;
#[path = "under_load/burst.rs"]
mod burst;
#[path = "under_load/figures.rs"]
mod figures;
#[path = "under_load/offered.rs"]
mod offered;
#[path = "common/python.rs"]
mod python;
#[path = "under_load/scrape.rs"]
mod scrape;
#[path = "under_load/soak.rs"]
mod soak;
#[path = "under_load/storm.rs"]
mod storm;
#[path = "under_load/waiters.rs"]
mod waiters;
