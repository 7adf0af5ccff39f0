//! Over a real gateway process: what it goes by changes while it runs, all of it or nothing, and what is at work stays at
//! work.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

#[path = "live/keys.rs"]
mod keys;
#[path = "live/leaving.rs"]
mod leaving;
#[path = "live/limits.rs"]
mod limits;
#[path = "live/load.rs"]
mod load;
#[path = "live/shell.rs"]
mod shell;
mod victim;
#[path = "live/world.rs"]
mod world;
