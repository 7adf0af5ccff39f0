//! How sure a match is, and whether that is enough. Scores of different intents do not compare;
//! the similarity does: it is fitted so that it reads as the chance of being right.

use serde::{Deserialize, Serialize};

use super::search::Match;

/// What speaks for a match, each in its own measure.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Evidence {
    /// The score that decided the order.
    pub score: f32,
    /// The part of it that came from words that are wanted.
    pub wanted: f32,
    /// How many wanted words the document met in earnest.
    pub met: f32,
    /// The share of the wanted words that the document met, weighted by rarity, 0 to 1.
    pub coverage: f32,
    /// How alike the passed and the named parameters are, 0 to 1.
    pub shape: f32,
    /// The greatest share of an exclusion that the intent asks for, 0 to 1.
    pub excluded: f32,
    /// The greatest share of an exclusion that the intent puts aside as well, 0 to 1.
    pub agreed: f32,
    /// How far it leads the best other one, as a share of the greater score, -1 to 1.
    pub lead: f32,
}

/// A logistic fit on labelled intents, each half and each trade held out in turn, with the base
/// lowered a little: a wrong acceptance costs more than a doubt.
const BASE: f64 = -3.05;
const PER_COVERAGE: f64 = 1.6;
const PER_LOG_WANTED: f64 = 0.5;
const PER_MET: f64 = 0.7;
const MET_MAX: f32 = 4.0;
const PER_LEAD: f64 = 1.6;
const PER_SHAPE: f64 = 4.0;
const PER_EXCLUDED: f64 = -2.3;
const PER_AGREED: f64 = 1.5;
/// An exclusion met this far and better than the offer forbids acceptance.
const EXCLUDED_MAX: f32 = 0.5;
const EXCLUDED_SIMILARITY: f64 = 0.5;

/// When a match is good enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// The least similarity that is accepted.
    pub accept: f64,
    /// The least distance to the runner-up's similarity.
    pub margin: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds { accept: 0.78, margin: 0.03 }
    }
}

/// What the words alone decide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The first match is taken.
    Accept {
        /// The document's number.
        doc: u32,
        /// Its similarity.
        similarity: f64,
    },
    /// The words do not decide.
    Unsure(Doubt),
}

/// Why the words do not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// No word was met.
    Nothing,
    /// The best is not similar enough.
    Weak,
    /// The best two are too close.
    Close,
    /// The best one excludes what is asked.
    Excluded,
}

/// Decides on matches as [`Index::search`](super::Index::search) returns them.
pub fn decide(matches: &[Match], thresholds: &Thresholds) -> Verdict {
    let Some(first) = matches.first() else { return Verdict::Unsure(Doubt::Nothing) };
    if is_excluded(&first.evidence) {
        return Verdict::Unsure(Doubt::Excluded);
    }
    if first.similarity < thresholds.accept {
        return Verdict::Unsure(Doubt::Weak);
    }
    match matches.get(1) {
        Some(second) if first.similarity - second.similarity < thresholds.margin => Verdict::Unsure(Doubt::Close),
        Some(_) | None => Verdict::Accept { doc: first.doc, similarity: first.similarity },
    }
}

/// Whether a capability's exclusion meets the intent better than its offer does.
fn is_excluded(evidence: &Evidence) -> bool {
    evidence.excluded >= EXCLUDED_MAX && evidence.excluded > evidence.coverage
}

/// Fills in how far each leads the best other one; the best come first.
pub(super) fn fill_leads<T>(ranked: &mut [T], evidence: impl Fn(&mut T) -> &mut Evidence) {
    let mut score = |at: usize| ranked.get_mut(at).map_or(0.0, |ranked| evidence(ranked).score);
    let (best, second) = (score(0), score(1));
    for (at, ranked) in ranked.iter_mut().enumerate() {
        let evidence = evidence(ranked);
        let other = if at == 0 { second } else { best };
        let greater = evidence.score.max(other);
        evidence.lead = if greater > 0.0 { (evidence.score - other) / greater } else { 0.0 };
    }
}

impl Evidence {
    /// How likely the match is the right one.
    pub(super) fn similarity(&self) -> f64 {
        let sum = BASE
            + PER_COVERAGE * f64::from(self.coverage)
            + PER_LOG_WANTED * f64::from(self.wanted).ln_1p()
            + PER_MET * f64::from(self.met.min(MET_MAX))
            + PER_LEAD * f64::from(self.lead)
            + PER_SHAPE * f64::from(self.shape)
            + PER_EXCLUDED * f64::from(self.excluded)
            + PER_AGREED * f64::from(self.agreed);
        let similarity = 1.0 / (1.0 + (-sum).exp());
        if is_excluded(self) { similarity.min(EXCLUDED_SIMILARITY) } else { similarity }
    }
}
