//! What is counted: a unit is a word or a pair of characters, with the terms that may stand for
//! it. Documents are indexed under all terms of their units; a query takes the best of each.

use std::sync::Arc;

use super::lexicon::{Concept, Lexicon};
use super::stop::is_stop_character;
use super::text::Token;

/// A term of the index. Terms are only ever compared, so their hash is enough; two that collide
/// are one term, which costs a spurious match and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Term(pub(super) u64);

impl Term {
    /// FNV-1a over the kind and the text, the same on every machine.
    pub(super) fn new(kind: Kind, text: &str) -> Self {
        Term::joined(kind, &[text])
    }

    /// The term of some parts of a text written as one.
    pub(super) fn joined(kind: Kind, parts: &[&str]) -> Self {
        let start = (0xcbf2_9ce4_8422_2325_u64 ^ kind as u64).wrapping_mul(0x0100_0000_01b3);
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        // The last mix spreads short texts over all bits.
        let hash = parts.iter().flat_map(|part| part.bytes()).fold(start, step);
        Term((hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9))
    }
}

/// Terms of different kinds never meet, even when spelled alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Literal = 1,
    Concept = 2,
    Parameter = 3,
    Spelling = 4,
}

/// A term that may stand for a unit, and how well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Alternative {
    pub(super) term: Term,
    pub(super) strength: f32,
}

/// One thing said.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unit {
    /// As it was written, for explanations.
    pub(super) text: Arc<str>,
    pub(super) alternatives: Vec<Alternative>,
    /// How much it says, before anything is known about the corpus.
    pub(super) weight: f32,
    /// The unstemmed word, where no dictionary knows it: it may be a slip of the pen.
    pub(super) unknown: Option<String>,
}

const CODE: f32 = 0.3;
const WEAK: f32 = 0.4;
const PHRASE_WORD: f32 = 0.5;
const SINGLE_CHARACTER: f32 = 0.6;
const HALF_STOPPED: f32 = 0.25;
const ACROSS_WORDS: f32 = 0.3;
const ONE_OF_A_PAIR: f32 = 0.3;
const ONE_CONCEPT: f32 = 0.95;
const SOME_CONCEPT: f32 = 0.65;
/// An alternative at least this strong means the same thing, and is not a mere resemblance.
pub(super) const SAME: f32 = 0.6;

/// The units of a stretch of tokens.
pub(super) fn units(tokens: &[Token], lexicon: &Lexicon) -> Vec<Unit> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let words = tokens[at..].iter().take_while(|token| matches!(token, Token::Word { .. })).count();
        if words > 0 {
            word_units(&tokens[at..at + words], lexicon, &mut out);
            at += words;
            continue;
        }
        match &tokens[at] {
            Token::Run(run) => run_units(run, lexicon, &mut out),
            Token::Code(code) => out.push(literal(code, CODE)),
            Token::Word { .. } | Token::Break { .. } => {}
        }
        at += 1;
    }
    out
}

fn literal(text: &str, weight: f32) -> Unit {
    // Room for the usual number, so that a unit allocates once.
    let mut alternatives = Vec::with_capacity(4);
    alternatives.push(Alternative { term: Term::new(Kind::Literal, text), strength: 1.0 });
    Unit { text: Arc::from(text), alternatives, weight, unknown: None }
}

fn with_concepts(mut unit: Unit, concepts: &[Concept]) -> Unit {
    let strength = if concepts.len() == 1 { ONE_CONCEPT } else { SOME_CONCEPT };
    let terms = concepts.iter().map(|concept| concept.term);
    unit.alternatives.extend(terms.map(|term| Alternative { term, strength }));
    if !concepts.is_empty() && concepts.iter().all(|concept| concept.weak) {
        unit.weight *= WEAK;
    }
    unit
}

