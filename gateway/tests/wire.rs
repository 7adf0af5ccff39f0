//! The gateway's port and its standard streams, spoken with as clients speak with them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test, in its parts as well")]

mod common;

#[path = "wire/connected.rs"]
mod connected;
#[path = "wire/large.rs"]
mod large;
#[path = "wire/limits.rs"]
mod limits;
#[path = "wire/metrics.rs"]
mod metrics;
#[path = "wire/openapi.rs"]
mod openapi;
#[path = "wire/rest.rs"]
mod rest;
#[path = "wire/rest_people.rs"]
mod rest_people;
#[path = "wire/rest_refusals.rs"]
mod rest_refusals;
#[path = "wire/stdio.rs"]
mod stdio;
#[path = "wire/table.rs"]
mod table;
#[path = "wire/vectors.rs"]
mod vectors;
#[path = "wire/web_socket.rs"]
mod web_socket;
