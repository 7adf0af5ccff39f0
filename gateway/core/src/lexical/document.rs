//! A capability's words made ready for the index: terms with their impacts, and its exclusions.

use std::collections::BTreeMap;

use super::lexicon::Lexicon;
use super::spelling::is_spelled;
use super::text::{self, Token};
use super::tuning::Tuning;
use super::unit::{Kind, SAME, Term, Unit, units};

/// What is known of a capability in words.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// The capability's name, such as `search_flights`.
    pub name: &'a str,
    /// Its description.
    pub description: &'a str,
    /// Its tags, in any language.
    pub tags: &'a [String],
    /// What it says that it does not do, one sentence each.
    pub exclusions: &'a [String],
    /// Names of the properties of its input schema, and their descriptions, in any order.
    pub parameters: &'a [String],
    /// How the agent describes itself.
    pub agent: &'a str,
}

/// Beyond these a document is cut: one agent's essay must not fill the index.
const TERMS_MAX: usize = 1_000;
const EXCLUSIONS_MAX: usize = 16;
const TAGS_MAX: usize = 64;
const PARAMETERS_MAX: usize = 64;
/// What a word of an exclusion says when the capability offers the same word: it then names the
/// object that both share ("does not edit *videos*").
const SHARED_WITH_OFFER: f32 = 0.2;
/// A second and later mention within one field.
const AGAIN: f32 = 0.4;

pub(super) struct Prepared {
    /// Terms with impacts between 0 and 1, sorted by term.
    pub(super) terms: Vec<(Term, f32)>,
    pub(super) exclusions: Vec<Exclusion>,
    /// How many parameters it names.
    pub(super) parameters: u16,
    /// The unstemmed words of its name and tags, for mending slips.
    pub(super) spelled: Vec<String>,
}

/// One exclusion, unit by unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exclusion {
    pub(super) units: Vec<ExcludedUnit>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExcludedUnit {
    pub(super) weight: f32,
    pub(super) terms: Vec<Term>,
}

impl Prepared {
    pub(super) fn new(document: &Document<'_>, lexicon: &Lexicon, tuning: &Tuning) -> Self {
        let mut counts = BTreeMap::new();
        let described = read(document.description, lexicon);
        let length = described.len() as f32;
        count(&read(document.name, lexicon), tuning.name, &mut counts);
        let tags: Vec<Unit> = document.tags.iter().take(TAGS_MAX).flat_map(|tag| read(tag, lexicon)).collect();
        count(&tags, tuning.tag, &mut counts);
        count(&described, tuning.description, &mut counts);
        count(&read(document.agent, lexicon), tuning.agent, &mut counts);
        let offered: Vec<Term> = counts.keys().copied().collect();
        let parameters = count_parameters(document, lexicon, tuning, &mut counts);
        let half = tuning.saturation * (1.0 - tuning.length + tuning.length * length / tuning.usual_length);
        let terms = counts.into_iter().map(|(term, count)| (term, count / (count + half))).take(TERMS_MAX).collect();
        let exclusions = document.exclusions.iter().take(EXCLUSIONS_MAX);
        let exclusions = exclusions.filter_map(|sentence| Exclusion::new(sentence, &offered, lexicon)).collect();
        let spelled = spelled(document);
        Prepared { terms, exclusions, parameters, spelled }
    }
}

impl Exclusion {
    fn new(sentence: &str, offered: &[Term], lexicon: &Lexicon) -> Option<Self> {
        let units: Vec<ExcludedUnit> = read(sentence, lexicon)
            .into_iter()
            .map(|unit| {
                let terms: Vec<Term> =
                    unit.alternatives.iter().filter(|a| a.strength >= SAME).map(|a| a.term).collect();
                let shared = terms.iter().any(|term| offered.binary_search(term).is_ok());
                ExcludedUnit { weight: if shared { unit.weight * SHARED_WITH_OFFER } else { unit.weight }, terms }
            })
            .collect();
        (!units.is_empty()).then_some(Exclusion { units })
    }

    /// The share of the exclusion, by weight, whose units hold.
    pub(super) fn share(&self, mut holds: impl FnMut(Term) -> bool) -> f32 {
        let mut whole = 0.0;
        let mut held = 0.0;
        for unit in &self.units {
            whole += unit.weight;
            if unit.terms.iter().any(|term| holds(*term)) {
                held += unit.weight;
            }
        }
        if whole > 0.0 { held / whole } else { 0.0 }
    }
}

fn spelled(document: &Document<'_>) -> Vec<String> {
    let texts = document.tags.iter().take(TAGS_MAX).map(String::as_str).chain([document.name]);
    let tokens = texts.flat_map(|text| text::tokens(&text::normalize(text)));
    let words = tokens.filter_map(|token| match token {
        Token::Word { text, .. } if is_spelled(&text) => Some(text),
        Token::Word { .. } | Token::Run(_) | Token::Code(_) | Token::Break { .. } => None,
    });
    words.collect()
}

fn read(text: &str, lexicon: &Lexicon) -> Vec<Unit> {
    let tokens = text::tokens(&text::normalize(text));
    tokens.split(|token| matches!(token, Token::Break { .. })).flat_map(|clause| units(clause, lexicon)).collect()
}

fn count(units: &[Unit], weight: f32, counts: &mut BTreeMap<Term, f32>) {
    let mut field: BTreeMap<Term, f32> = BTreeMap::new();
    for alternative in units.iter().flat_map(|unit| &unit.alternatives) {
        field.entry(alternative.term).and_modify(|count| *count += AGAIN).or_insert(1.0);
    }
    for (term, count) in field {
        *counts.entry(term).or_insert(0.0) += weight * count.min(2.0);
    }
}

fn count_parameters(
    document: &Document<'_>,
    lexicon: &Lexicon,
    tuning: &Tuning,
    counts: &mut BTreeMap<Term, f32>,
) -> u16 {
    let mut named = 0;
    let mut words = Vec::new();
    for parameter in document.parameters.iter().take(PARAMETERS_MAX) {
        if !parameter.contains(char::is_whitespace) {
            named += 1;
            counts.insert(Term::new(Kind::Parameter, parameter), 1.0);
        }
        words.extend(read(parameter, lexicon));
    }
    count(&words, tuning.parameter, counts);
    named
}
