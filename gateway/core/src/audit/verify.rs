//! Verification: a fold over the rows in their order, which stops believing at the first that is bad and then says how it
//! is bad. What it takes to know that two rows were swapped lies further on, so rows are still taken in after that.

use std::collections::VecDeque;

use reach_schemas::{AuditFlaw, AuditKind};

use super::chain::{Cell, Cells, Hash, Mark, link};

/// Where a row has what it tells.
const KIND: usize = 1;

/// How the first bad row is bad.
pub type Flaw = AuditFlaw;

/// The first bad row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub seq: u64,
    /// How it is bad.
    pub flaw: Flaw,
    /// Another row that has to do with it: see [`reach_schemas::AuditFinding`].
    pub other: Option<u64>,
}

impl Finding {
    /// The same for people.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { seq, flaw, other } = self;
        let other = other.unwrap_or(*seq);
        match flaw {
            Flaw::Changed => format!("row {seq} is not what was written"),
            Flaw::Missing if other == *seq => format!("row {seq} is missing"),
            Flaw::Missing => format!("the rows {seq} to {other} are missing"),
            Flaw::Swapped => format!("in the place of row {seq} stands another; it stands at {other}"),
            Flaw::TailCut => format!("the log ends before row {seq}, and had the rows up to {other}"),
            Flaw::Rewritten if other == *seq => {
                format!("row {seq} was written anew: it is not the one that was signed")
            }
            Flaw::Rewritten => {
                format!(
                    "the log was written anew from row {seq} on or later: row {other} is not the one that was signed"
                )
            }
            Flaw::Unreadable => format!("the file cannot be read from row {seq} on"),
            Flaw::Forged => format!(
                "the checkpoint at row {seq} carries a signature that does not hold, or is not of the key that signs this log"
            ),
            Flaw::Unsigned => format!(
                "the rows {seq} to {other} are not signed, and should have been by now: what they say may have been written anew"
            ),
            Flaw::Unvouched => format!(
                "nothing tells where this log was signed last, and something should: its rows up to {other} may have been written anew"
            ),
            Flaw::Altered => {
                "the database is not laid out as the gateway does it: rows may be lost or hidden".to_owned()
            }
        }
    }
}

/// A row as it lies in the store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'a> {
    /// Its number.
    pub seq: u64,
    /// Its values.
    pub cells: Cells<'a>,
    /// Its hash; 32 bytes, unless somebody changed it.
    pub hash: &'a [u8],
}

/// A row that is not what it should be, while it is looked for where the right one went.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Suspect {
    before: Hash,
    stored: Option<Hash>,
}

/// A verification under way.
#[derive(Debug, Clone)]
pub struct Verifier {
    good: Mark,
    rows: u64,
    /// Marks that were signed, the first one first; those before the start are gone.
    pins: VecDeque<Mark>,
    held: u64,
    /// The last row of which a signed mark says that it is good.
    pinned: u64,
    suspect: Option<Suspect>,
    finding: Option<Finding>,
    accepted: Option<u64>,
    buffer: Vec<u8>,
}

impl Verifier {
    /// Begins after a row that is known to be good. `pins` are marks that were signed; their signatures are good.
    #[must_use]
    pub fn new(start: Mark, pins: impl IntoIterator<Item = Mark>) -> Self {
        let mut pins: Vec<Mark> = pins.into_iter().collect();
        pins.sort_by_key(|pin| (pin.seq, pin.hash));
        pins.dedup();
        let mut verifier = Self {
            good: start,
            rows: 0,
            pins: pins.into_iter().filter(|pin| pin.seq >= start.seq).collect(),
            held: 0,
            pinned: start.seq,
            suspect: None,
            finding: None,
            accepted: None,
            buffer: Vec::new(),
        };
        verifier.check_pins();
        verifier
    }

    /// Takes in the next row. Rows come in the order of their numbers, none of them twice.
    pub fn push(&mut self, row: &Row<'_>) {
        if self.finding.is_some() {
            return;
        }
        let stored = row.hash.try_into().map(Hash).ok();
        if self.suspect.is_some() {
            return self.seek(row, stored);
        }
        let expected = self.good.seq + 1;
        if row.seq != expected {
            let through = row.seq.saturating_sub(1).max(expected);
            return self.find(expected, Flaw::Missing, Some(through));
        }
        let hash = link(&self.good.hash, row.seq, &row.cells, &mut self.buffer);
        if stored != Some(hash) {
            self.suspect = Some(Suspect { before: self.good.hash, stored });
            return;
        }
        if row.cells[KIND] == Cell::Text(AuditKind::AuditAccepted.as_str().as_bytes()) {
            self.accepted = Some(row.seq);
        }
        self.good = Mark { seq: row.seq, hash };
        self.rows += 1;
        self.check_pins();
    }

