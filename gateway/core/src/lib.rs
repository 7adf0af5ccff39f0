//! What Agent-Reach decides: leases, health, routing, scoring, task steps, idempotency, access.
//!
//! Pure: time and chance are arguments. No clock, no entropy, no log, no await, and nothing whose order depends
//! on a hash.

pub mod access;
pub mod admission;
pub mod audit;
pub mod breaker;
pub mod bulkhead;
pub mod digest;
pub mod evaluation;
pub mod fleet;
pub mod health;
pub mod history;
pub mod hours;
pub mod idempotency;
pub mod identity;
pub mod lease;
pub mod lexical;
pub mod octave;
pub mod probe;
pub mod rate;
pub mod retry;
pub mod schema;
pub mod score;
pub mod task;
pub mod turns;
pub mod webhook;
