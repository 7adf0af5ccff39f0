//! Who callers are: joining, tokens and their renewal, copies, revocation, roles, and those who pretend, over a real gateway
//! with its port on a real socket.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test, in its parts as well")]

mod common;

#[path = "identity/attacks.rs"]
mod attacks;
#[path = "identity/cell.rs"]
mod cell;
#[path = "identity/copies.rs"]
mod copies;
#[path = "identity/days.rs"]
mod days;
#[path = "identity/ended.rs"]
mod ended;
#[path = "identity/matrix.rs"]
mod matrix;
#[path = "identity/oauth.rs"]
mod oauth;
#[path = "identity/pace.rs"]
mod pace;
#[path = "identity/relay.rs"]
mod relay;
#[path = "identity/roads.rs"]
mod roads;
#[path = "identity/roles.rs"]
mod roles;
#[path = "identity/sdk.rs"]
mod sdk;
#[path = "identity/servers.rs"]
mod servers;
#[path = "identity/signer.rs"]
mod signer;
#[path = "identity/strangers.rs"]
mod strangers;
#[path = "identity/turned_away.rs"]
mod turned_away;
#[path = "identity/world.rs"]
mod world;