    /// Whether this is the row that belongs in the place of the bad one: with its hash, or with the one that was left.
    fn seek(&mut self, row: &Row<'_>, stored: Option<Hash>) {
        let Some(suspect) = &self.suspect else { return };
        let seq = self.good.seq + 1;
        let hash = Some(link(&suspect.before, seq, &row.cells, &mut self.buffer));
        if hash == stored || hash == suspect.stored {
            self.find(seq, Flaw::Swapped, Some(row.seq));
        }
    }

    fn find(&mut self, seq: u64, flaw: Flaw, other: Option<u64>) {
        self.finding = Some(Finding { seq, flaw, other });
        self.suspect = None;
    }

    fn check_pins(&mut self) {
        while let Some(pin) = self.pins.front().filter(|pin| pin.seq <= self.good.seq).copied() {
            self.pins.pop_front();
            if pin.hash != self.good.hash {
                let first = (self.pinned + 1).min(pin.seq);
                return self.find(first, Flaw::Rewritten, Some(pin.seq));
            }
            self.pinned = pin.seq;
            self.held += 1;
        }
    }

    /// The store can read no further.
    pub fn unreadable(&mut self) {
        if self.finding.is_none() {
            self.find(self.good.seq + 1, Flaw::Unreadable, None);
        }
    }

    /// There are no more rows. `ever` is the highest number that was ever given out, as far as the store knows.
    pub fn finish(&mut self, ever: u64) {
        if self.finding.is_some() {
            return;
        }
        let next = self.good.seq + 1;
        if self.suspect.is_some() {
            return self.find(next, Flaw::Changed, None);
        }
        let ever = self.pins.back().map_or(ever, |pin| pin.seq.max(ever));
        if ever >= next {
            self.find(next, Flaw::TailCut, Some(ever));
        }
    }

    /// The first bad row. None: there is none so far.
    #[must_use]
    pub const fn finding(&self) -> Option<&Finding> {
        self.finding.as_ref()
    }

    /// Whether a row is bad, or looks so.
    #[must_use]
    pub const fn doubts(&self) -> bool {
        self.finding.is_some() || self.suspect.is_some()
    }

    /// After which row to go on: the last that was found good; while a bad one is looked into, the caller has to know.
    #[must_use]
    pub const fn good(&self) -> Mark {
        self.good
    }

    /// How many rows were found good.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// The last good row by which somebody accepted a log that was not as it was signed.
    #[must_use]
    pub const fn accepted(&self) -> Option<u64> {
        self.accepted
    }

    /// How many signed marks were found to hold.
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Event;
    use super::*;
    use proptest::prelude::*;
    use reach_schemas::Timestamp;

    #[derive(Debug, Clone)]
    struct Stored {
        seq: u64,
        event: Event,
        hash: Vec<u8>,
    }

    fn log(rows: u64) -> Vec<Stored> {
        let mut mark = Mark::origin();
        let row = |n: u64| {
            let event =
                Event::new(Timestamp::from_ms(n), AuditKind::AgentRegistered, "operator").on(format!("a{n}@ns"));
            mark = mark.next(&event.cells());
            Stored { seq: n, event, hash: mark.hash.0.to_vec() }
        };
        (1..=rows).map(row).collect()
    }

    fn mark(log: &[Stored], seq: u64) -> Mark {
        let row = &log[seq as usize - 1];
        Mark { seq, hash: Hash(row.hash.clone().try_into().unwrap()) }
    }

    fn verify(log: &[Stored], pins: &[Mark], ever: u64) -> Option<(u64, Flaw, Option<u64>)> {
        let mut verifier = Verifier::new(Mark::origin(), pins.iter().copied());
        for row in log {
            verifier.push(&Row { seq: row.seq, cells: row.event.cells(), hash: &row.hash });
        }
        verifier.finish(ever);
        verifier.finding().map(|found| (found.seq, found.flaw, found.other))
    }

    /// Chains a log anew, as somebody would who changed it and knows how.
    fn rechained(mut log: Vec<Stored>) -> Vec<Stored> {
        let mut mark = Mark::origin();
        for (n, row) in (1..).zip(&mut log) {
            mark = mark.next(&row.event.cells());
            (row.seq, row.hash) = (n, mark.hash.0.to_vec());
        }
        log
    }

    #[test]
    fn a_whole_log_is_whole() {
        let log = log(50);
        assert_eq!(verify(&log, &[mark(&log, 1), mark(&log, 20), mark(&log, 50)], 50), None);
        assert_eq!(verify(&[], &[], 0), None);
    }

