//! The audit log, as statements. Rows are chained here, by the one thread that writes, because it alone knows their order.
//! They are checked here too, as they lie in the file: nothing is read out of a value before its hash was found good.

use std::path::Path;

use reach_core::audit::verify::Row as Link;
use reach_core::audit::{Cell, Cells, Checkpoint, Event, Hash, Mark, Verifier};
use reach_schemas::{AuditRow, TaskId, Timestamp};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params, params_from_iter};

use super::entries;
use super::failure::failure;
use super::query::snapshot;
use super::row::{count_of, number, time, time_of};
use super::schema::{identify, run_nothing};
use crate::store::{Altered, AuditQuery, Error};

/// Every value of a row in the order in which it is chained, and its number and hash.
const COLUMNS: &str = "at, kind, actor, target, outcome, code, reason, task_id, digest, count, seq, hash";
/// The layout with which the log came.
const FIRST_LAYOUT: usize = 4;
/// Where the number and the hash are among them.
const SEQ: usize = 10;
const HASH: usize = 11;

/// Adds rows at the end of the log.
pub(super) fn append(file: &Connection, events: &[Event]) -> rusqlite::Result<()> {
    let mut mark = head(file)?;
    let sql = "INSERT INTO audit (at, kind, actor, target, outcome, code, reason, task_id, digest, count, seq, hash)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let mut statement = file.prepare_cached(sql)?;
    for event in events {
        let cells = event.cells();
        mark = mark.next(&cells);
        let values = cells.iter().map(bound);
        let rest = [ToSqlOutput::Owned(Value::Integer(number(mark.seq))), bound(&Cell::Blob(&mark.hash.0))];
        // A table that somebody made in the place of ours may take a row and keep none.
        if statement.execute(params_from_iter(values.chain(rest)))? != 1 {
            return Err(rusqlite::Error::StatementChangedRows(0));
        }
    }
    Ok(())
}

fn bound<'a>(cell: &Cell<'a>) -> ToSqlOutput<'a> {
    ToSqlOutput::Borrowed(match *cell {
        Cell::Null => ValueRef::Null,
        Cell::Integer(number) => ValueRef::Integer(number),
        Cell::Real(number) => ValueRef::Real(number),
        Cell::Text(text) => ValueRef::Text(text),
        Cell::Blob(bytes) => ValueRef::Blob(bytes),
    })
}

fn cell<'a>(row: &'a Row<'_>, index: usize) -> rusqlite::Result<Cell<'a>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => Cell::Text(text),
        ValueRef::Blob(bytes) => Cell::Blob(bytes),
    })
}

fn bytes<'a>(cell: Cell<'a>) -> &'a [u8] {
    match cell {
        Cell::Text(bytes) | Cell::Blob(bytes) => bytes,
        Cell::Null | Cell::Integer(_) | Cell::Real(_) => &[],
    }
}

fn text(cell: Cell<'_>) -> Option<String> {
    (cell != Cell::Null).then(|| String::from_utf8_lossy(bytes(cell)).into_owned())
}

fn integer(cell: Cell<'_>) -> u64 {
    if let Cell::Integer(number) = cell { count_of(number) } else { 0 }
}

/// The last row. A hash that somebody cut to pieces is chained on as nothing, which the check of its row then tells.
pub(super) fn head(file: &Connection) -> rusqlite::Result<Mark> {
    let sql = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1";
    let found = file.prepare_cached(sql)?.query_row([], |row| {
        let hash = bytes(cell(row, 1)?).try_into().unwrap_or([0; 32]);
        Ok(Mark { seq: count_of(row.get(0)?), hash: Hash(hash) })
    });
    Ok(found.optional()?.unwrap_or_else(Mark::origin))
}

/// A row as it can be shown, whatever was done to it.
fn row_of(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    let at = |index| cell(row, index);
    let hexadecimal = |cell: Cell<'_>| bytes(cell).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let digest = at(8)?;
    Ok(AuditRow {
        seq: integer(at(SEQ)?),
        at: Timestamp::from_ms(integer(at(0)?)),
        kind: text(at(1)?).unwrap_or_default(),
        actor: text(at(2)?).unwrap_or_default(),
        target: text(at(3)?),
        outcome: text(at(4)?).unwrap_or_default(),
        code: text(at(5)?),
        reason: text(at(6)?),
        task_id: bytes(at(7)?).try_into().ok().map(TaskId::from_bytes),
        digest: (digest != Cell::Null).then(|| hexadecimal(digest)),
        count: integer(at(9)?),
        hash: hexadecimal(at(HASH)?),
    })
}

pub(super) fn list(file: &Connection, query: &AuditQuery) -> rusqlite::Result<Vec<AuditRow>> {
    let order = if query.is_newest_first { "DESC" } else { "ASC" };
    let sql = format!("SELECT {COLUMNS} FROM audit WHERE seq > ?1 AND seq < ?2 ORDER BY seq {order}");
    let mut statement = file.prepare_cached(&sql)?;
    let before = query.before.map_or(i64::MAX, number);
    let rows = statement.query_map(params![number(query.after), before], row_of)?;
    let fits = |row: &rusqlite::Result<AuditRow>| row.as_ref().map_or(true, |row| query.fits(row));
    rows.filter(fits).take(query.limit as usize).collect()
}

/// Goes on with a verification. A file that cannot be read any further is what it finds.
pub(super) fn check(file: &Connection, mut verifier: Verifier, limit: u32) -> rusqlite::Result<(Verifier, bool)> {
    match snapshot(file, |file| take_in(file, &mut verifier, limit)) {
        Ok(is_end) => Ok((verifier, is_end)),
        Err(error) if is_damage(&error) => {
            verifier.unreadable();
            Ok((verifier, true))
        }
        Err(error) => Err(error),
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase))
        || matches!(error, rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..))
}

