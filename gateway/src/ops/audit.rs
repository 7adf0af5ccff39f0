//! The audit log: what is written down in it from here, and what the operator asks of it.

use reach_core::access::Grant;
use reach_core::audit::{Event, Finding, Mark, Verifier};
use reach_schemas::call::{
    AUDIT_SEARCH_ROWS, AUDIT_VERIFY_ROWS, AuditExport, AuditRows, AuditSearch, AuditTail, AuditVerified, AuditVerify,
    LIST_MAX,
};
use reach_schemas::error::Fault;
use reach_schemas::{AuditKind, ErrorCode, Failure};

use super::bounds;
use crate::audit::{self, Doubt, Pins, mark_of_wire, mark_to_wire, unvouched};
use crate::gateway::Gateway;
use crate::store::{AuditQuery, Command, Error};

/// How many rows are shown if the caller does not say.
const TAIL: u32 = 20;
const SEARCH: u32 = 50;
/// How many rows are checked before others may read.
const CHUNK: u32 = 5_000;
/// How many checkpoints are read at a time.
const CHECKPOINTS: u32 = 1_000;

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::InvalidParams, message)
}

/// Whether an error is a refusal of a call, and no fault of the gateway's.
fn is_refusal(code: ErrorCode) -> bool {
    code.fault() != Fault::Gateway || code == ErrorCode::Overloaded
}

impl Gateway {
    /// An event of now.
    pub(crate) fn audit_event(&self, kind: AuditKind, actor: impl Into<String>) -> Event {
        Event::new(self.now(), kind, actor)
    }

    /// Writes down that a call was refused, soon; of many alike, how many. What the caller sent is not written down, and of
    /// the refusal its name only, except where the words are the gateway's own about names that it knows.
    pub fn refused(&self, actor: impl Into<String>, target: &str, code: ErrorCode, message: &str) {
        if !is_refusal(code) {
            return;
        }
        let event = self.audit_event(AuditKind::CallRefused, actor).on(target).failed(code);
        let is_ours = code == ErrorCode::Forbidden;
        self.audit.note_often(if is_ours { event.because(message) } else { event });
    }

    /// Writes down what waits for it.
    ///
    /// # Errors
    /// It cannot be stored, and goes on waiting.
    pub(crate) async fn write_audit(&self, events: Vec<Event>) -> Result<(), Error> {
        if events.is_empty() {
            return Ok(());
        }
        let written = self.committer.submit(Command::Audit(events.clone())).await;
        if written.is_err() {
            self.audit.put_back(events);
        }
        written.map(drop)
    }

    /// The newest rows, oldest first.
    ///
    /// # Errors
    /// More are asked for than one list holds, or the store cannot be read.
    pub async fn audit_tail(&self, _grant: Grant, request: AuditTail) -> Result<AuditRows, Failure> {
        let limit = bounds::limit(request.limit, TAIL)?;
        let head = self.store.audit_head().await?;
        let after = head.seq.saturating_sub(limit.into());
        let query = AuditQuery { after, before: Some(head.seq + 1), limit, ..AuditQuery::default() };
        Ok(AuditRows { rows: self.store.audit_list(query).await?, head: mark_to_wire(&head), next: None })
    }

    /// Rows that fit, newest first. One call looks at a bounded part of the log and says where to go on.
    ///
    /// # Errors
    /// More are asked for than one list holds, or the store cannot be read.
    pub async fn audit_search(&self, _grant: Grant, request: AuditSearch) -> Result<AuditRows, Failure> {
        let limit = bounds::limit(request.limit, SEARCH)?;
        let head = self.store.audit_head().await?;
        let before = request.before.unwrap_or(head.seq + 1).min(head.seq + 1);
        let after = before.saturating_sub(AUDIT_SEARCH_ROWS + 1);
        let AuditSearch { kind, actor, target, outcome, code, task_id, since, until, .. } = request;
        let query = AuditQuery {
            after,
            before: Some(before),
            is_newest_first: true,
            kind: kind.map(AuditKind::as_str),
            actor,
            target,
            outcome,
            code,
            task_id,
            since,
            until,
            limit,
        };
        let rows = self.store.audit_list(query).await?;
        let is_cut = rows.len() >= limit as usize;
        let last = if is_cut { rows.last().map_or(0, |row| row.seq) } else { after + 1 };
        Ok(AuditRows { rows, head: mark_to_wire(&head), next: (last > 1).then_some(last) })
    }

