//! The outbox, as statements. What is due is found lane by lane, so that one with much to be sent, or whose host does not
//! answer, costs the others nothing. The column `host` holds the lane, which is the host alone where nobody owns it.

use reach_schemas::{Timestamp, WebhookId, WebhookState};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

use super::failure::unreadable;
use super::row::{count_of, time, time_of};
use crate::store::outbox::shared_out;
use crate::store::{OutboxAsk, OutboxCounts, OutboxDue, OutboxQuery, OutboxRow, Sending};

/// Greater than every id: one byte longer.
const ABOVE_ALL: [u8; 17] = [0xff; 17];

/// A row with all that must be written as text.
#[derive(Debug)]
pub(super) struct Written {
    row: OutboxRow,
    message: String,
    sending: String,
}

impl TryFrom<OutboxRow> for Written {
    type Error = serde_json::Error;

    fn try_from(row: OutboxRow) -> Result<Self, serde_json::Error> {
        let (message, sending) = (text(&row.message)?, text(&row.sending)?);
        Ok(Self { row, message, sending })
    }
}

/// A note of how the sending of a message goes, with its text.
#[derive(Debug)]
pub(super) struct Noted {
    id: WebhookId,
    sending: Sending,
    text: String,
}

impl Noted {
    pub(super) fn new(id: WebhookId, sending: Sending) -> serde_json::Result<Self> {
        Ok(Self { id, text: text(&sending)?, sending })
    }
}

fn text<T: Serialize>(value: &T) -> serde_json::Result<String> {
    serde_json::to_string(value)
}

/// The number of a state in the file. It must never change; `delivered` is also named in the layout.
const fn state_number(state: WebhookState) -> i64 {
    match state {
        WebhookState::Waiting => 0,
        WebhookState::Delivered => 1,
        WebhookState::Failed => 2,
        WebhookState::Gone => 3,
    }
}

pub(super) fn put(file: &Connection, rows: &[Written]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO outbox (id, task_id, host, message, state, due_at, ended_at, sending)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (id) DO NOTHING";
    for Written { row, message, sending } in rows {
        let stage = row.sending.stage;
        file.prepare_cached(sql)?.execute(params![
            row.message.id.as_bytes(),
            row.message.task_id.as_bytes(),
            row.message.lane(),
            message,
            state_number(stage.state()),
            stage.due_at().map(time),
            stage.ended_at().map(time),
            sending
        ])?;
    }
    Ok(())
}

pub(super) fn has(file: &Connection, noted: &Noted) -> rusqlite::Result<bool> {
    file.prepare_cached("SELECT 1 FROM outbox WHERE id = ?1")?.exists(params![noted.id.as_bytes()])
}

pub(super) fn note(file: &Connection, noted: &Noted) -> rusqlite::Result<()> {
    let sql = "UPDATE outbox SET state = ?2, due_at = ?3, ended_at = ?4, sending = ?5 WHERE id = ?1";
    let stage = noted.sending.stage;
    let (due_at, ended_at) = (stage.due_at().map(time), stage.ended_at().map(time));
    let values = params![noted.id.as_bytes(), state_number(stage.state()), due_at, ended_at, noted.text];
    file.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Forgets messages whose sending ended before a time, the oldest first, and says how many.
pub(super) fn purge(file: &Connection, before: Timestamp, limit: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM outbox WHERE no IN
               (SELECT no FROM outbox WHERE ended_at < ?1 ORDER BY ended_at, no LIMIT ?2)";
    file.prepare_cached(sql)?.execute(params![time(before), limit])
}

pub(super) fn due(file: &Connection, ask: &OutboxAsk) -> rusqlite::Result<OutboxDue> {
    let mut due: Vec<(i64, i64, WebhookId, String)> = Vec::new();
    let mut lane = next_lane(file, "")?;
    while let Some(name) = lane {
        if !ask.except.contains(&name) {
            let sql = "SELECT due_at, no, id FROM outbox WHERE host = ?1 AND due_at <= ?2 ORDER BY due_at, no LIMIT ?3";
            let mut statement = file.prepare_cached(sql)?;
            let mut rows = statement.query(params![name, time(ask.by), ask.per_lane])?;
            while let Some(row) = rows.next()? {
                due.push((row.get(0)?, row.get(1)?, WebhookId::from_bytes(row.get(2)?), name.clone()));
            }
        }
        lane = next_lane(file, &name)?;
    }
    due.sort_unstable();
    let due = due.into_iter().map(|(.., id, lane)| (id, lane)).collect();
    let sql = "SELECT min(due_at) FROM outbox WHERE due_at > ?1";
    let next: Option<i64> = file.prepare_cached(sql)?.query_row(params![time(ask.by)], |row| row.get(0))?;
    Ok(OutboxDue { due: shared_out(due, ask.limit), next_at: next.map(time_of) })
}

/// The first lane after `after` that has something to be sent.
fn next_lane(file: &Connection, after: &str) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT min(host) FROM outbox WHERE due_at IS NOT NULL AND host > ?1";
    file.prepare_cached(sql)?.query_row(params![after], |row| row.get(0))
}

