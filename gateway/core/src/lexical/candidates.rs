//! The documents worth a full look. Rare terms are scanned first; what only shares common terms with the intent is not
//! looked at once the rare ones have used up the allowance. Whoever keeps the wall is asked only about documents that
//! would take a place, best first: it may be dear to ask.

use std::cmp::Ordering;

use super::index::Posting;
use super::intent::Role;
use super::reading::{Probe, Reading};

/// Postings that a search scans for candidates; the rarest term is scanned whole in any case.
pub const SCANNED_MAX: usize = 12_000;
/// What is put aside still names the trade: it orders those whom nothing else tells apart.
pub(super) const ASIDE_ALONE: f32 = 0.02;
/// Each further round looks at so many times as many, where the wall held most of the last one back.
const MORE: usize = 4;

/// Memory that searches reuse. One a thread; it carries nothing from one search to the next.
#[derive(Debug)]
pub struct Scratch {
    sums: Vec<f32>,
    /// The first `met` are the slots with a sum. One longer than `sums`, so that the next can be written down before it
    /// is known whether it counts: a branch here would be as good as tossed.
    touched: Vec<u32>,
    met: usize,
    scanned_max: usize,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::with_scanned_max(SCANNED_MAX)
    }
}

impl Scratch {
    /// Scratch for searches that scan at most so many postings, in place of [`SCANNED_MAX`].
    pub fn with_scanned_max(scanned_max: usize) -> Self {
        Scratch { sums: Vec::new(), touched: Vec::new(), met: 0, scanned_max }
    }

    /// Forgets the last search, and makes room for so many slots.
    fn reset(&mut self, slots: usize) {
        for slot in &self.touched[..self.met] {
            self.sums[*slot as usize] = 0.0;
        }
        self.met = 0;
        let slots = slots.max(self.sums.len());
        self.sums.resize(slots, 0.0);
        self.touched.resize(slots + 1, 0);
    }

    fn touched(&self) -> &[u32] {
        &self.touched[..self.met]
    }

    fn add(&mut self, gain: f32, postings: &[Posting]) {
        for posting in postings {
            let sum = &mut self.sums[posting.slot as usize];
            self.touched[self.met] = posting.slot;
            self.met += usize::from(*sum == 0.0);
            *sum += gain * posting.impact;
        }
    }
}

/// A document that met some term.
#[derive(Clone, Copy)]
struct Candidate {
    sum: f32,
    doc: u32,
    slot: u32,
}

impl Candidate {
    /// The better first; equals stand by number of document.
    fn order(&self, other: &Self) -> Ordering {
        other.sum.total_cmp(&self.sum).then(self.doc.cmp(&other.doc))
    }
}

impl Reading<'_> {
    /// The slots of the `most` best that pass `keep`, best first.
    pub(super) fn candidates(&self, keep: impl Fn(u32) -> bool, most: usize, scratch: &mut Scratch) -> Vec<u32> {
        self.scan(scratch);
        let mut kept = Vec::with_capacity(most.min(scratch.touched().len()));
        let (mut last, mut round) = (None, 2 * most);
        loop {
            let best = self.best_after(last, round, scratch);
            let passed = best.iter().filter(|candidate| keep(candidate.doc)).map(|candidate| candidate.slot);
            kept.extend(passed.take(most - kept.len()));
            if kept.len() == most || best.len() < round {
                return kept;
            }
            last = best.last().copied();
            round *= MORE;
        }
    }

    fn scan(&self, scratch: &mut Scratch) {
        let mut lists: Vec<(f32, usize, &[Posting])> = Vec::with_capacity(self.probes.len());
        for group in self.probes.chunk_by(|a, b| a.id == b.id) {
            let factor = |probe: &Probe| match self.units[probe.unit].role {
                Role::Wanted | Role::Passed => 1.0,
                Role::Aside => ASIDE_ALONE,
            };
            let gain: f32 = group.iter().map(|probe| probe.gain * factor(probe)).sum();
            // A sum of nothing would be taken for one that is not there yet.
            if gain > 0.0 {
                lists.push((gain, group[0].unit, self.index.postings(group[0].id)));
            }
        }
        // No number of a term or a slot may decide: they depend on the index's past.
        lists.sort_by(|a, b| (a.2.len(), a.1).cmp(&(b.2.len(), b.1)).then(b.0.total_cmp(&a.0)));
        scratch.reset(self.index.slots_end());
        let mut scanned = 0;
        for (gain, _, postings) in lists {
            if scanned > 0 && scanned + postings.len() > scratch.scanned_max {
                break;
            }
            scanned += postings.len();
            scratch.add(gain, postings);
        }
    }

    /// The best `most` of those that come after `last`, best first.
    fn best_after(&self, last: Option<Candidate>, most: usize, scratch: &Scratch) -> Vec<Candidate> {
        let mut best: Vec<Candidate> = Vec::with_capacity(scratch.touched().len().min(2 * most));
        let mut bar: Option<Candidate> = None;
        let mut least = 0.0;
        for slot in scratch.touched() {
            let sum = scratch.sums[*slot as usize];
            if sum < least {
                continue;
            }
            let found = Candidate { sum, doc: self.index.doc(*slot), slot: *slot };
            let is_above = bar.is_none_or(|bar| found.order(&bar).is_lt());
            if is_above && last.is_none_or(|last| found.order(&last).is_gt()) {
                best.push(found);
            }
            if best.len() == 2 * most {
                best.select_nth_unstable_by(most - 1, Candidate::order);
                best.truncate(most);
                bar = best.last().copied();
                least = bar.map_or(0.0, |bar| bar.sum);
            }
        }
        best.sort_unstable_by(Candidate::order);
        best.truncate(most);
        best
    }
}
