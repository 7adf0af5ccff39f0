//! Why a store could not do what it was asked: what is wrong, where, and what to do.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::sync::Arc;

use reach_schemas::ErrorCode;

/// What the layer below said. Shared, because all commands of a batch get the same error.
pub type Cause = Arc<dyn StdError + Send + Sync>;

/// Why a store did not do what it was asked. Nothing of it has happened, and what was acknowledged before is kept.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// So many commands wait that another one would not be served in time.
    #[error("the store is busy: {waiting_max} commands wait already; try again shortly")]
    Busy {
        /// How many may wait.
        waiting_max: usize,
    },
    /// There is no room.
    #[error(
        "the disk of the store {} is full: make room there, or keep finished tasks for a shorter time; no restart is needed",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else has the file.
    #[error(
        "the store {} is in use by {}: two gateways must not share one file; stop the other one or name another data directory",
        path.display(),
        holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Locked {
        /// The file.
        path: PathBuf,
        /// The process that holds it, if it is known.
        holder: Option<u32>,
    },
    /// The file is something else.
    #[error(
        "{} is not a store of Agent-Reach but {found}: name another data directory, or put back the right file from a backup; it was left as it is",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// The file was written by a newer gateway.
    #[error(
        "the store {} has layout {found}, this gateway knows layouts up to {known}: start the newer gateway again, or put back a backup from before the upgrade; it was left as it is",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: u32,
        /// The newest that we know.
        known: u32,
    },
    /// Somebody put something into the file that is none of ours, or took something out.
    #[error(
        "the store {file} was altered: {what}; what is written to it may be lost unseen: keep a copy, find out who did it, and take it out (sqlite3 {file} 'DROP TRIGGER NAME', or VIEW, or INDEX) or put back a backup; it was left as it is",
        file = path.display()
    )]
    Altered {
        /// The file.
        path: PathBuf,
        /// What of it.
        what: String,
    },
    /// The file is damaged.
    #[error("the store {} is damaged ({what}): stop the gateway, keep the file, and put back a backup", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What of it.
        what: String,
        /// What the layer below said.
        source: Cause,
    },
    /// We may not write.
    #[error("the store {} cannot be written: give the gateway's user the right to write the file and its directory", path.display())]
    ReadOnly {
        /// The file or directory.
        path: PathBuf,
        /// What the layer below said.
        source: Cause,
    },
    /// Anything else below us failed.
    #[error("the store {place} does not work: look at the disk and the log, then try again")]
    Unavailable {
        /// Which store: its file.
        place: String,
        /// What the layer below said.
        source: Cause,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

impl Error {
    /// The code that a caller sees.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Busy { .. } => ErrorCode::Overloaded,
            Self::Full { .. } => ErrorCode::StoreFull,
            Self::Closed => ErrorCode::ShuttingDown,
            Self::Locked { .. }
            | Self::Foreign { .. }
            | Self::Newer { .. }
            | Self::Altered { .. }
            | Self::Corrupt { .. }
            | Self::ReadOnly { .. }
            | Self::Unavailable { .. } => ErrorCode::StoreUnavailable,
        }
    }
}