pub(super) fn row(file: &Connection, id: WebhookId) -> rusqlite::Result<Option<OutboxRow>> {
    let sql = "SELECT message, sending FROM outbox WHERE id = ?1";
    file.prepare_cached(sql)?.query_row(params![id.as_bytes()], row_of).optional()
}

pub(super) fn list(file: &Connection, query: &OutboxQuery) -> rusqlite::Result<Vec<OutboxRow>> {
    let before = query.before.as_ref().map_or(&ABOVE_ALL[..], |id| &id.as_bytes()[..]);
    let task = query.task_id.as_ref().map(|id| &id.as_bytes()[..]);
    let mut statement = file.prepare_cached(&statement(query))?;
    statement.query_map(params![before, task, query.limit], row_of)?.collect()
}

/// ?1 is the id before, ?2 the task, ?3 the limit.
fn statement(query: &OutboxQuery) -> String {
    let mut sql = "SELECT message, sending FROM outbox WHERE id < ?1".to_owned();
    if query.task_id.is_some() {
        sql.push_str(" AND task_id = ?2");
    }
    if let Some(state) = query.state {
        sql.push_str(&format!(" AND state = {}", state_number(state)));
        if state != WebhookState::Delivered {
            sql.push_str(" AND state <> 1");
        }
    }
    sql.push_str(" ORDER BY id DESC LIMIT ?3");
    sql
}

/// How many are in each state but delivered.
const COUNTS: &str = "SELECT state, count(*) FROM outbox WHERE state <> 1 GROUP BY state";
/// The one that was made first of those that wait.
const FIRST_WAITING: &str = "SELECT message, sending FROM outbox WHERE state = 0 AND state <> 1 ORDER BY id LIMIT 1";

pub(super) fn counts(file: &Connection) -> rusqlite::Result<OutboxCounts> {
    let mut counts = OutboxCounts::default();
    let mut statement = file.prepare_cached(COUNTS)?;
    for row in statement.query_map([], |row| Ok((row.get(0)?, count_of(row.get(1)?))))? {
        let (state, count): (i64, u64) = row?;
        let place = match WebhookState::ALL.into_iter().find(|known| state_number(*known) == state) {
            Some(WebhookState::Waiting) => &mut counts.waiting,
            Some(WebhookState::Failed) => &mut counts.failed,
            Some(WebhookState::Gone) => &mut counts.gone,
            Some(WebhookState::Delivered) | None => continue,
        };
        *place = count;
    }
    let first = file.prepare_cached(FIRST_WAITING)?.query_row([], row_of).optional()?;
    counts.waiting_since = first.map(|row| row.message.created_at);
    Ok(counts)
}

fn row_of(row: &Row<'_>) -> rusqlite::Result<OutboxRow> {
    let read = |index: usize| -> rusqlite::Result<&str> { Ok(row.get_ref(index)?.as_str()?) };
    let wrong = |error| unreadable("a message of the outbox", error);
    let message = serde_json::from_str(read(0)?).map_err(wrong)?;
    let sending = serde_json::from_str(read(1)?).map_err(wrong)?;
    Ok(OutboxRow { message, sending })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How SQLite goes about a statement.
    fn plan(sql: &str) -> String {
        let file = Connection::open_in_memory().unwrap();
        file.execute_batch(include_str!("layout_2.sql")).unwrap();
        let mut statement = file.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let count = statement.parameter_count();
        let steps =
            statement.query_map(rusqlite::params_from_iter(vec![1; count]), |row| row.get::<_, String>(3)).unwrap();
        steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    }

    #[track_caller]
    fn check(sql: &str, index: &str) {
        let plan = plan(sql);
        assert!(plan.contains(index) && !plan.contains("SCAN") && !plan.contains("B-TREE"), "{sql}: {plan}");
    }

    #[test]
    fn what_is_due_and_what_is_asked_for_are_found_by_an_index_and_never_sorted() {
        check("SELECT min(host) FROM outbox WHERE due_at IS NOT NULL AND host > ?1", "outbox_host (host>?)");
        check("SELECT min(due_at) FROM outbox WHERE due_at > ?1", "outbox_due (due_at>?)");
        check(
            "SELECT due_at, no, id FROM outbox WHERE host = ?1 AND due_at <= ?2 ORDER BY due_at, no LIMIT ?3",
            "outbox_host (host=? AND due_at<?)",
        );
        let task_id = Some(reach_schemas::TaskId::from_parts(1, 1));
        check(&statement(&OutboxQuery::default()), "sqlite_autoindex_outbox_1 (id<?)");
        check(&statement(&OutboxQuery { task_id, ..OutboxQuery::default() }), "outbox_task (task_id=? AND id<?)");
        for state in [WebhookState::Waiting, WebhookState::Failed, WebhookState::Gone] {
            let query = OutboxQuery { state: Some(state), ..OutboxQuery::default() };
            check(&statement(&query), "outbox_state (state=? AND id<?)");
        }
        check(FIRST_WAITING, "outbox_state (state=?)");
        let counted = plan(COUNTS);
        assert!(counted.contains("COVERING INDEX outbox_state") && !counted.contains("B-TREE"), "{counted}");
    }
}
