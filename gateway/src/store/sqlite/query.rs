//! The reads, as statements.

use std::collections::BTreeMap;

use reach_core::task::Task;
use reach_schemas::{PhaseName, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::row::{agent_of, count_of, id_of, identity_of, phase_of, task_of, time, time_of};
use crate::store::{AgentRow, Counts, Document, IdentityRow, KeyRow};

/// Runs several reads on one and the same state of the file.
pub(super) fn snapshot<T>(
    file: &Connection,
    read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let transaction = file.unchecked_transaction()?;
    let found = read(&transaction)?;
    transaction.commit()?;
    Ok(found)
}

pub(super) fn load_open(file: &Connection, id: TaskId) -> rusqlite::Result<Option<Task>> {
    let sql = "SELECT birth, version, state FROM task CROSS JOIN open USING (no) WHERE task.id = ?1";
    file.prepare_cached(sql)?.query_row(params![id.as_bytes()], task_of).optional()
}

pub(super) fn load(file: &Connection, id: TaskId) -> rusqlite::Result<Option<Task>> {
    snapshot(file, |file| {
        let open = load_open(file, id)?;
        if open.is_some() {
            return Ok(open);
        }
        let sql = "SELECT birth, version, state FROM task CROSS JOIN done USING (no) WHERE task.id = ?1";
        file.prepare_cached(sql)?.query_row(params![id.as_bytes()], task_of).optional()
    })
}

pub(super) fn load_by_key(file: &Connection, scope: &str, key: &str) -> rusqlite::Result<Option<KeyRow>> {
    let sql = "SELECT task.id, fingerprint, expires_at FROM key JOIN task ON task.no = task_no
               WHERE key.scope = ?1 AND key = ?2";
    let found = file.prepare_cached(sql)?.query_row(params![scope, key], |row| {
        Ok(KeyRow {
            task_id: id_of(row, 0)?,
            fingerprint: row.get(1)?,
            expires_at: row.get::<_, Option<i64>>(2)?.map(time_of),
        })
    });
    found.optional()
}

pub(super) fn due(file: &Connection, by: Timestamp, limit: u32) -> rusqlite::Result<Vec<(Timestamp, TaskId)>> {
    let sql = "SELECT due_at, id FROM open WHERE due_at <= ?1 ORDER BY due_at, id LIMIT ?2";
    let mut statement = file.prepare_cached(sql)?;
    let rows = statement.query_map(params![time(by), limit], |row| Ok((time_of(row.get(0)?), id_of(row, 1)?)))?;
    rows.collect()
}

pub(super) fn open_after(file: &Connection, after: Option<TaskId>, limit: u32) -> rusqlite::Result<Vec<Task>> {
    let sql = "SELECT birth, version, state FROM task CROSS JOIN open USING (no)
               WHERE task.id > ?1 ORDER BY task.id LIMIT ?2";
    // No id is as small as no bytes at all.
    let after = after.map_or_else(Vec::new, |id| id.as_bytes().to_vec());
    let mut statement = file.prepare_cached(sql)?;
    statement.query_map(params![after, limit], task_of)?.collect()
}

pub(super) fn agents(file: &Connection) -> rusqlite::Result<Vec<AgentRow>> {
    let mut statement = file.prepare_cached("SELECT content FROM agent ORDER BY id")?;
    statement.query_map([], agent_of)?.collect()
}

pub(super) fn document(file: &Connection, name: &str) -> rusqlite::Result<Option<Document>> {
    let mut statement = file.prepare_cached("SELECT version, content FROM document WHERE name = ?1")?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Document { name: name.to_owned(), version: count_of(row.get(0)?), content: row.get(1)? })
    };
    statement.query_row(params![name], read).optional()
}

pub(super) fn identities(file: &Connection) -> rusqlite::Result<Vec<IdentityRow>> {
    let mut statement = file.prepare_cached("SELECT content FROM identity ORDER BY kind, id")?;
    statement.query_map([], identity_of)?.collect()
}

pub(super) fn counts(file: &Connection) -> rusqlite::Result<Counts> {
    let count = |sql: &str| file.prepare_cached(sql)?.query_row([], |row| row.get(0).map(count_of));
    let mut done: BTreeMap<PhaseName, u64> = BTreeMap::new();
    let mut statement = file.prepare_cached("SELECT phase, count(*) FROM done WHERE phase <> 4 GROUP BY phase")?;
    for row in statement.query_map([], |row| Ok((row.get(0)?, count_of(row.get(1)?))))? {
        let (phase, tasks) = row?;
        done.extend(phase_of(phase).map(|phase| (phase, tasks)));
    }
    let completed = count("SELECT count(*) FROM done")? - done.values().sum::<u64>();
    if completed > 0 {
        done.insert(PhaseName::Completed, completed);
    }
    let pages = count("PRAGMA page_count")? - count("PRAGMA freelist_count")?;
    Ok(Counts {
        open: count("SELECT count(*) FROM open")?,
        done,
        keys: count("SELECT count(*) FROM key")?,
        bytes: pages * count("PRAGMA page_size")?,
    })
}
