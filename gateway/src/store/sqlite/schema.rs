//! From a path to a file that is ours, alone, and laid out as this gateway knows it; or why not.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::SqliteConfig;
use super::entries;
use super::failure::{failure, io_failure};
use crate::store::Error;

/// Says in the file's header whose it is: "AgRe".
const APPLICATION_ID: i32 = 0x4167_5265;
/// What each layout adds to the one before, the first one first. Only ever appended to.
pub(super) const LAYOUTS: [&str; 6] = [
    include_str!("layout_1.sql"),
    include_str!("layout_2.sql"),
    include_str!("layout_documents.sql"),
    include_str!("layout_audit.sql"),
    include_str!("layout_identity.sql"),
    include_str!("layout_agent.sql"),
];
/// How long to wait for a stranger, such as a shell, that has the file locked just now.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// How many pages of log are written before they are carried over into the file.
const CHECKPOINT_PAGES: u32 = 4000;
/// How much of the file the writer keeps in memory, in KiB.
const WRITER_CACHE_KIB: i64 = 16 * 1024;
/// How many statements each connection keeps prepared.
const STATEMENTS_MAX: usize = 64;

/// Proof that no other gateway has the file; the lock ends with it, and with the process.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Takes the lock that stands beside the store. It is not on the store itself, whose own locks SQLite handles.
pub(super) fn lock(path: &Path) -> Result<Lock, Error> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::create_dir_all(directory).map_err(|error| io_failure(directory, error))?;
    }
    let beside = lock_path(path);
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&beside);
    let mut file = opened.map_err(|error| io_failure(&beside, error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Error::Locked { path: path.to_owned(), holder: read_holder(&mut file) });
        }
        Err(TryLockError::Error(error)) => return Err(io_failure(&beside, error)),
    }
    // Who holds it is told to people only, so a failure to write it down is none of the store.
    let _ = write_holder(&mut file);
    Ok(Lock { _file: file })
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn read_holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// Opens the file for the writer, having made sure that it is ours, and brings it to the newest layout.
pub(super) fn open(config: &SqliteConfig) -> Result<Connection, Error> {
    let path = config.path.as_path();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let wrong = |error| failure(path, error);
    let mut connection = Connection::open_with_flags(path, flags).map_err(wrong)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(wrong)?;
    let layout = identify(&connection, path)?;
    if connection.is_readonly("main").map_err(wrong)? {
        return Err(Error::ReadOnly {
            path: path.to_owned(),
            source: Arc::new(io::Error::from(io::ErrorKind::PermissionDenied)),
        });
    }
    entries::hold(&connection, path, layout)?;
    prepare_writer(&connection, config).map_err(wrong)?;
    migrate(&mut connection, layout).map_err(wrong)?;
    Ok(connection)
}

/// Opens the file once more, for reading only.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    keep_plans(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Plans every statement once: without this, SQLite plans some of them again whenever their values change.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    run_nothing(connection)
}

/// Has nothing that stands in the file run or take the place of a table, also if somebody puts it in while the file is open. Our
/// own triggers are against others.
pub(super) fn run_nothing(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    Ok(())
}

/// The layout of the file, 0 if it is new. Reads only.
pub(super) fn identify(connection: &Connection, path: &Path) -> Result<usize, Error> {
    let wrong = |error| failure(path, error);
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i32>(0));
    let application = number("PRAGMA application_id").map_err(wrong)?;
    let tables = number("SELECT count(*) FROM sqlite_schema").map_err(wrong)?;
    if application == 0 && tables == 0 {
        return Ok(0);
    }
    if application != APPLICATION_ID {
        let found = format!("the SQLite database of another program (application id {application}, {tables} entries)");
        return Err(Error::Foreign { path: path.to_owned(), found });
    }
    let found = number("PRAGMA user_version").map_err(wrong)?;
    let layout = usize::try_from(found).unwrap_or_default();
    if layout > LAYOUTS.len() {
        let known = u32::try_from(LAYOUTS.len()).unwrap_or(u32::MAX);
        return Err(Error::Newer { path: path.to_owned(), found: found.unsigned_abs(), known });
    }
    Ok(layout)
}

fn prepare_writer(connection: &Connection, config: &SqliteConfig) -> rusqlite::Result<()> {
    keep_plans(connection)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    if let Some(bytes) = config.bytes_max {
        let page: u64 = connection.query_row("PRAGMA page_size", [], |row| row.get::<_, u32>(0))?.into();
        let pages = i64::try_from((bytes / page).max(1)).unwrap_or(i64::MAX);
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    Ok(())
}

/// Every layout is reached in one transaction, so a process that dies on the way leaves the layout before it.
fn migrate(connection: &mut Connection, from: usize) -> rusqlite::Result<()> {
    for (index, sql) in LAYOUTS.iter().enumerate().skip(from) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", index as i64 + 1)?;
        transaction.commit()?;
    }
    Ok(())
}
