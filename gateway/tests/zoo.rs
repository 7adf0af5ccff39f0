//! The fault zoo: real agents over real sockets that go wrong, each in its own way, against a real gateway process. Each
//! test states what the caller sees, how often the work was handed out, and within what time. Orders and counts are exact;
//! bounds of time leave room for a slow machine.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod victim;

#[path = "zoo/animal.rs"]
mod animal;
#[path = "zoo/answers.rs"]
mod answers;
#[path = "zoo/hurry.rs"]
mod hurry;
#[path = "zoo/load.rs"]
mod load;
#[path = "zoo/raw.rs"]
mod raw;
#[path = "zoo/reports.rs"]
mod reports;
#[path = "zoo/silence.rs"]
mod silence;
#[path = "zoo/sockets.rs"]
mod sockets;
#[path = "zoo/world.rs"]
mod world;
#[path = "zoo/zombies.rs"]
mod zombies;
