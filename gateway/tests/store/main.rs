//! Every store against one contract, SQLite against the memory store, SQLite under kill -9 and with bad files, and tasks
//! that move from one to the other.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod altered;
mod audit;
mod audit_file;
mod committer;
mod contract;
mod crash;
mod differential;
mod files;
mod identities;
mod make;
mod moves;
mod outbox;
