//! What a verification comes to, in the words of the wire; the same for a gateway that is asked and for a file that is read
//! without one.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reach_core::audit::{Checkpoint, Finding, Flaw, Mark, Verifier};
use reach_schemas::call::AuditVerified;
use reach_schemas::{AuditFinding, AuditMark};

use super::signer::holds;

/// Checkpoints, sorted out: what they pin, and the first whose signature does not hold.
#[derive(Debug, Default)]
pub struct Pins {
    marks: Vec<Mark>,
    forged: Option<u64>,
    keys: BTreeSet<[u8; 32]>,
}

impl Pins {
    /// Takes in a checkpoint of the store.
    pub fn add(&mut self, checkpoint: &Checkpoint) {
        if holds(checkpoint) {
            self.marks.push(checkpoint.mark);
            self.keys.insert(checkpoint.key);
        } else {
            let seq = checkpoint.mark.seq;
            self.forged = Some(self.forged.map_or(seq, |first| first.min(seq)));
        }
    }

    /// The places in the log that are pinned.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }
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

/// What a verification found; `is_end`: there are no more rows.
#[must_use]
pub fn verified(verifier: &Verifier, pins: &Pins, is_end: bool) -> AuditVerified {
    let good = verifier.good();
    let forged = pins.forged.map(|seq| Finding { seq, flaw: Flaw::Forged, other: None });
    // A forged checkpoint beyond what was looked at comes up later.
    let forged = forged.filter(|forged| is_end || forged.seq <= good.seq);
    let findings = [verifier.finding().cloned(), forged];
    let first = findings.into_iter().flatten().min_by_key(|finding| finding.seq);
    let is_whole = first.is_none();
    AuditVerified {
        is_whole,
        finding: first.map(|finding| AuditFinding {
            seq: finding.seq,
            flaw: finding.flaw,
            other: finding.other,
            message: finding.message(),
        }),
        rows: verifier.rows(),
        checkpoints: verifier.held(),
        head: mark_to_wire(&good),
        next: (is_whole && !is_end).then(|| mark_to_wire(&good)),
        keys: pins.keys.iter().map(|key| STANDARD.encode(key)).collect(),
    }
}