fn take_in(file: &Connection, verifier: &mut Verifier, limit: u32) -> rusqlite::Result<bool> {
    let sql = format!("SELECT {COLUMNS} FROM audit WHERE seq > ?1 ORDER BY seq");
    let mut statement = file.prepare_cached(&sql)?;
    let mut rows = statement.query(params![number(verifier.good().seq)])?;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        // Where the right row went may lie anywhere after the bad one.
        if seen >= limit && !verifier.doubts() {
            return Ok(false);
        }
        seen += 1;
        let mut cells: Cells<'_> = [Cell::Null; SEQ];
        for (index, place) in cells.iter_mut().enumerate() {
            *place = cell(row, index)?;
        }
        verifier.push(&Link { seq: integer(cell(row, SEQ)?), cells, hash: bytes(cell(row, HASH)?) });
        if verifier.finding().is_some() {
            return Ok(true);
        }
    }
    verifier.finish(ever(file)?);
    Ok(true)
}

/// The highest number that was ever given out.
fn ever(file: &Connection) -> rusqlite::Result<u64> {
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'audit'";
    Ok(file.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?.map_or(0, count_of))
}

/// Keeps a checkpoint, unless one that covers as much is kept.
pub(super) fn pin(file: &Connection, checkpoint: &Checkpoint) -> rusqlite::Result<()> {
    let sql = "INSERT INTO audit_checkpoint (seq, hash, at, key, signature) SELECT ?1, ?2, ?3, ?4, ?5
               WHERE ?1 > (SELECT coalesce(max(seq), 0) FROM audit_checkpoint)";
    let Checkpoint { mark, at, key, signature } = checkpoint;
    file.prepare_cached(sql)?.execute(params![number(mark.seq), mark.hash.0, time(*at), key, &signature[..]])?;
    Ok(())
}

pub(super) fn checkpoints(file: &Connection, after: u64, limit: u32) -> rusqlite::Result<Vec<Checkpoint>> {
    let sql = "SELECT seq, hash, at, key, signature FROM audit_checkpoint WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    let mut statement = file.prepare_cached(sql)?;
    statement.query_map(params![number(after), limit], checkpoint_of)?.collect()
}

pub(super) fn checkpoint(file: &Connection) -> rusqlite::Result<Option<Checkpoint>> {
    let sql = "SELECT seq, hash, at, key, signature FROM audit_checkpoint ORDER BY seq DESC LIMIT 1";
    file.prepare_cached(sql)?.query_row([], checkpoint_of).optional()
}

/// A checkpoint, whatever was done to it: what is no key and no signature proves nothing, and is told as forged.
fn checkpoint_of(row: &Row<'_>) -> rusqlite::Result<Checkpoint> {
    let at = |index| cell(row, index);
    Ok(Checkpoint {
        mark: Mark { seq: integer(at(0)?), hash: Hash(bytes(at(1)?).try_into().unwrap_or([0; 32])) },
        at: time_of(if let Cell::Integer(ms) = at(2)? { ms } else { 0 }),
        key: bytes(at(3)?).try_into().unwrap_or([0; 32]),
        signature: bytes(at(4)?).try_into().unwrap_or([0; 64]),
    })
}

/// The audit log of a file that is opened for reading only, whether a gateway has it or not.
#[derive(Debug)]
pub struct AuditFile {
    path: std::path::PathBuf,
    file: Connection,
    layout: usize,
}

impl AuditFile {
    /// Opens the file. Nothing is written to it, nor to its layout.
    ///
    /// # Errors
    /// It cannot be read, or has no audit log.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let wrong = |error| failure(path, error);
        let file = Connection::open_with_flags(path, flags).map_err(wrong)?;
        file.busy_timeout(std::time::Duration::from_secs(2)).map_err(wrong)?;
        run_nothing(&file).map_err(wrong)?;
        let layout = identify(&file, path)?;
        if layout < FIRST_LAYOUT {
            let found = "a database without an audit log; start this gateway on it once".to_owned();
            return Err(Error::Foreign { path: path.to_owned(), found });
        }
        Ok(Self { path: path.to_owned(), file, layout })
    }

    /// As [`crate::store::AuditLog::audit_altered`].
    ///
    /// # Errors
    /// It cannot be read.
    pub fn altered(&self) -> Result<Altered, Error> {
        entries::altered(&self.file, self.layout).map_err(|error| failure(&self.path, error))
    }

    /// As [`crate::store::AuditLog::audit_check`].
    ///
    /// # Errors
    /// Somebody has the file locked.
    pub fn check(&self, verifier: Verifier, rows: u32) -> Result<(Verifier, bool), Error> {
        check(&self.file, verifier, rows).map_err(|error| failure(&self.path, error))
    }

    /// As [`crate::store::AuditLog::audit_checkpoints`].
    ///
    /// # Errors
    /// They cannot be read.
    pub fn checkpoints(&self, after: u64, limit: u32) -> Result<Vec<Checkpoint>, Error> {
        checkpoints(&self.file, after, limit).map_err(|error| failure(&self.path, error))
    }

    /// As [`crate::store::AuditLog::audit_list`].
    ///
    /// # Errors
    /// They cannot be read.
    pub fn list(&self, query: &AuditQuery) -> Result<Vec<AuditRow>, Error> {
        list(&self.file, query).map_err(|error| failure(&self.path, error))
    }

    /// How many rows there are, for whoever waits.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn head(&self) -> Result<Mark, Error> {
        head(&self.file).map_err(|error| failure(&self.path, error))
    }
}
