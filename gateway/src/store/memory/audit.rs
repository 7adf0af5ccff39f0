//! The audit log in memory: the newest rows, chained as everywhere. It does not outlive the process, so there is nothing to
//! keep anybody from changing.

use std::collections::VecDeque;

use reach_core::audit::verify::Row;
use reach_core::audit::{Checkpoint, Event, Mark, Verifier};
use reach_schemas::AuditRow;

use crate::store::AuditQuery;
use crate::store::audit::row_of;

/// How many rows are kept; with more, the oldest go, and with them the checkpoints of them.
const ROWS_MAX: usize = 100_000;

#[derive(Debug)]
pub(super) struct Log {
    rows: VecDeque<(Mark, Event)>,
    /// The last row that is not kept any more.
    floor: Mark,
    checkpoints: Vec<Checkpoint>,
}

impl Default for Log {
    fn default() -> Self {
        Self { rows: VecDeque::new(), floor: Mark::origin(), checkpoints: Vec::new() }
    }
}

impl Log {
    pub(super) fn append(&mut self, events: Vec<Event>) {
        for event in events {
            let mark = self.head().next(&event.cells());
            self.rows.push_back((mark, event));
        }
        while self.rows.len() > ROWS_MAX {
            self.floor = self.rows.pop_front().map_or(self.floor, |(mark, _)| mark);
        }
        self.checkpoints.retain(|checkpoint| checkpoint.mark.seq > self.floor.seq || self.floor.seq == 0);
    }

    pub(super) fn pin(&mut self, checkpoint: Checkpoint) {
        if self.checkpoints.last().is_none_or(|last| last.mark.seq < checkpoint.mark.seq) {
            self.checkpoints.push(checkpoint);
        }
    }

    pub(super) fn head(&self) -> Mark {
        self.rows.back().map_or(self.floor, |(mark, _)| *mark)
    }

    pub(super) fn list(&self, query: &AuditQuery) -> Vec<AuditRow> {
        let is_within = |seq: u64| seq > query.after && query.before.is_none_or(|before| seq < before);
        let rows = self.rows.iter().filter(|(mark, _)| is_within(mark.seq)).map(|(mark, event)| row_of(event, mark));
        let rows = rows.filter(|row| query.fits(row));
        let limit = query.limit as usize;
        if query.is_newest_first { rows.rev().take(limit).collect() } else { rows.take(limit).collect() }
    }

    pub(super) fn check(&self, mut verifier: Verifier, limit: u32) -> (Verifier, bool) {
        if verifier.good().seq < self.floor.seq {
            let pins = self.checkpoints.iter().map(|checkpoint| checkpoint.mark);
            verifier = Verifier::new(self.floor, pins);
        }
        let mut rows =
            self.rows.iter().filter(|(mark, _)| mark.seq > verifier.good().seq).collect::<Vec<_>>().into_iter();
        for (mark, event) in rows.by_ref().take(limit as usize) {
            verifier.push(&Row { seq: mark.seq, cells: event.cells(), hash: &mark.hash.0 });
        }
        let is_end = rows.next().is_none();
        if is_end {
            verifier.finish(self.head().seq);
        }
        (verifier, is_end)
    }

    pub(super) fn checkpoints(&self, after: u64, limit: u32) -> Vec<Checkpoint> {
        let later = self.checkpoints.iter().filter(|checkpoint| checkpoint.mark.seq > after);
        later.take(limit as usize).cloned().collect()
    }

    pub(super) fn checkpoint(&self) -> Option<Checkpoint> {
        self.checkpoints.last().cloned()
    }
}
