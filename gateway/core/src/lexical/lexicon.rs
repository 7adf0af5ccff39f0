//! A small dictionary of general words in English and Chinese: words of one concept stand for
//! each other. It knows no trade, no product and no place.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::spelling::{Spelling, is_spelled};
use super::text;
use super::unit::{Kind, Term};

const GENERAL: &str = include_str!("lexicon.txt");
static LOADED: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::parse(GENERAL));

/// A concept: a line of the lexicon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Concept {
    /// The term that stands for the concept in an index.
    pub(super) term: Term,
    /// So general that sharing it says little.
    pub(super) weak: bool,
}

/// What follows the first stem of a phrase or the first character of a word, and what it means.
#[derive(Debug)]
struct Tail<T> {
    rest: Vec<T>,
    concepts: Vec<Concept>,
}

/// Words to concepts, by their first stem or character; the longest come first.
#[derive(Debug)]
pub(super) struct Lexicon {
    english: BTreeMap<Term, Vec<Tail<String>>>,
    chinese: BTreeMap<char, Vec<Tail<char>>>,
    spelling: Spelling,
}

impl Lexicon {
    /// The built-in one.
    pub(super) fn general() -> &'static Lexicon {
        &LOADED
    }

    /// One that knows nothing.
    pub(super) const fn empty() -> Lexicon {
        Lexicon { english: BTreeMap::new(), chinese: BTreeMap::new(), spelling: Spelling::new() }
    }

    fn parse(source: &str) -> Self {
        let mut lexicon = Lexicon::empty();
        let lines = source.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        for (number, line) in lines.enumerate() {
            let weak = line.starts_with('~');
            let line = line.trim_start_matches('~');
            let concept = Concept { term: Term::new(Kind::Concept, &number.to_string()), weak };
            let (english, chinese) = line.split_once('|').unwrap_or((line, ""));
            for phrase in english.split_whitespace() {
                if is_spelled(phrase) {
                    lexicon.spelling.add(phrase);
                }
                let mut stems = phrase.split('_').map(text::stem);
                if let Some(first) = stems.next() {
                    let first = Term::new(Kind::Literal, &first);
                    push(lexicon.english.entry(first).or_default(), stems.collect(), concept);
                }
            }
            for word in chinese.split_whitespace() {
                let mut characters = word.chars();
                if let Some(first) = characters.next() {
                    push(lexicon.chinese.entry(first).or_default(), characters.collect(), concept);
                }
            }
        }
        lexicon
    }

    /// The concepts of the longest phrase that `stems` begin with, and its length in words.
    pub(super) fn phrase(&self, stems: &[&str]) -> Option<(usize, &[Concept])> {
        let (first, after) = stems.split_first()?;
        let fits = |tail: &&Tail<String>| {
            tail.rest.len() <= after.len() && tail.rest.iter().zip(after).all(|(stem, found)| stem == found)
        };
        let tail = self.english.get(&Term::new(Kind::Literal, first))?.iter().find(fits)?;
        Some((tail.rest.len() + 1, &tail.concepts))
    }

    /// The concepts of the words that a misspelt one may stand for.
    pub(super) fn respelt(&self, word: &str) -> Vec<Concept> {
        let mut concepts: Vec<Concept> = Vec::new();
        for known in self.spelling.suggest(word) {
            let found = self.phrase(&[&text::stem(&known)]).map_or(&[][..], |found| found.1);
            concepts.extend(found.iter().filter(|concept| !concept.weak));
        }
        concepts
    }

    /// The concepts of the longest word that `characters` begin with, and its length.
    pub(super) fn word(&self, characters: &[char]) -> Option<(usize, &[Concept])> {
        let (first, after) = characters.split_first()?;
        let tail = self.chinese.get(first)?.iter().find(|tail| after.starts_with(&tail.rest))?;
        Some((tail.rest.len() + 1, &tail.concepts))
    }
}

fn push<T: PartialEq>(tails: &mut Vec<Tail<T>>, rest: Vec<T>, concept: Concept) {
    match tails.iter_mut().find(|tail| tail.rest == rest) {
        Some(tail) if tail.concepts.contains(&concept) => {}
        Some(tail) => tail.concepts.push(concept),
        None => {
            let at = tails.partition_point(|tail| tail.rest.len() >= rest.len());
            tails.insert(at, Tail { rest, concepts: vec![concept] });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_two_languages_share_a_concept() {
        let lexicon = Lexicon::general();
        let (_, english) = lexicon.phrase(&["invoic"]).unwrap();
        let (length, chinese) = lexicon.word(&['发', '票', '呢']).unwrap();
        assert_eq!(length, 2);
        assert!(english.iter().any(|concept| chinese.contains(concept)));
    }

    #[test]
    fn the_longest_phrase_wins() {
        let (length, _) = Lexicon::general().phrase(&["look", "up", "order"]).unwrap();
        assert_eq!(length, 2);
        assert!(Lexicon::general().phrase(&["zyzzyva"]).is_none());
        let (length, _) = Lexicon::general().word(&"登机口在".chars().collect::<Vec<_>>()).unwrap();
        assert_eq!(length, 3);
    }
}
