//! Known words by the slips of the pen that lead to them: one letter missing, doubled, wrong, or
//! two swapped. Every word is filed under itself and itself less one letter, so that a look-up
//! costs as many steps as the word has letters.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::unit::{Kind, Term};

/// Shorter words have too many neighbours to be mended.
const LETTERS_MIN: usize = 4;
const LETTERS_MAX: usize = 20;
/// Suggestions for one word; more would be guessing.
const SUGGESTED_MAX: usize = 3;

/// Words with the number of those who use each.
#[derive(Debug, Clone)]
pub(super) struct Spelling {
    words: BTreeMap<Arc<str>, u32>,
    filed: BTreeMap<Term, Vec<Arc<str>>>,
}

/// Whether a word takes part: long enough, and of plain letters.
pub(super) fn is_spelled(word: &str) -> bool {
    (LETTERS_MIN..=LETTERS_MAX).contains(&word.len()) && word.bytes().all(|letter| letter.is_ascii_lowercase())
}

impl Spelling {
    /// One that knows no word.
    pub(super) const fn new() -> Self {
        Spelling { words: BTreeMap::new(), filed: BTreeMap::new() }
    }

    /// Counts one more use of a word, and files it at its first.
    pub(super) fn add(&mut self, word: &str) {
        if let Some(count) = self.words.get_mut(word) {
            *count += 1;
            return;
        }
        let word: Arc<str> = Arc::from(word);
        for key in keys(&word) {
            let filed = self.filed.entry(key).or_default();
            let at = filed.partition_point(|other| *other < word);
            filed.insert(at, word.clone());
        }
        self.words.insert(word, 1);
    }

    /// Takes one use back.
    pub(super) fn remove(&mut self, word: &str) {
        let Some(count) = self.words.get_mut(word) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.words.remove(word);
        for key in keys(word) {
            if let Some(filed) = self.filed.get_mut(&key) {
                filed.retain(|other| **other != *word);
                if filed.is_empty() {
                    self.filed.remove(&key);
                }
            }
        }
    }

    /// Known words one slip away that begin alike, in alphabetical order.
    pub(super) fn suggest(&self, word: &str) -> Vec<Arc<str>> {
        let mut found: Vec<Arc<str>> = Vec::new();
        if !is_spelled(word) {
            return found;
        }
        for key in keys(word) {
            let filed = self.filed.get(&key).into_iter().flatten();
            found.extend(filed.filter(|other| is_one_slip(word, other)).cloned());
        }
        found.sort();
        found.dedup();
        found.truncate(SUGGESTED_MAX);
        found
    }
}

/// The word and the word less each letter but the first, without repetition.
fn keys(word: &str) -> Vec<Term> {
    let less = |at: usize| Term::joined(Kind::Spelling, &[&word[..at], &word[at + 1..]]);
    let mut keys: Vec<Term> = (1..word.len()).map(less).collect();
    keys.push(Term::new(Kind::Spelling, word));
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Whether one letter more, less, changed or swapped makes one word the other.
fn is_one_slip(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    match (&a[..a.len() - tail], &b[..b.len() - tail]) {
        ([], [_]) | ([_], []) | ([_], [_]) => head > 0,
        ([x, y], [v, w]) => head > 0 && x == w && y == v,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggested(word: &str) -> Vec<String> {
        let mut spelling = Spelling::new();
        for known in ["invoice", "voice", "receipt", "gate"] {
            spelling.add(known);
        }
        spelling.suggest(word).iter().map(|word| word.to_string()).collect()
    }

    #[test]
    fn one_slip_is_mended() {
        for slip in ["invoce", "invooice", "invoise", "invocie"] {
            assert_eq!(suggested(slip), ["invoice"], "{slip}");
        }
        assert_eq!(suggested("gaet"), ["gate"]);
    }

    #[test]
    fn two_slips_and_other_beginnings_are_not() {
        for word in ["invose", "noice", "late", "gte"] {
            assert!(suggested(word).is_empty(), "{word}");
        }
    }

    #[test]
    fn a_word_is_known_as_long_as_someone_uses_it() {
        let mut spelling = Spelling::new();
        spelling.add("invoice");
        spelling.add("invoice");
        spelling.remove("invoice");
        assert_eq!(spelling.suggest("invoce").len(), 1);
        spelling.remove("invoice");
        assert!(spelling.suggest("invoce").is_empty() && spelling.filed.is_empty());
    }
}
