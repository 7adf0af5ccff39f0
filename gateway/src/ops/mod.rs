//! The use cases, one file each. Each takes a [`Grant`](reach_core::access::Grant) by value, so that a check of
//! permission that was forgotten does not compile.

pub mod agents;
pub mod audit;
pub mod bounds;
pub mod claim;
pub mod configuration;
pub mod dead_letters;
pub mod discover;
pub mod follow;
pub mod health;
pub mod human;
pub mod identity;
pub(crate) mod interest;
pub mod leaving;
pub mod offers;
pub mod overview;
pub mod policy;
pub mod read;
pub mod reconfigure;
pub mod redrive;
pub mod report;
pub mod route;
pub mod servers;
pub mod signing;
pub mod snapshot;
pub mod submit;
pub mod wait;
pub mod webhooks;
