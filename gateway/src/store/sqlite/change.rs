//! Commands on their way into the file: first as text, made by whoever asks, so that the one writer only writes;
//! then as statements.

use reach_core::audit::{Checkpoint, Event};
use reach_core::task::Task;
use reach_schemas::{AgentId, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

use super::audit;
use super::outbox::{self, Noted, Written};
use super::row::{count_of, id_of, number, phase_number, time, time_of};
use crate::store::{
    AgentRow, Command, Document, Fingerprint, IdentityRow, Key, OutboxRow, Outcome, agent_of, finished_at,
};

/// A command with all that must be written as text.
#[derive(Debug)]
pub(super) enum Change {
    Insert { task: Task, birth: String, state: String, key: Option<Key>, now: Timestamp, outbox: Vec<Written> },
    Commit { task: Task, state: String, was_final: bool, key_expires_at: Option<Timestamp>, outbox: Vec<Written> },
    NoteSending(Noted),
    PutAgent { id: AgentId, content: String },
    RemoveAgent(AgentId),
    PutDocument(Document),
    PutIdentity { row: IdentityRow, content: String },
    TakeIdentity(IdentityRow),
    Forget(TaskId),
    Purge { finished_before: Timestamp, keys_before: Timestamp, limit: u32 },
    Audited { change: Box<Self>, events: Vec<Event> },
    Audit(Vec<Event>),
    PinAudit(Checkpoint),
    Probe,
}

impl TryFrom<Command> for Change {
    type Error = serde_json::Error;

    fn try_from(command: Command) -> Result<Self, serde_json::Error> {
        Ok(match command {
            Command::Insert { task, key, now, outbox } => {
                let (birth, state) = (text(&task.birth)?, text(&task.state)?);
                Self::Insert { birth, state, task, key, now, outbox: written(outbox)? }
            }
            Command::Commit { task, was_final, key_expires_at, outbox } => {
                Self::Commit { state: text(&task.state)?, task, was_final, key_expires_at, outbox: written(outbox)? }
            }
            Command::NoteSending { id, sending } => Self::NoteSending(Noted::new(id, sending)?),
            Command::PutAgent(row) => Self::put_agent(row)?,
            Command::RemoveAgent(id) => Self::RemoveAgent(id),
            Command::PutDocument(document) => Self::PutDocument(document),
            Command::PutIdentity(row) => Self::PutIdentity { content: text(&row)?, row },
            Command::TakeIdentity(row) => Self::TakeIdentity(row),
            Command::Forget(id) => Self::Forget(id),
            Command::Purge { finished_before, keys_before, limit } => {
                Self::Purge { finished_before, keys_before, limit }
            }
            Command::Audited { change, events } => Self::Audited { change: Box::new(Self::try_from(*change)?), events },
            Command::Audit(events) => Self::Audit(events),
            Command::PinAudit(checkpoint) => Self::PinAudit(checkpoint),
        })
    }
}

fn text<T: Serialize>(value: &T) -> serde_json::Result<String> {
    serde_json::to_string(value)
}

fn written(rows: Vec<OutboxRow>) -> serde_json::Result<Vec<Written>> {
    rows.into_iter().map(Written::try_from).collect()
}

impl Change {
    fn put_agent(row: AgentRow) -> serde_json::Result<Self> {
        Ok(Self::PutAgent { content: text(&row)?, id: row.card.agent_id })
    }

    /// Writes it. An outcome other than an error leaves the file whole: checks come before the first statement that
    /// writes.
    pub(super) fn write(&self, file: &Connection) -> rusqlite::Result<Outcome> {
        match self {
            Self::Insert { task, birth, state, key, now, outbox } => {
                let outcome = insert(file, task, birth, state, key.as_ref(), *now)?;
                tell(file, outcome, outbox)
            }
            Self::Commit { task, state, was_final, key_expires_at, outbox } => {
                let outcome = commit(file, task, state, *was_final, *key_expires_at)?;
                tell(file, outcome, outbox)
            }
            Self::NoteSending(noted) => outbox::note(file, noted).map(|()| Outcome::Done),
            Self::PutAgent { id, content } => {
                let sql = "INSERT INTO agent (id, content) VALUES (?1, ?2)
                           ON CONFLICT (id) DO UPDATE SET content = excluded.content";
                done(file, sql, params![id.as_str(), content])
            }
            Self::RemoveAgent(id) => done(file, "DELETE FROM agent WHERE id = ?1", params![id.as_str()]),
            Self::PutDocument(document) => put_document(file, document),
            Self::PutIdentity { row, content } => {
                let (kind, id) = row.key();
                let sql = "INSERT INTO identity (kind, id, content) VALUES (?1, ?2, ?3)
                           ON CONFLICT (kind, id) DO UPDATE SET content = excluded.content";
                done(file, sql, params![kind, id, content])
            }
            Self::TakeIdentity(row) => {
                let (kind, id) = row.key();
                let taken = run(file, "DELETE FROM identity WHERE kind = ?1 AND id = ?2", params![kind, id])?;
                Ok(if taken == 0 { Outcome::Conflict { current: None } } else { Outcome::Done })
            }
            Self::Forget(id) => forget(file, *id),
            Self::Purge { finished_before, keys_before, limit } => purge(file, *finished_before, *keys_before, *limit),
            Self::Audited { change, events } => {
                let has_object = change.has_object(file)?;
                let outcome = change.write(file)?;
                if matches!(outcome, Outcome::Inserted | Outcome::Committed) || (outcome == Outcome::Done && has_object)
                {
                    audit::append(file, events)?;
                }
                Ok(outcome)
            }
            Self::Audit(events) => audit::append(file, events).map(|()| Outcome::Done),
            Self::PinAudit(checkpoint) => audit::pin(file, checkpoint).map(|()| Outcome::Done),
            Self::Probe => done(file, "UPDATE probe SET times = times + 1", []),
        }
    }

    /// Whether there is something that it can be done to.
    fn has_object(&self, file: &Connection) -> rusqlite::Result<bool> {
        match self {
            Self::NoteSending(noted) => outbox::has(file, noted),
            Self::RemoveAgent(id) => exists(file, "SELECT 1 FROM agent WHERE id = ?1", params![id.as_str()]),
            Self::Forget(id) => find(file, *id).map(|no| no.is_some()),
            Self::TakeIdentity(row) => {
                let (kind, id) = row.key();
                exists(file, "SELECT 1 FROM identity WHERE kind = ?1 AND id = ?2", params![kind, id])
            }
            Self::Insert { .. }
            | Self::Commit { .. }
            | Self::PutAgent { .. }
            | Self::PutDocument(_)
            | Self::PutIdentity { .. }
            | Self::Purge { .. }
            | Self::Audited { .. }
            | Self::Audit(_)
            | Self::PinAudit(_)
            | Self::Probe => Ok(true),
        }
    }
}

/// Writes what is to be told of a change that was made.
fn tell(file: &Connection, outcome: Outcome, rows: &[Written]) -> rusqlite::Result<Outcome> {
    if matches!(outcome, Outcome::Inserted | Outcome::Committed) {
        outbox::put(file, rows)?;
    }
    Ok(outcome)
}

fn run(file: &Connection, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<usize> {
    file.prepare_cached(sql)?.execute(values)
}

fn exists(file: &Connection, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<bool> {
    file.prepare_cached(sql)?.exists(values)
}

fn done(file: &Connection, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<Outcome> {
    run(file, sql, values).map(|_| Outcome::Done)
}

fn insert(
    file: &Connection,
    task: &Task,
    birth: &str,
    state: &str,
    key: Option<&Key>,
    now: Timestamp,
) -> rusqlite::Result<Outcome> {
    if let Some(taken) = key.map(|key| taken(file, key, now)).transpose()?.flatten() {
        return Ok(taken);
    }
    let id = task.id();
    let sql = "INSERT INTO task (id, scope, birth) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO NOTHING";
    if run(file, sql, params![id.as_bytes(), task.birth.scope, birth])? == 0 {
        let no = find(file, id)?;
        return Ok(Outcome::Conflict { current: no.map(|no| version(file, no)).transpose()?.flatten() });
    }
    let no = file.last_insert_rowid();
    if let Some(key) = key {
        let sql = "INSERT INTO key (scope, key, fingerprint, task_no, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
                   ON CONFLICT (scope, key) DO UPDATE SET fingerprint = excluded.fingerprint,
                   task_no = excluded.task_no, expires_at = excluded.expires_at";
        run(file, sql, params![key.scope, key.key.as_str(), key.fingerprint, no, key.expires_at.map(time)])?;
    }
    put(file, no, task, state)?;
    Ok(Outcome::Inserted)
}

/// What stands in the way of a key. None: it is free.
fn taken(file: &Connection, key: &Key, now: Timestamp) -> rusqlite::Result<Option<Outcome>> {
    let sql = "SELECT task.id, fingerprint, expires_at FROM key JOIN task ON task.no = task_no
               WHERE key.scope = ?1 AND key = ?2";
    let standing = file
        .prepare_cached(sql)?
        .query_row(params![key.scope, key.key.as_str()], |row| {
            Ok((id_of(row, 0)?, row.get::<_, Fingerprint>(1)?, row.get::<_, Option<i64>>(2)?.map(time_of)))
        })
        .optional()?;
    let held = standing.filter(|(_, _, expires_at)| expires_at.is_none_or(|at| at > now));
    Ok(held.map(|(task_id, fingerprint, _)| Outcome::KeyTaken { task_id, fingerprint }))
}

fn commit(
    file: &Connection,
    task: &Task,
    state: &str,
    was_final: bool,
    key_expires_at: Option<Timestamp>,
) -> rusqlite::Result<Outcome> {
    let Some(no) = find(file, task.id())? else { return Ok(Outcome::Conflict { current: None }) };
    let is_final = finished_at(task).is_some();
    if !replace(file, no, task, state, was_final)? {
        return Ok(Outcome::Conflict { current: version(file, no)? });
    }
    if was_final || is_final {
        let expires_at = key_expires_at.filter(|_| is_final).map(time);
        run(file, "UPDATE key SET expires_at = ?2 WHERE task_no = ?1", params![no, expires_at])?;
    }
    Ok(Outcome::Committed)
}

/// Puts the new state in the place of the one before it. False: that one does not stand.
fn replace(file: &Connection, no: i64, task: &Task, state: &str, was_final: bool) -> rusqlite::Result<bool> {
    let Some(expected) = task.version.checked_sub(1).map(number) else { return Ok(false) };
    if !was_final && let Some(due_at) = task.due_at() {
        let sql = "UPDATE open SET version = ?3, phase = ?4, due_at = ?5, agent = ?6, state = ?7
                   WHERE no = ?1 AND version = ?2";
        let phase = phase_number(task.state.phase.name());
        let agent = agent_of(task).map(AgentId::as_str);
        let values = params![no, expected, number(task.version), phase, time(due_at), agent, state];
        return Ok(run(file, sql, values)? == 1);
    }
    let sql = if was_final {
        "DELETE FROM done WHERE no = ?1 AND version = ?2"
    } else {
        "DELETE FROM open WHERE no = ?1 AND version = ?2"
    };
    let stood = run(file, sql, params![no, expected])? == 1;
    if stood {
        put(file, no, task, state)?;
    }
    Ok(stood)
}

/// Puts a task's state into the table that its phase belongs to.
fn put(file: &Connection, no: i64, task: &Task, state: &str) -> rusqlite::Result<()> {
    let (sql, at) = match finished_at(task) {
        Some(at) => (
            "INSERT INTO done (no, id, version, phase, finished_at, agent, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            at,
        ),
        None => (
            "INSERT INTO open (no, id, version, phase, due_at, agent, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            task.due_at().unwrap_or(task.state.deadline_at),
        ),
    };
    let phase = phase_number(task.state.phase.name());
    let agent = agent_of(task).map(AgentId::as_str);
    run(file, sql, params![no, task.id().as_bytes(), number(task.version), phase, time(at), agent, state])?;
    Ok(())
}

fn put_document(file: &Connection, document: &Document) -> rusqlite::Result<Outcome> {
    let mut statement = file.prepare_cached("SELECT version FROM document WHERE name = ?1")?;
    let current = statement.query_row(params![document.name], |row| row.get(0)).optional()?.map(count_of);
    if current.unwrap_or(0) + 1 != document.version {
        return Ok(Outcome::Conflict { current });
    }
    let sql = "INSERT INTO document (name, version, content) VALUES (?1, ?2, ?3)
               ON CONFLICT (name) DO UPDATE SET version = excluded.version, content = excluded.content";
    run(file, sql, params![document.name, number(document.version), document.content])?;
    Ok(Outcome::Committed)
}

fn find(file: &Connection, id: TaskId) -> rusqlite::Result<Option<i64>> {
    let mut statement = file.prepare_cached("SELECT no FROM task WHERE id = ?1")?;
    statement.query_row(params![id.as_bytes()], |row| row.get(0)).optional()
}

fn version(file: &Connection, no: i64) -> rusqlite::Result<Option<u64>> {
    let sql = "SELECT version FROM open WHERE no = ?1 UNION ALL SELECT version FROM done WHERE no = ?1";
    let found = file.prepare_cached(sql)?.query_row(params![no], |row| row.get(0)).optional()?;
    Ok(found.map(count_of))
}

fn forget(file: &Connection, id: TaskId) -> rusqlite::Result<Outcome> {
    let Some(no) = find(file, id)? else { return Ok(Outcome::Done) };
    run(file, "DELETE FROM key WHERE task_no = ?1", params![no])?;
    run(file, "DELETE FROM open WHERE no = ?1", params![no])?;
    run(file, "DELETE FROM done WHERE no = ?1", params![no])?;
    done(file, "DELETE FROM task WHERE no = ?1", params![no])
}

fn purge(
    file: &Connection,
    finished_before: Timestamp,
    keys_before: Timestamp,
    limit: u32,
) -> rusqlite::Result<Outcome> {
    let sql = "DELETE FROM key WHERE (scope, key) IN
               (SELECT scope, key FROM key WHERE expires_at < ?1 ORDER BY expires_at, scope, key LIMIT ?2)";
    let keys = run(file, sql, params![time(keys_before), limit])?;
    let sql = "SELECT no FROM done WHERE finished_at < ?1 AND NOT EXISTS (SELECT 1 FROM key WHERE task_no = done.no)
               ORDER BY finished_at, id LIMIT ?2";
    let mut statement = file.prepare_cached(sql)?;
    let old = statement.query_map(params![time(finished_before), limit], |row| row.get(0))?;
    let old: Vec<i64> = old.collect::<rusqlite::Result<_>>()?;
    for no in &old {
        run(file, "DELETE FROM done WHERE no = ?1", params![no])?;
        run(file, "DELETE FROM task WHERE no = ?1", params![no])?;
    }
    let messages = outbox::purge(file, finished_before, limit)?;
    // All are at most `limit`, which is a `u32`.
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    Ok(Outcome::Purged { tasks: count(old.len()), keys: count(keys), messages: count(messages) })
}
