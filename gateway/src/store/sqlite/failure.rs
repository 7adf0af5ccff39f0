//! What SQLite and the file system say, in the words of the store.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rusqlite::ErrorCode::{
    CannotOpen, DatabaseBusy, DatabaseCorrupt, DatabaseLocked, DiskFull, NotADatabase, PermissionDenied, ReadOnly,
};
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use rusqlite::types::Type;

use crate::store::Error;

/// Text in a row that is not what was written there.
#[derive(Debug)]
struct Unreadable {
    what: String,
    source: serde_json::Error,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be read", self.what)
    }
}

impl std::error::Error for Unreadable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// An error for a row whose text cannot be read.
pub(super) fn unreadable(what: impl Into<String>, source: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(Unreadable { what: what.into(), source }))
}

/// What an error of SQLite means for the store at `path`.
pub(super) fn failure(path: &Path, error: rusqlite::Error) -> Error {
    let path = path.to_owned();
    if let rusqlite::Error::FromSqlConversionFailure(_, _, what) = &error {
        return Error::Corrupt { path, what: what.to_string(), source: Arc::new(error) };
    }
    let Some(said) = error.sqlite_error() else {
        return Error::Unavailable { place: path.display().to_string(), source: Arc::new(error) };
    };
    let (code, extended) = (said.code, said.extended_code);
    // The index of the log lives in a file of its own; that it cannot grow says that the disk is full.
    if code == DiskFull || extended == SQLITE_IOERR_SHMSIZE {
        Error::Full { path }
    } else if code == DatabaseBusy || code == DatabaseLocked {
        Error::Locked { path, holder: None }
    } else if code == NotADatabase {
        Error::Foreign { path, found: "no SQLite database".to_owned() }
    } else if code == DatabaseCorrupt {
        Error::Corrupt { path, what: "SQLite finds it malformed".to_owned(), source: Arc::new(error) }
    } else if code == ReadOnly || code == PermissionDenied || (code == CannotOpen && !path.is_dir()) {
        Error::ReadOnly { path, source: Arc::new(error) }
    } else {
        Error::Unavailable { place: path.display().to_string(), source: Arc::new(error) }
    }
}

/// What an error of the file system means for the store at `path`.
pub(super) fn io_failure(path: &Path, error: io::Error) -> Error {
    let kind = error.kind();
    let path = path.to_owned();
    if kind == io::ErrorKind::StorageFull || kind == io::ErrorKind::QuotaExceeded {
        Error::Full { path }
    } else if kind == io::ErrorKind::PermissionDenied || kind == io::ErrorKind::ReadOnlyFilesystem {
        Error::ReadOnly { path, source: Arc::new(error) }
    } else {
        Error::Unavailable { place: path.display().to_string(), source: Arc::new(error) }
    }
}