    #[test]
    fn a_changed_row_is_named() {
        for seq in [1, 7, 10] {
            let mut log = log(10);
            log[seq - 1].event.actor.push('x');
            assert_eq!(verify(&log, &[], 10), Some((seq as u64, Flaw::Changed, None)));
        }
        let mut log = log(10);
        log[4].hash.pop();
        assert_eq!(verify(&log, &[], 10), Some((5, Flaw::Changed, None)));
    }

    #[test]
    fn missing_rows_are_named() {
        let mut log = log(10);
        log.drain(3..6);
        assert_eq!(verify(&log, &[], 10), Some((4, Flaw::Missing, Some(6))));
        log.remove(0);
        assert_eq!(verify(&log, &[], 10), Some((1, Flaw::Missing, Some(1))));
    }

    #[test]
    fn swapped_rows_are_named_with_or_without_their_hashes() {
        let mut whole = log(10);
        whole.swap(2, 7);
        whole[2].seq = 3;
        whole[7].seq = 8;
        assert_eq!(verify(&whole, &[], 10), Some((3, Flaw::Swapped, Some(8))));
        let mut content = log(10);
        let (third, fourth) = (content[2].event.clone(), content[3].event.clone());
        (content[2].event, content[3].event) = (fourth, third);
        assert_eq!(verify(&content, &[], 10), Some((3, Flaw::Swapped, Some(4))));
    }

    #[test]
    fn a_tail_that_was_cut_off_is_named_by_the_number_that_was_given_out_or_by_a_pin() {
        let log = log(10);
        assert_eq!(verify(&log[..6], &[], 10), Some((7, Flaw::TailCut, Some(10))));
        assert_eq!(verify(&log[..9], &[], 10), Some((10, Flaw::TailCut, Some(10))));
        assert_eq!(verify(&log[..6], &[mark(&log, 9)], 6), Some((7, Flaw::TailCut, Some(9))));
        assert_eq!(verify(&[], &[mark(&log, 9)], 0), Some((1, Flaw::TailCut, Some(9))));
        // Nobody can know of it.
        assert_eq!(verify(&log[..6], &[mark(&log, 6)], 6), None);
    }

    #[test]
    fn a_log_that_was_chained_anew_is_known_by_a_pin_only() {
        let first = log(10);
        let mut changed = first.clone();
        changed[6].event.actor = "nobody".to_owned();
        let changed = rechained(changed);
        assert_eq!(verify(&changed, &[], 10), None);
        assert_eq!(verify(&changed, &[mark(&first, 4), mark(&first, 9)], 10), Some((5, Flaw::Rewritten, Some(9))));
        assert_eq!(verify(&changed, &[mark(&first, 6)], 10), None);
    }

    #[test]
    fn the_last_row_that_accepts_what_is_before_it_is_told() {
        let mut log = log(6);
        (log[1].event.kind, log[3].event.kind) = (AuditKind::AuditAccepted, AuditKind::AuditAccepted);
        let mut verifier = Verifier::new(Mark::origin(), []);
        for row in rechained(log) {
            verifier.push(&Row { seq: row.seq, cells: row.event.cells(), hash: &row.hash });
        }
        assert_eq!((verifier.accepted(), verifier.finding()), (Some(4), None));
    }

    #[test]
    fn it_goes_on_from_a_mark_and_takes_no_pin_for_another_row() {
        let log = log(10);
        let mut verifier = Verifier::new(mark(&log, 4), [mark(&log, 2), mark(&log, 6)]);
        for row in &log[4..] {
            verifier.push(&Row { seq: row.seq, cells: row.event.cells(), hash: &row.hash });
        }
        verifier.finish(10);
        assert_eq!(
            (verifier.finding(), verifier.rows(), verifier.held(), verifier.good()),
            (None, 6, 1, mark(&log, 10))
        );
        let wrong = Mark { seq: 4, hash: Hash([1; 32]) };
        assert_eq!(Verifier::new(mark(&log, 4), [wrong]).finding().map(|found| found.flaw), Some(Flaw::Rewritten));
    }

    proptest! {
        #[test]
        fn whatever_is_done_to_a_log_the_first_bad_row_is_named(rows in 2_usize..30, at in 0_usize..29, other in 0_usize..29, how in 0..4) {
            let (at, other) = (at % rows, other % rows);
            let mut bad = log(rows as u64);
            match how {
                0 => bad[at].event.count += 1,
                1 => bad[at].hash[other] ^= 1,
                2 => drop(bad.remove(at)),
                _ => {
                    let (first, second) = (bad[at].event.clone(), bad[other].event.clone());
                    (bad[at].event, bad[other].event) = (second, first);
                }
            }
            let first = if how == 3 { at.min(other) } else { at };
            let expected = if how == 3 && at == other { None } else { Some(first as u64 + 1) };
            prop_assert_eq!(verify(&bad, &[], rows as u64).map(|found| found.0), expected);
        }
    }
}