fn word_units(tokens: &[Token], lexicon: &Lexicon, out: &mut Vec<Unit>) {
    let words = || {
        tokens.iter().filter_map(|token| match token {
            Token::Word { text, stem, is_stop } => Some((text, stem.as_str(), *is_stop)),
            Token::Run(_) | Token::Code(_) | Token::Break { .. } => None,
        })
    };
    let stems: Vec<&str> = words().map(|(_, stem, _)| stem).collect();
    let mut phrase_end = 0;
    for (i, (word, stem, is_stop)) in words().enumerate() {
        let (length, concepts) = lexicon.phrase(&stems[i..]).unwrap_or((1, &[]));
        if length > 1 && i >= phrase_end {
            phrase_end = i + length;
            let unit = Unit {
                text: Arc::from(stems[i..phrase_end].join(" ")),
                alternatives: Vec::new(),
                weight: 1.0,
                unknown: None,
            };
            out.push(with_concepts(unit, concepts));
        }
        if is_stop {
            continue;
        }
        let mut unit = literal(stem, if i < phrase_end { PHRASE_WORD } else { 1.0 });
        let own = if length == 1 { concepts } else { lexicon.phrase(&stems[i..=i]).map_or(&[][..], |found| found.1) };
        unit.unknown = own.is_empty().then(|| word.clone());
        out.push(with_concepts(unit, own));
    }
}

fn run_units(run: &[char], lexicon: &Lexicon, out: &mut Vec<Unit>) {
    // Where the words of the lexicon lie: each position knows the word that it belongs to.
    let mut word_at = vec![0usize; run.len()];
    let mut text = String::new();
    let mut words = 0;
    let mut i = 0;
    while i < run.len() {
        let found = lexicon.word(&run[i..]).filter(|(length, _)| *length > 1 || !is_stop_character(run[i]));
        let Some((length, concepts)) = found else {
            i += 1;
            continue;
        };
        words += 1;
        word_at[i..i + length].fill(words);
        let weight = if length == 1 { SINGLE_CHARACTER } else { 1.0 };
        text.clear();
        text.extend(&run[i..i + length]);
        let mut unit = literal(&text, weight);
        add_characters(&mut unit, &run[i..i + length]);
        out.push(with_concepts(unit, concepts));
        i += length;
    }
    for (i, pair) in run.windows(2).enumerate() {
        let stops = pair.iter().filter(|c| is_stop_character(**c)).count();
        let same_word = word_at[i] != 0 && word_at[i] == word_at[i + 1];
        // A whole word of two characters has been counted above.
        let is_word = same_word && word_at[..i].last() != Some(&word_at[i]) && word_at.get(i + 2) != Some(&word_at[i]);
        if stops == 2 || is_word {
            continue;
        }
        let mut weight = if stops == 1 { HALF_STOPPED } else { 1.0 };
        if word_at[i] != 0 || word_at[i + 1] != 0 {
            weight *= ACROSS_WORDS;
        }
        text.clear();
        text.extend(pair);
        let mut unit = literal(&text, weight);
        add_characters(&mut unit, pair);
        out.push(unit);
    }
    if let [single] = run
        && words == 0
        && !is_stop_character(*single)
    {
        out.push(literal(single.encode_utf8(&mut [0; 4]), SINGLE_CHARACTER));
    }
}

/// Single characters resemble the word that they are part of.
fn add_characters(unit: &mut Unit, characters: &[char]) {
    if characters.len() < 2 {
        return;
    }
    for c in characters.iter().filter(|c| !is_stop_character(**c)) {
        let term = Term::new(Kind::Literal, c.encode_utf8(&mut [0; 4]));
        unit.alternatives.push(Alternative { term, strength: ONE_OF_A_PAIR });
    }
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use super::*;

    fn of(text: &str, lexicon: &Lexicon) -> Vec<(String, f32)> {
        let tokens = text::tokens(&text::normalize(text));
        units(&tokens, lexicon).into_iter().map(|unit| (unit.text.to_string(), unit.weight)).collect()
    }

    #[test]
    fn unknown_runs_give_their_pairs() {
        let texts: Vec<String> = of("鸭川河岸", &Lexicon::empty()).into_iter().map(|(text, _)| text).collect();
        assert_eq!(texts, ["鸭川", "川河", "河岸"]);
    }

    #[test]
    fn function_words_are_not_counted() {
        assert_eq!(of("could you please do this for me", &Lexicon::empty()), []);
        assert_eq!(of("的了吗", &Lexicon::empty()), []);
    }

    #[test]
    fn two_languages_meet_in_a_concept() {
        let lexicon = Lexicon::general();
        let terms = |text: &str| -> Vec<Term> {
            let tokens = text::tokens(&text::normalize(text));
            units(&tokens, lexicon).into_iter().flat_map(|unit| unit.alternatives).map(|a| a.term).collect()
        };
        let chinese = terms("发票");
        assert!(terms("invoices").iter().any(|term| chinese.contains(term)));
        assert!(!terms("umbrella").iter().any(|term| chinese.contains(term)));
    }
}
