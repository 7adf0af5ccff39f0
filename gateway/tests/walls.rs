//! The walls between namespaces, and what the port bears: who may know of whom, over every road there is, and what becomes of
//! those who send too much, too slowly, or with the wrong certificate.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test, in its parts as well")]

mod common;

#[path = "walls/bounds.rs"]
mod bounds;
#[path = "walls/hidden.rs"]
mod hidden;
#[path = "walls/lures.rs"]
mod lures;
#[path = "walls/policy.rs"]
mod policy;
#[path = "walls/tls.rs"]
mod tls;
#[path = "walls/tls_sdk.rs"]
mod tls_sdk;
#[path = "walls/world.rs"]
mod world;
