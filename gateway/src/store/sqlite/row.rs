//! How values lie in the columns.

use reach_core::task::Task;
use reach_schemas::{PhaseName, TaskId, Timestamp};
use rusqlite::Row;

use super::failure::unreadable;
use crate::store::{AgentRow, IdentityRow};

/// The number of a phase in the file. It must never change; `completed` is also named in the layout.
pub(super) fn phase_number(phase: PhaseName) -> i64 {
    match phase {
        PhaseName::Submitted => 0,
        PhaseName::Routed => 1,
        PhaseName::Delivered => 2,
        PhaseName::Accepted => 3,
        PhaseName::Completed => 4,
        PhaseName::Failed => 5,
        PhaseName::Cancelled => 6,
        PhaseName::Expired => 7,
        PhaseName::DeadLettered => 8,
    }
}

/// The phase of a number. None: it was written by nobody we know.
pub(super) fn phase_of(number: i64) -> Option<PhaseName> {
    PhaseName::ALL.into_iter().find(|phase| phase_number(*phase) == number)
}

/// A count as SQLite holds it.
pub(super) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A time as SQLite holds it.
pub(super) fn time(at: Timestamp) -> i64 {
    number(at.as_ms())
}

/// A time out of its column.
pub(super) fn time_of(ms: i64) -> Timestamp {
    Timestamp::from_ms(count_of(ms))
}

/// A count out of its column.
pub(super) fn count_of(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// A task id out of column `index`.
pub(super) fn id_of(row: &Row<'_>, index: usize) -> rusqlite::Result<TaskId> {
    row.get(index).map(TaskId::from_bytes)
}

/// A task out of the columns `birth`, `version`, `state`.
pub(super) fn task_of(row: &Row<'_>) -> rusqlite::Result<Task> {
    let birth = serde_json::from_str(row.get_ref(0)?.as_str()?)
        .map_err(|error| unreadable("what a task was born with", error))?;
    let task = Task { birth, version: count_of(row.get(1)?), state: state_of(row)? };
    Ok(task)
}

fn state_of(row: &Row<'_>) -> rusqlite::Result<reach_core::task::State> {
    serde_json::from_str(row.get_ref(2)?.as_str()?).map_err(|error| unreadable("the state of a task", error))
}

/// An agent out of its column.
pub(super) fn agent_of(row: &Row<'_>) -> rusqlite::Result<AgentRow> {
    serde_json::from_str(row.get_ref(0)?.as_str()?).map_err(|error| unreadable("the card of an agent", error))
}

/// Somebody who is known, out of their column.
pub(super) fn identity_of(row: &Row<'_>) -> rusqlite::Result<IdentityRow> {
    serde_json::from_str(row.get_ref(0)?.as_str()?).map_err(|error| unreadable("who somebody is", error))
}
