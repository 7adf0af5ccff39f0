//! MCP servers behind a real gateway: added and removed by `reachctl`, asked through tasks, and reached as they are at
//! addresses of their own.
#![expect(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

#[path = "common/node.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod node;
#[path = "common/python.rs"]
mod python;

#[path = "servers/added.rs"]
mod added;
#[path = "servers/flock.rs"]
mod flock;
#[path = "servers/keys.rs"]
mod keys;
#[path = "servers/mute.rs"]
mod mute;
#[path = "servers/notices.rs"]
mod notices;
#[path = "servers/odd.rs"]
mod odd;
#[path = "servers/real.rs"]
mod real;
#[path = "servers/tasks.rs"]
mod tasks;
#[path = "servers/through.rs"]
mod through;
#[path = "servers/whose.rs"]
mod whose;
#[path = "servers/world.rs"]
mod world;
