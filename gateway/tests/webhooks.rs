//! Webhooks over real sockets: receivers that are down, slow, gone, or send elsewhere; a gateway that is killed before it
//! has delivered; and signatures that another implementation verifies.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

#[path = "webhooks/addresses.rs"]
mod addresses;
mod common;
#[path = "webhooks/lanes.rs"]
mod lanes;
#[path = "webhooks/outage.rs"]
mod outage;
#[path = "webhooks/process.rs"]
mod process;
#[path = "webhooks/receiver.rs"]
mod receiver;
#[path = "webhooks/sending.rs"]
mod sending;
mod victim;
#[path = "webhooks/world.rs"]
mod world;
