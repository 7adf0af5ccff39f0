//! Wire types in, text for people out. Pure: the time, the width and whether colors are wanted are arguments.

pub(crate) mod agents;
mod attempts;
pub(crate) mod audit;
mod candidates;
pub(crate) mod capabilities;
pub(crate) mod config;
pub(crate) mod dead_letters;
mod decision;
pub(crate) mod explanation;
mod grid;
pub(crate) mod people;
pub(crate) mod policy;
pub(crate) mod servers;
pub(crate) mod status;
pub(crate) mod suggestions;
pub(crate) mod tasks;
pub(crate) mod text;
pub(crate) mod tokens;
pub(crate) mod top;
pub(crate) mod webhooks;
mod why;

#[cfg(test)]
mod tests;

pub(crate) use grid::{Grid, Look, Shape, Tone, sheet};
