//! Finds the best documents of an intent: rare terms name the candidates, and the candidates are
//! then scored in full, with their exclusions.

use std::sync::Arc;

use super::index::{Entry, Index};
use super::intent::{self, Intent, Role, Wanted};
use super::text;
use super::unit::{Alternative, Kind, SAME, Term, Unit};
use super::verdict::{Evidence, similarities};

/// A document that answers an intent.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// The document's number.
    pub doc: u32,
    /// The score that decides the order; it means nothing across intents.
    pub score: f64,
    /// How likely this is the right one, 0 to 1; comparable across intents.
    pub similarity: f64,
    /// The words that counted most, best first, at most [`TERMS_MAX`].
    pub terms: Vec<MatchedTerm>,
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
/// Postings that a search scans for candidates; the rarest term is scanned whole in any case.
pub const SCANNED_MAX: usize = 12_000;
/// Candidates that are scored in full.
const CANDIDATES_MIN: usize = 32;
/// A unit that no document knows counts as unmet with this share of a rare term's weight: names
/// of people and places are unknown as well, and mean no harm.
const UNKNOWN: f32 = 0.4;
/// A word that was mended is trusted less than one spelt well.
const MENDED: f32 = 0.7;
/// What is put aside still names the trade: it orders those whom nothing else tells apart.
const ASIDE_ALONE: f32 = 0.02;
/// A gain that counts as a word met; a weak word or a mere resemblance stays below.
const MET: f32 = 0.8;

/// Memory that searches reuse. One a thread; it carries nothing from one search to the next.
#[derive(Debug)]
pub struct Scratch {
    sums: Vec<f32>,
    touched: Vec<u32>,
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
        Scratch { sums: Vec::new(), touched: Vec::new(), scanned_max }
    }
}

/// A term of the intent that the index knows.
struct Probe {
    id: u32,
    unit: usize,
    /// The unit's weight, the alternative's strength and the term's rarity.
    gain: f32,
}

/// An intent as this index sees it.
struct Plan {
    units: Vec<Wanted>,
    /// Sorted by number of term.
    probes: Vec<Probe>,
    /// What full marks on all wanted units would be.
    whole: f32,
    passed: usize,
    wanted_terms: Vec<Term>,
    aside_terms: Vec<Term>,
}

struct Scored {
    doc: u32,
    slot: u32,
    score: f32,
    evidence: Evidence,
    penalty: f32,
}

