//! What happens to a task, as stories: events in, phases and effects out.

#![expect(clippy::unwrap_used, reason = "a failed unwrap in a story is a failed test, with its line")]

mod attempts;
mod chances;
mod endings;
mod figures;
mod people;
mod player;
#[path = "../script/mod.rs"]
mod script;
mod unknown;
mod waiting;
