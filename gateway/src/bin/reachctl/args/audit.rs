//! The flags of those who look into the audit log.

use std::path::PathBuf;

use agent_reach_sdk::schemas::{AuditKind, ErrorCode};
use agent_reach_sdk::{TaskId, Timestamp};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::dead_letters::{code, moment};
use super::limit;

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Show the newest rows, oldest first
    Tail {
        /// At most so many
        #[arg(long, short = 'n', default_value_t = 20, value_parser = limit())]
        limit: u32,
    },
    /// Find rows that fit every flag, newest first
    Search {
        #[command(flatten)]
        filter: AuditFilter,
        /// At most so many
        #[arg(long, default_value_t = 50, value_parser = limit())]
        limit: u32,
    },
    /// Check that nothing was changed, dropped, moved or cut off; exit code 1 if something was
    Verify {
        /// A checkpoint that was kept elsewhere, as `reachctl audit checkpoint --json` prints it; - for standard input
        #[arg(long, value_name = "FILE")]
        since: Option<String>,
        /// Read the database in this data folder, and ask no gateway
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Believe this key and no other: as `signed by` tells it, or a copy of the folder's audit-key.pub [default: the keys
        /// in the data folder]
        #[arg(long, value_name = "KEY|FILE", requires = "data")]
        key: Option<String>,
        /// Take it well that the newest rows are not signed, as after a gateway that was killed
        #[arg(long)]
        accept_unsigned: bool,
    },
    /// Write all rows to standard output, one JSON object a line
    Export {
        /// Begin after this row
        #[arg(long, value_name = "SEQ")]
        after: Option<u64>,
    },
    /// Have the gateway sign the log as it stands; keep what is printed elsewhere
    Checkpoint,
    /// Have the gateway sign a log again that is not as it was signed last, as after a backup was put back. It is written down in
    /// the log; what is before is vouched for by nobody
    Accept,
}

#[derive(Debug, Args)]
pub(crate) struct AuditFilter {
    /// What they tell, for example call.refused
    #[arg(long, value_parser = kind())]
    pub(crate) kind: Option<AuditKind>,
    /// Who did it; with a * at its end, whoever begins so
    #[arg(long)]
    pub(crate) actor: Option<String>,
    /// On whom or what; with a * at its end, whatever begins so
    #[arg(long)]
    pub(crate) target: Option<String>,
    /// How it went: OK, REJECT_ACL and so on
    #[arg(long)]
    pub(crate) outcome: Option<String>,
    /// The error, for example forbidden
    #[arg(long, value_parser = code())]
    pub(crate) code: Option<ErrorCode>,
    /// About this task
    #[arg(long)]
    pub(crate) task: Option<TaskId>,
    /// At this time or later: a time, or how long ago, such as 2h
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(crate) since: Option<Timestamp>,
    /// Before: a time, or how long ago
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub(crate) until: Option<Timestamp>,
}

/// Kinds by their words on the wire, which shells complete.
fn kind() -> impl TypedValueParser<Value = AuditKind> {
    let words = PossibleValuesParser::new(AuditKind::ALL.iter().map(|kind| kind.as_str()));
    words.try_map(|word| {
        let kind = AuditKind::ALL.iter().copied().find(|kind| kind.as_str() == word);
        kind.ok_or_else(|| format!("{word} is no kind"))
    })
}
