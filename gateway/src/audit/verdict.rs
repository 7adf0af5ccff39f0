//! What a verification comes to, in the words of the wire; the same for a gateway that is asked and for a file that is read
//! without one.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reach_core::audit::{Checkpoint, Finding, Flaw, Mark, Verifier};
use reach_schemas::call::AuditVerified;
use reach_schemas::{AuditFinding, AuditMark, Timestamp};

use super::{Settings, Trust};
use crate::store::Altered;

/// How many times what there may be unsigned at most there must be before that is a finding: the gateway signs when it looks,
/// and not before.
const LATE: u64 = 2;

/// Checkpoints, sorted out: what they pin, and the first that is of nobody who is believed.
#[derive(Debug)]
pub struct Pins {
    trust: Trust,
    marks: Vec<Mark>,
    forged: Option<u64>,
    keys: BTreeSet<[u8; 32]>,
}

impl Pins {
    /// None yet, of those who are believed.
    #[must_use]
    pub const fn new(trust: Trust) -> Self {
        Self { trust, marks: Vec::new(), forged: None, keys: BTreeSet::new() }
    }

    /// Takes in a checkpoint of the store.
    pub fn add(&mut self, checkpoint: &Checkpoint) {
        if self.trust.believes(checkpoint) {
            self.keep(checkpoint);
        } else {
            let seq = checkpoint.mark.seq;
            self.forged = Some(self.forged.map_or(seq, |first| first.min(seq)));
        }
    }

    /// Takes in one that was kept where nobody who wrote the store could reach it, and whose signature holds.
    pub fn keep(&mut self, checkpoint: &Checkpoint) {
        self.marks.push(checkpoint.mark);
        self.keys.insert(checkpoint.key);
    }

    /// Takes in a place that was signed, as the file with what signs tells it. That nothing was signed yet pins nothing.
    pub fn keep_mark(&mut self, mark: &Mark) {
        if mark.seq > 0 {
            self.marks.push(*mark);
        }
    }

    /// The places in the log that are pinned.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The last row that is pinned. 0: none is.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.marks.iter().map(|mark| mark.seq).max().unwrap_or(0)
    }
}

/// Whether the end of a log should have been signed and was not. `signed`: the last row that was. `next_at`: when the one
/// after it was written.
#[must_use]
pub fn unsigned(head: u64, signed: u64, next_at: Timestamp, now: Timestamp, settings: &Settings) -> Option<Finding> {
    let rows = head.saturating_sub(signed);
    let is_late = now.since(next_at).as_ms() > LATE * settings.checkpoint_every.as_ms();
    let is_wanted = rows > 0 && (rows > LATE * settings.checkpoint_rows || is_late);
    is_wanted.then_some(Finding { seq: signed + 1, flaw: Flaw::Unsigned, other: Some(head) })
}

/// A place as it is sent.
#[must_use]
pub fn mark_to_wire(mark: &Mark) -> AuditMark {
    AuditMark { seq: mark.seq, hash: mark.hash.to_string() }
}

/// A place as it was sent. None: its hash is none.
#[must_use]
pub fn mark_of_wire(mark: &AuditMark) -> Option<Mark> {
    Some(Mark { seq: mark.seq, hash: mark.hash.parse().ok()? })
}

/// A finding as it is sent.
#[must_use]
pub fn told(finding: &Finding) -> AuditFinding {
    let Finding { seq, flaw, other } = *finding;
    AuditFinding { seq, flaw, other, message: finding.message() }
}

/// What is not laid out as the gateway does it. None: all is.
#[must_use]
pub fn altered(altered: &Altered) -> Option<AuditFinding> {
    let finding = Finding { seq: 0, flaw: Flaw::Altered, other: None };
    let message = format!("{}: {}", finding.message(), altered.what.join("; "));
    (!altered.what.is_empty()).then(|| AuditFinding { message, ..told(&finding) })
}

/// What a verification found; `is_end`: there are no more rows. `rest` is what is said if no row and no checkpoint is bad.
#[must_use]
pub fn verified(verifier: &Verifier, pins: &Pins, is_end: bool, rest: Option<AuditFinding>) -> AuditVerified {
    let good = verifier.good();
    let forged = pins.forged.map(|seq| Finding { seq, flaw: Flaw::Forged, other: None });
    // A forged checkpoint beyond what was looked at comes up later.
    let forged = forged.filter(|forged| is_end || forged.seq <= good.seq);
    let findings = [verifier.finding().cloned(), forged];
    let first = findings.iter().flatten().min_by_key(|finding| finding.seq).map(told).or(rest);
    let is_whole = first.is_none();
    AuditVerified {
        is_whole,
        finding: first,
        rows: verifier.rows(),
        checkpoints: verifier.held(),
        head: mark_to_wire(&good),
        next: (is_whole && !is_end).then(|| mark_to_wire(&good)),
        keys: pins.keys.iter().map(|key| STANDARD.encode(key)).collect(),
        accepted: verifier.accepted(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_unsigned_when_it_is_long_or_old() {
        let settings = Settings::default();
        let at = |mins: u64| Timestamp::from_ms(mins * 60_000);
        let told = |head: u64, signed: u64, age: u64| {
            unsigned(head, signed, at(100), at(100 + age), &settings).map(|found| (found.seq, found.other))
        };
        assert_eq!(told(2000, 0, 0), None);
        assert_eq!(told(2001, 0, 0), Some((1, Some(2001))));
        assert_eq!(told(5001, 3001, 10), None);
        assert_eq!(told(5001, 3001, 11), Some((3002, Some(5001))));
        assert_eq!(told(5001, 5001, 1000), None, "there is nothing to sign");
    }
}
