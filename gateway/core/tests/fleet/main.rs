//! Whom a task goes to, as stories: agents, what they say of themselves and what becomes of work in; routes and
//! refusals out.

#![expect(clippy::unwrap_used, reason = "a failed unwrap in a story is a failed test, with its line")]

mod cards;
mod choices;
mod filters;
mod learning;
mod player;
mod records;
#[path = "../script/mod.rs"]
mod script;
mod servers;
mod walls;
mod watched;