impl Index {
    /// The `k` best documents that pass `keep`, best first; equals stand by number. `keep` is
    /// the wall: what does not pass takes no place among the candidates.
    pub fn search(
        &self,
        intent: &Intent<'_>,
        keep: impl Fn(u32) -> bool,
        k: usize,
        scratch: &mut Scratch,
    ) -> Vec<Match> {
        let plan = self.plan(intent);
        let slots = self.candidates(&plan, keep, k.max(CANDIDATES_MIN), scratch);
        let mut best = vec![0.0; plan.units.len()];
        let mut scored: Vec<Scored> = Vec::with_capacity(slots.len());
        for slot in slots {
            if let Some(entry) = self.entry(slot) {
                self.weigh(&plan, entry, &mut best);
                scored.extend(self.judge(&plan, slot, entry, &best));
            }
        }
        scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.doc.cmp(&b.doc)));
        let evidence: Vec<Evidence> = scored.iter().map(|scored| scored.evidence).collect();
        let similarities = similarities(&evidence);
        scored.truncate(k);
        let matches = scored.into_iter().zip(similarities).map(|(scored, (similarity, evidence))| Match {
            doc: scored.doc,
            score: f64::from(scored.score),
            similarity,
            terms: self.explain(&plan, scored.slot, &mut best),
            exclusion_penalty: f64::from(scored.penalty),
            evidence,
        });
        matches.collect()
    }

    fn plan(&self, intent: &Intent<'_>) -> Plan {
        let mut units = intent::read(intent, self.lexicon, &self.tuning);
        units.iter_mut().for_each(|wanted| self.mend(&mut wanted.unit));
        let mut probes = Vec::new();
        let mut whole = 0.0;
        let (mut wanted_terms, mut aside_terms) = (Vec::new(), Vec::new());
        for (at, Wanted { unit, role }) in units.iter().enumerate() {
            let mut full: f32 = 0.0;
            for alternative in &unit.alternatives {
                if let Some((id, postings)) = self.find(alternative.term) {
                    let gain = unit.weight * alternative.strength * self.rarity(postings.len());
                    full = full.max(gain);
                    probes.push(Probe { id, unit: at, gain });
                }
                if alternative.strength >= SAME {
                    match role {
                        Role::Wanted => wanted_terms.push(alternative.term),
                        Role::Aside => aside_terms.push(alternative.term),
                        Role::Passed => {}
                    }
                }
            }
            if *role == Role::Wanted {
                whole += if full > 0.0 { full } else { UNKNOWN * unit.weight * self.rarity(0) };
            }
        }
        probes.sort_by_key(|probe| (probe.id, probe.unit));
        wanted_terms.sort_unstable();
        aside_terms.sort_unstable();
        Plan { units, probes, whole, passed: intent.parameters.len(), wanted_terms, aside_terms }
    }

    /// Lets a word that nobody knows stand for the known words that it may be a slip for.
    fn mend(&self, unit: &mut Unit) {
        let Some(word) = &unit.unknown else { return };
        if unit.alternatives.iter().any(|alternative| self.find(alternative.term).is_some()) {
            return;
        }
        let known = self.spelling.suggest(word);
        let literal = known.iter().map(|known| Term::new(Kind::Literal, &text::stem(known)));
        let concepts = self.lexicon.respelt(word).into_iter().map(|concept| concept.term);
        let mended = literal.chain(concepts).map(|term| Alternative { term, strength: MENDED });
        unit.alternatives.extend(mended);
    }

    /// Slots worth a full look. Rare terms are scanned first; what only shares common terms with
    /// the intent is not looked at once the rare ones have used up the allowance.
    fn candidates(&self, plan: &Plan, keep: impl Fn(u32) -> bool, most: usize, scratch: &mut Scratch) -> Vec<u32> {
        let mut lists: Vec<(f32, usize, &[super::index::Posting])> = Vec::new();
        for group in plan.probes.chunk_by(|a, b| a.id == b.id) {
            let factor = |probe: &Probe| match plan.units[probe.unit].role {
                Role::Wanted | Role::Passed => 1.0,
                Role::Aside => ASIDE_ALONE,
            };
            let gain: f32 = group.iter().map(|probe| probe.gain * factor(probe)).sum();
            if let Some(postings) = self.list(group[0].id) {
                lists.push((gain, group[0].unit, postings));
            }
        }
        // No number of a term or a slot may decide: they depend on the index's past.
        lists.sort_by(|a, b| (a.2.len(), a.1).cmp(&(b.2.len(), b.1)).then(b.0.total_cmp(&a.0)));
        scratch.sums.resize(self.slots_end(), 0.0);
        let mut scanned = 0;
        for (gain, _, postings) in lists {
            if scanned > 0 && scanned + postings.len() > scratch.scanned_max {
                break;
            }
            scanned += postings.len();
            for posting in postings {
                let sum = &mut scratch.sums[posting.slot as usize];
                if *sum == 0.0 {
                    scratch.touched.push(posting.slot);
                }
                *sum += gain * posting.impact;
            }
        }
        self.strongest(keep, most, scratch)
    }

    /// The slots of the greatest sums, and leaves the scratch empty.
    fn strongest(&self, keep: impl Fn(u32) -> bool, most: usize, scratch: &mut Scratch) -> Vec<u32> {
        let mut kept: Vec<(f32, u32, u32)> = Vec::with_capacity(2 * most);
        let mut bar = 0.0;
        for slot in scratch.touched.drain(..) {
            let sum = std::mem::take(&mut scratch.sums[slot as usize]);
            if sum < bar {
                continue;
            }
            let Some(entry) = self.entry(slot) else { continue };
            if keep(entry.doc) {
                kept.push((sum, entry.doc, slot));
            }
            if kept.len() == 2 * most {
                bar = halve(&mut kept, most);
            }
        }
        if kept.len() > most {
            halve(&mut kept, most);
        }
        kept.into_iter().map(|(.., slot)| slot).collect()
    }

    /// The best gain of each unit on one document: both lists of terms are sorted.
    fn weigh(&self, plan: &Plan, entry: &Entry, best: &mut [f32]) {
        best.fill(0.0);
        let mut terms = entry.terms.iter();
        let mut current = terms.next();
        for probe in &plan.probes {
            while current.is_some_and(|(id, _)| *id < probe.id) {
                current = terms.next();
            }
            let Some((id, impact)) = current else { break };
            if *id == probe.id {
                best[probe.unit] = best[probe.unit].max(probe.gain * impact);
            }
        }
    }

    fn judge(&self, plan: &Plan, slot: u32, entry: &Entry, best: &[f32]) -> Option<Scored> {
        let (mut wanted, mut aside, mut passed, mut named, mut met) = (0.0, 0.0, 0.0, 0, 0.0);
        for (unit, best) in plan.units.iter().zip(best) {
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
        let share = |terms: &[Term]| {
            let shares = entry.exclusions.iter().map(|exclusion| exclusion.share(|t| terms.binary_search(&t).is_ok()));
            shares.fold(0.0, f32::max)
        };
        let (excluded, agreed) = (share(&plan.wanted_terms), share(&plan.aside_terms));
        let penalty = self.tuning.exclusion * excluded;
        let offered = (wanted + self.tuning.aside * aside).max(0.05 * wanted) + passed + ASIDE_ALONE * aside;
        let score = offered * (1.0 - penalty) * (1.0 + self.tuning.agreed * agreed);
        let shape =
            if plan.passed > 0 { named as f32 / plan.passed.max(usize::from(entry.parameters)) as f32 } else { 0.0 };
        let coverage = if plan.whole > 0.0 { (wanted / plan.whole).min(1.0) } else { 0.0 };
        let evidence = Evidence { score, wanted, met, coverage, shape, excluded, agreed, lead: 0.0 };
        (score > 0.0).then_some(Scored { doc: entry.doc, slot, score, evidence, penalty })
    }

    fn explain(&self, plan: &Plan, slot: u32, best: &mut [f32]) -> Vec<MatchedTerm> {
        let Some(entry) = self.entry(slot) else { return Vec::new() };
        self.weigh(plan, entry, best);
        let mut terms: Vec<(f32, &Wanted)> =
            best.iter().copied().zip(&plan.units).filter(|(gain, _)| *gain > 0.0).collect();
        terms.sort_by(|a, b| b.0.total_cmp(&a.0));
        terms.truncate(TERMS_MAX);
        let shown = terms.into_iter().map(|(gain, wanted)| {
            let factor = if wanted.role == Role::Aside { self.tuning.aside } else { 1.0 };
            MatchedTerm { text: wanted.unit.text.clone(), score: f64::from(gain * factor) }
        });
        shown.collect()
    }
}

/// Keeps the `most` greatest, equals by number of document, and returns the least of them.
fn halve(kept: &mut Vec<(f32, u32, u32)>, most: usize) -> f32 {
    kept.select_nth_unstable_by(most - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    kept.truncate(most);
    kept[most - 1].0
}
