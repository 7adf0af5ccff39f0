//! The audit log as a store keeps it: rows that are only ever added, in the commit of what they tell of, and the signed
//! checkpoints that pin them. The store chains the rows, because it alone knows their order; it judges nothing.

use reach_core::audit::{Checkpoint, Event, Mark, Verifier};
use reach_schemas::{AuditRow, ErrorCode, TaskId, Timestamp};

use super::Answer;

/// The reads of an audit log.
pub trait AuditLog {
    /// The last row. Before the first: [`Mark::origin`].
    fn audit_head(&self) -> Answer<'_, Mark>;

    /// Rows that fit the query.
    fn audit_list(&self, query: AuditQuery) -> Answer<'_, Vec<AuditRow>>;

    /// Goes on with a verification over at most so many rows, and says whether it came to the end; then it is finished.
    /// What the store cannot read is a finding, and no error.
    fn audit_check(&self, verifier: Verifier, rows: u32) -> Answer<'_, (Verifier, bool)>;

    /// Checkpoints of rows after this one, in their order.
    fn audit_checkpoints(&self, after: u64, limit: u32) -> Answer<'_, Vec<Checkpoint>>;

    /// The checkpoint that covers most.
    fn audit_checkpoint(&self) -> Answer<'_, Option<Checkpoint>>;

    /// What in the store is not laid out as it lays it out itself, so that rows may be lost or hidden while all that can be
    /// read are good.
    fn audit_altered(&self) -> Answer<'_, Altered>;
}

/// What in a store is not laid out as it lays it out itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Altered {
    /// Each thing, in words. Nothing: all is as it should be.
    pub what: Vec<String>,
    /// Whether the rows can be read all the same: every table is there.
    pub is_readable: bool,
}

impl Altered {
    /// All is as it should be.
    #[must_use]
    pub const fn none() -> Self {
        Self { what: Vec::new(), is_readable: true }
    }
}

/// Which rows of the audit log a list holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditQuery {
    /// Only rows after this one.
    pub after: u64,
    /// Only rows before this one. None: to the end.
    pub before: Option<u64>,
    /// Whether the newest come first.
    pub is_newest_first: bool,
    /// Only those of this kind.
    pub kind: Option<&'static str>,
    /// Only those of this actor; with a `*` at its end, of actors that begin so.
    pub actor: Option<String>,
    /// Only those on this target; likewise.
    pub target: Option<String>,
    /// Only those with this outcome word.
    pub outcome: Option<String>,
    /// Only those with this error.
    pub code: Option<ErrorCode>,
    /// Only those about this task.
    pub task_id: Option<TaskId>,
    /// Only those of this time or later.
    pub since: Option<Timestamp>,
    /// Only those before this time.
    pub until: Option<Timestamp>,
    /// At most so many.
    pub limit: u32,
}

impl AuditQuery {
    /// Whether a row fits, whatever its number.
    #[must_use]
    pub fn fits(&self, row: &AuditRow) -> bool {
        self.kind.is_none_or(|kind| row.kind == kind)
            && self.actor.as_ref().is_none_or(|wanted| is_like(wanted, &row.actor))
            && self.target.as_ref().is_none_or(|wanted| row.target.as_ref().is_some_and(|own| is_like(wanted, own)))
            && self.outcome.as_ref().is_none_or(|outcome| row.outcome == *outcome)
            && self.code.is_none_or(|code| row.code.as_deref() == Some(code.name()))
            && self.task_id.is_none_or(|id| row.task_id == Some(id))
            && self.since.is_none_or(|since| row.at >= since)
            && self.until.is_none_or(|until| row.at < until)
    }
}

/// Whether a name is the one that is wanted, or begins as wanted.
fn is_like(wanted: &str, name: &str) -> bool {
    wanted.strip_suffix('*').map_or(name == wanted, |beginning| name.starts_with(beginning))
}

/// An event as a row of the log.
pub(super) fn row_of(event: &Event, mark: &Mark) -> AuditRow {
    AuditRow {
        seq: mark.seq,
        at: event.at,
        kind: event.kind.as_str().to_owned(),
        actor: event.actor.clone(),
        target: event.target.clone(),
        outcome: event.outcome().to_owned(),
        code: event.code.map(|code| code.name().to_owned()),
        reason: event.reason.clone(),
        task_id: event.task_id,
        digest: event.digest.map(|digest| reach_core::audit::Hash(digest).to_string()),
        count: event.count,
        hash: mark.hash.to_string(),
    }
}