    /// All rows in their order, a page at a time.
    ///
    /// # Errors
    /// More are asked for than one page holds, or the store cannot be read.
    pub async fn audit_export(&self, _grant: Grant, request: AuditExport) -> Result<AuditRows, Failure> {
        let limit = bounds::limit(request.limit, LIST_MAX)?;
        let head = self.store.audit_head().await?;
        let query = AuditQuery { after: request.after.unwrap_or(0), limit, ..AuditQuery::default() };
        let rows = self.store.audit_list(query).await?;
        let next = rows.last().map(|row| row.seq).filter(|_| rows.len() >= limit as usize);
        Ok(AuditRows { rows, head: mark_to_wire(&head), next })
    }

    /// Whether the log is what was written: of so many rows, and where to go on.
    ///
    /// # Errors
    /// The checkpoint or the place to go on from are none, or the store cannot be read.
    pub async fn audit_verify(&self, _grant: Grant, request: AuditVerify) -> Result<AuditVerified, Failure> {
        let limit = request.limit.unwrap_or(AUDIT_VERIFY_ROWS);
        bounds::count("limit", limit, AUDIT_VERIFY_ROWS)?;
        let start = match &request.from {
            None => Mark::origin(),
            Some(from) => mark_of_wire(from).ok_or_else(|| invalid("`from.hash` is not 64 hexadecimal digits"))?,
        };
        let altered = self.store.audit_altered().await?;
        let mut pins = self.audit_pins(start.seq).await?;
        if let Some(since) = &request.since {
            pins.keep(&audit::of_wire(since).map_err(|no| invalid(format!("since: {no}")))?);
        }
        let mut verifier = Verifier::new(start, pins.marks().iter().copied());
        if !altered.is_readable {
            return Ok(audit::verified(&verifier, &pins, true, audit::altered(&altered)));
        }
        loop {
            let left = u64::from(limit).saturating_sub(verifier.rows());
            let chunk = u32::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let (next, is_end) = self.store.audit_check(verifier, chunk).await?;
            verifier = next;
            if is_end || verifier.rows() >= limit.into() {
                let unsigned = if is_end { self.audit_unsigned(&verifier, &pins).await? } else { None };
                let rest = audit::altered(&altered).or(unsigned.as_ref().map(audit::told));
                return Ok(audit::verified(&verifier, &pins, is_end, rest));
            }
        }
    }

    /// What is signed after a row: by a key of this gateway, for that of any other proves nothing.
    async fn audit_pins(&self, mut after: u64) -> Result<Pins, Error> {
        let beside = self.settings().audit.beside.clone();
        let mut pins = Pins::new(beside.as_ref().map(|beside| beside.trust.clone()).unwrap_or_default());
        if let Some(beside) = beside {
            beside.pin().iter().for_each(|last| pins.keep(last));
            beside.signed().iter().for_each(|last| pins.keep_mark(last));
        }
        loop {
            let page = self.store.audit_checkpoints(after, CHECKPOINTS).await?;
            let Some(last) = page.last() else { return Ok(pins) };
            after = last.mark.seq;
            page.iter().for_each(|checkpoint| pins.add(checkpoint));
        }
    }

    /// Whether the end of the log should have been signed, where anybody signs; or nothing tells where it was signed last.
    async fn audit_unsigned(&self, verifier: &Verifier, pins: &Pins) -> Result<Option<Finding>, Error> {
        let settings = self.settings().audit.clone();
        let signed = pins.last();
        if self.audit_doubt().await? == Some(Doubt::Untold) {
            return Ok(Some(unvouched(verifier.good().seq)));
        }
        let next = AuditQuery { after: signed, limit: 1, ..AuditQuery::default() };
        let next = self.store.audit_list(next).await?;
        let Some(next) = next.first().filter(|_| settings.signer.is_some()) else { return Ok(None) };
        Ok(audit::unsigned(verifier.good().seq, signed, next.at, self.now(), &settings))
    }
}
