//! Parameters and results of the methods, one pair a method where it has fields of its own.

mod answers;
mod audit;
mod config;
mod dead_letters;
mod human;
mod overview;
mod params;
mod policy;
mod probe;
mod server;
mod token;

pub use answers::*;
pub use audit::*;
pub use config::*;
pub use dead_letters::*;
pub use human::*;
pub use overview::*;
pub use params::*;
pub use policy::*;
pub use probe::*;
pub use server::*;
pub use token::*;

use crate::Span;

/// The longest wait that one call may ask for; ask again for more.
pub const WAIT_MAX: Span = Span::from_mins(5);
/// How many entries a list answers at most; ask again, from where it ended, for more.
pub const LIST_MAX: u32 = 1000;
/// How many tasks one claim may take.
pub const CLAIM_MAX: u32 = 100;
/// The shortest lease that a claim may ask for.
pub const LEASE_MIN: Span = Span::from_ms(100);
/// The longest lease that a claim may ask for.
pub const LEASE_MAX: Span = Span::from_mins(15);
/// How many attempts one heartbeat may renew.
pub const WORKING_MAX: usize = 10_000;
