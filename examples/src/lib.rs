//! What the example agents do: summarize a document and report on a log, both for real, and keep a ledger of what
//! they did, so that anyone can count how often a thing was done.

pub mod bench;
pub mod canned;
pub mod card;
pub mod ledger;
pub mod summary;
pub mod work;
