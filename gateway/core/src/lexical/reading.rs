//! An intent as one index reads it: which of its terms the index knows, and how much each says there. Worked out once,
//! and searched with as often as is needed.

use super::index::Index;
use super::intent::{self, Intent, Role, Wanted};
use super::text;
use super::unit::{Alternative, Kind, SAME, Term, Unit};

/// A unit that no document knows counts as unmet with this share of a rare term's weight: names
/// of people and places are unknown as well, and mean no harm.
const UNKNOWN: f32 = 0.4;
/// A word that was mended is trusted less than one spelt well.
const MENDED: f32 = 0.7;

/// An intent as an index reads it.
pub struct Reading<'a> {
    pub(super) index: &'a Index,
    pub(super) units: Vec<Wanted>,
    /// Sorted by number of term.
    pub(super) probes: Vec<Probe>,
    /// What full marks on all wanted units would be.
    pub(super) whole: f32,
    /// How many parameters are passed.
    pub(super) passed: usize,
    pub(super) wanted: Terms,
    pub(super) aside: Terms,
}

/// A term of the intent that the index knows.
pub(super) struct Probe {
    pub(super) id: u32,
    pub(super) unit: usize,
    /// The unit's weight, the alternative's strength and the term's rarity.
    pub(super) gain: f32,
}

/// Some terms, quick to ask whether they hold one.
#[derive(Default)]
pub(super) struct Terms {
    sorted: Vec<Term>,
    /// A bit for the lowest six bits of each: most others are told apart by it.
    bits: u64,
}

impl Terms {
    fn push(&mut self, term: Term) {
        self.bits |= 1 << (term.0 & 63);
        self.sorted.push(term);
    }

    pub(super) fn hold(&self, term: Term) -> bool {
        self.bits & (1 << (term.0 & 63)) != 0 && self.sorted.binary_search(&term).is_ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}

impl Index {
    /// Reads an intent.
    pub fn read(&self, intent: &Intent<'_>) -> Reading<'_> {
        let mut units = intent::read(intent, self.lexicon, &self.tuning);
        let mut probes = Vec::with_capacity(2 * units.len());
        let mut whole = 0.0;
        let (mut wanted, mut aside) = (Terms::default(), Terms::default());
        for (at, Wanted { unit, role }) in units.iter_mut().enumerate() {
            let mut full = self.probe(at, unit, &mut probes);
            if full.is_none() && self.mend(unit) {
                full = self.probe(at, unit, &mut probes);
            }
            let same = unit.alternatives.iter().filter(|alternative| alternative.strength >= SAME);
            match role {
                Role::Wanted => {
                    whole += full.unwrap_or_else(|| UNKNOWN * unit.weight * self.rarity.of_unknown());
                    same.for_each(|alternative| wanted.push(alternative.term));
                }
                Role::Aside => same.for_each(|alternative| aside.push(alternative.term)),
                Role::Passed => {}
            }
        }
        probes.sort_unstable_by_key(|probe| (probe.id, probe.unit));
        wanted.sorted.sort_unstable();
        aside.sorted.sort_unstable();
        Reading { index: self, units, probes, whole, passed: intent.parameters.len(), wanted, aside }
    }

    /// Probes for what the index knows of a unit, and the most that it can gain; none if nothing is known of it.
    fn probe(&self, at: usize, unit: &Unit, probes: &mut Vec<Probe>) -> Option<f32> {
        let mut full: Option<f32> = None;
        for alternative in &unit.alternatives {
            if let Some(id) = self.find(alternative.term) {
                let gain = unit.weight * alternative.strength * self.rarity.of(id);
                full = Some(full.unwrap_or(0.0).max(gain));
                probes.push(Probe { id, unit: at, gain });
            }
        }
        full
    }

    /// Lets a word that nobody knows stand for the known words that it may be a slip for. Whether there are any.
    fn mend(&self, unit: &mut Unit) -> bool {
        let Some(word) = &unit.unknown else { return false };
        let known = self.spelling.suggest(word);
        let literal = known.iter().map(|known| Term::new(Kind::Literal, &text::stem(known)));
        let concepts = self.lexicon.respelt(word).into_iter().map(|concept| concept.term);
        let before = unit.alternatives.len();
        unit.alternatives.extend(literal.chain(concepts).map(|term| Alternative { term, strength: MENDED }));
        unit.alternatives.len() > before
    }
}
