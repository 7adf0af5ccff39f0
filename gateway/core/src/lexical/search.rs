//! Finds the best documents of an intent: the candidates are scored in full, with their exclusions.

use std::sync::Arc;

use super::candidates::{ASIDE_ALONE, Scratch};
use super::index::{Entry, Index};
use super::intent::{Intent, Role, Wanted};
use super::reading::{Reading, Terms};
use super::verdict::{Evidence, fill_leads};

/// A document that answers an intent.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// The document's number.
    pub doc: u32,
    /// The score that decides the order; it means nothing across intents.
    pub score: f64,
    /// How likely this is the right one, 0 to 1; comparable across intents.
    pub similarity: f64,
    /// The part of the score (0 to 1) that its exclusions took away.
    pub exclusion_penalty: f64,
    /// What the similarity was made from.
    pub evidence: Evidence,
}

/// A word of the intent that a document met.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchedTerm {
    /// As the intent has it, stemmed.
    pub text: Arc<str>,
    /// Its part of the score; negative for what the intent puts aside.
    pub score: f64,
}

/// How many words explain a match.
pub const TERMS_MAX: usize = 8;
/// Candidates that are scored in full.
const CANDIDATES_MIN: usize = 32;
/// A gain that counts as a word met; a weak word or a mere resemblance stays below.
const MET: f32 = 0.8;

struct Scored {
    doc: u32,
    evidence: Evidence,
    penalty: f32,
}

impl Index {
    /// Reads an intent and searches for it once: see [`Reading::search`].
    pub fn search(
        &self,
        intent: &Intent<'_>,
        keep: impl Fn(u32) -> bool,
        k: usize,
        scratch: &mut Scratch,
    ) -> Vec<Match> {
        self.read(intent).search(keep, k, scratch)
    }
}

impl Reading<'_> {
    /// The `k` best documents that pass `keep`, best first; equals stand by number. `keep` is
    /// the wall: what does not pass takes no place among the candidates.
    pub fn search(&self, keep: impl Fn(u32) -> bool, k: usize, scratch: &mut Scratch) -> Vec<Match> {
        let slots = self.candidates(keep, k.max(CANDIDATES_MIN), scratch);
        let mut best = vec![0.0; self.units.len()];
        let mut scored: Vec<Scored> = Vec::with_capacity(slots.len());
        for entry in slots.into_iter().filter_map(|slot| self.index.entry(slot)) {
            self.weigh(entry, &mut best);
            scored.extend(self.judge(entry, &best));
        }
        scored.sort_unstable_by(|a, b| b.evidence.score.total_cmp(&a.evidence.score).then(a.doc.cmp(&b.doc)));
        // The second is needed to say how far the first leads.
        scored.truncate(k.max(2));
        fill_leads(&mut scored, |scored| &mut scored.evidence);
        scored.truncate(k);
        let matches = scored.into_iter().map(|scored| Match {
            doc: scored.doc,
            score: f64::from(scored.evidence.score),
            similarity: scored.evidence.similarity(),
            exclusion_penalty: f64::from(scored.penalty),
            evidence: scored.evidence,
        });
        matches.collect()
    }

    /// The words that counted most for a document, best first, at most [`TERMS_MAX`].
    pub fn explain(&self, doc: u32) -> Vec<MatchedTerm> {
        let Some(entry) = self.index.slot(doc).and_then(|slot| self.index.entry(slot)) else { return Vec::new() };
        let mut best = vec![0.0; self.units.len()];
        self.weigh(entry, &mut best);
        let mut terms: Vec<(f32, &Wanted)> =
            best.into_iter().zip(&self.units).filter(|(gain, _)| *gain > 0.0).collect();
        terms.sort_by(|a, b| b.0.total_cmp(&a.0));
        terms.truncate(TERMS_MAX);
        let shown = terms.into_iter().map(|(gain, wanted)| {
            let factor = if wanted.role == Role::Aside { self.index.tuning.aside } else { 1.0 };
            MatchedTerm { text: wanted.unit.text.clone(), score: f64::from(gain * factor) }
        });
        shown.collect()
    }

    /// The best gain of each unit on one document: both lists of terms are sorted.
    fn weigh(&self, entry: &Entry, best: &mut [f32]) {
        best.fill(0.0);
        let mut terms = entry.terms.iter();
        let mut current = terms.next();
        for probe in &self.probes {
            while current.is_some_and(|(id, _)| *id < probe.id) {
                current = terms.next();
            }
            let Some((id, impact)) = current else { break };
            if *id == probe.id {
                best[probe.unit] = best[probe.unit].max(probe.gain * impact);
            }
        }
    }

    fn judge(&self, entry: &Entry, best: &[f32]) -> Option<Scored> {
        let tuning = &self.index.tuning;
        let (mut wanted, mut aside, mut passed, mut named, mut met) = (0.0, 0.0, 0.0, 0, 0.0);
        for (unit, best) in self.units.iter().zip(best) {
            match unit.role {
                Role::Wanted => {
                    wanted += best;
                    met += if *best >= MET { 1.0 } else { 0.0 };
                }
                Role::Aside => aside += best,
                Role::Passed => {
                    passed += best;
                    named += usize::from(*best > 0.0);
                }
            }
        }
        let (excluded, agreed) = (entry.excludes(&self.wanted), entry.excludes(&self.aside));
        let penalty = tuning.exclusion * excluded;
        let offered = (wanted + tuning.aside * aside).max(0.05 * wanted) + passed + ASIDE_ALONE * aside;
        let score = offered * (1.0 - penalty) * (1.0 + tuning.agreed * agreed);
        let shape =
            if self.passed > 0 { named as f32 / self.passed.max(usize::from(entry.parameters)) as f32 } else { 0.0 };
        let coverage = if self.whole > 0.0 { (wanted / self.whole).min(1.0) } else { 0.0 };
        let evidence = Evidence { score, wanted, met, coverage, shape, excluded, agreed, lead: 0.0 };
        (score > 0.0).then_some(Scored { doc: entry.doc, evidence, penalty })
    }
}

impl Entry {
    /// The greatest share of one of its exclusions that these terms meet.
    fn excludes(&self, terms: &Terms) -> f32 {
        if terms.is_empty() {
            return 0.0;
        }
        self.exclusions.iter().map(|exclusion| exclusion.share(|term| terms.hold(term))).fold(0.0, f32::max)
    }
}
