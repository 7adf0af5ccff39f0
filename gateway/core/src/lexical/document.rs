//! A capability's words made ready for the index: terms with their impacts, and its exclusions.

use std::collections::BTreeMap;

use super::lexicon::Lexicon;
use super::rarity::Likeness;
use super::spelling::is_spelled;
use super::text::{self, Token};
use super::tuning::Tuning;
use super::unit::{Kind, SAME, Term, Unit, units};

/// What is known of a capability in words.
#[derive(Debug, Clone, Copy, Default)]
pub struct Document<'a> {
    /// The capability's name, such as `search_flights`.
    pub name: &'a str,
    /// Its description.
    pub description: &'a str,
    /// Its tags, in any language and any order.
    pub tags: &'a [String],
    /// What it says that it does not do, one sentence each.
    pub exclusions: &'a [String],
    /// Names of the properties of its input schema, and their descriptions, in any order.
    pub parameters: &'a [String],
    /// How the agent describes itself.
    pub agent: &'a str,
    /// The agent's own tags.
    pub agent_tags: &'a [String],
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
    pub(super) likeness: Likeness,
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
        let named = read(document.name, lexicon);
        let described = read(document.description, lexicon);
        let mut tags: Vec<Unit> = own_tags(document).flat_map(|tag| read(tag, lexicon)).collect();
        let parameters = Parameters::new(document, lexicon);
        let own = [&named, &described, &tags, &parameters.words].into_iter().flatten();
        let own: Vec<Term> = own.flat_map(terms).chain(parameters.names.iter().copied()).collect();
        tags.extend(agent_tags(document).flat_map(|tag| read(tag, lexicon)));
        count(&named, tuning.name, &mut counts);
        count(&tags, tuning.tag, &mut counts);
        count(&described, tuning.description, &mut counts);
        count(&read(document.agent, lexicon), tuning.agent, &mut counts);
        let offered: Vec<Term> = counts.keys().copied().collect();
        counts.extend(parameters.names.iter().map(|name| (*name, 1.0)));
        count(&parameters.words, tuning.parameter, &mut counts);
        let length = described.len() as f32;
        let half = tuning.saturation * (1.0 - tuning.length + tuning.length * length / tuning.usual_length);
        let terms = counts.into_iter().map(|(term, count)| (term, count / (count + half))).take(TERMS_MAX).collect();
        let exclusions = document.exclusions.iter().take(EXCLUSIONS_MAX);
        let exclusions: Vec<Exclusion> =
            exclusions.filter_map(|sentence| Exclusion::new(sentence, &offered, lexicon)).collect();
        let likeness = likeness(document.name, own, &exclusions);
        let named = parameters.names.len() as u16;
        Prepared { terms, exclusions, parameters: named, spelled: spelled(document), likeness }
    }
}

/// Two capabilities are alike if they have the same name and the same words, whatever their agents say of themselves.
fn likeness(name: &str, mut own: Vec<Term>, exclusions: &[Exclusion]) -> Likeness {
    let sorted = |mut terms: Vec<Term>| {
        terms.sort_unstable();
        terms.dedup();
        terms
    };
    let excluded = exclusions.iter().flat_map(|exclusion| &exclusion.units).flat_map(|unit| unit.terms.iter().copied());
    let excluded = sorted(excluded.collect());
    own.push(Term::new(Kind::Literal, name));
    let all = sorted(own).into_iter().chain([Term(0)]).chain(excluded);
    // The multiplier is that of Knuth's 64-bit congruential generator.
    let mix = |hash: u64, term: Term| (hash.rotate_left(23) ^ term.0).wrapping_mul(0x5851_f42d_4c95_7f2d);
    Likeness(all.fold(0, mix))
}

fn terms(unit: &Unit) -> impl Iterator<Item = Term> {
    unit.alternatives.iter().map(|alternative| alternative.term)
}

fn own_tags<'a>(document: &Document<'a>) -> impl Iterator<Item = &'a String> {
    document.tags.iter().take(TAGS_MAX)
}

/// The agent's tags, as far as the capability's own leave room.
fn agent_tags<'a>(document: &Document<'a>) -> impl Iterator<Item = &'a String> {
    document.agent_tags.iter().take(TAGS_MAX.saturating_sub(document.tags.len()))
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
    let texts = own_tags(document).chain(agent_tags(document)).map(String::as_str).chain([document.name]);
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

/// The parameters that a document names, and the words in their names and descriptions.
struct Parameters {
    names: Vec<Term>,
    words: Vec<Unit>,
}

impl Parameters {
    fn new(document: &Document<'_>, lexicon: &Lexicon) -> Self {
        let all = || document.parameters.iter().take(PARAMETERS_MAX);
        let names = all().filter(|parameter| !parameter.contains(char::is_whitespace));
        Parameters {
            names: names.map(|name| Term::new(Kind::Parameter, name)).collect(),
            words: all().flat_map(|parameter| read(parameter, lexicon)).collect(),
        }
    }
}
