//! The inverted index: postings a term, and the terms a document. Both ways are kept, so that
//! removing is cheap, and so that common terms need not be scanned to score a few candidates.

use std::collections::BTreeMap;

use super::document::{Document, Exclusion, Prepared};
use super::lexicon::Lexicon;
use super::rarity::{Likeness, Rarity};
use super::spelling::Spelling;
use super::tuning::Tuning;
use super::unit::Term;

/// Where a document contains a term, and how much that says (0 to 1).
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) slot: u32,
    pub(super) impact: f32,
}

/// A document in its slot.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) doc: u32,
    /// Numbers of terms with their impacts, sorted.
    pub(super) terms: Vec<(u32, f32)>,
    pub(super) exclusions: Vec<Exclusion>,
    pub(super) parameters: u16,
    spelled: Vec<String>,
    likeness: Likeness,
}

/// Capabilities by their words. Inserting and removing is incremental, and an index answers the
/// same no matter in which order it came to hold what it holds.
#[derive(Debug, Clone)]
pub struct Index {
    pub(super) tuning: Tuning,
    pub(super) lexicon: &'static Lexicon,
    vocabulary: BTreeMap<Term, u32>,
    postings: Vec<Vec<Posting>>,
    term_of: Vec<Term>,
    free_terms: Vec<u32>,
    slots: BTreeMap<u32, u32>,
    entries: Vec<Option<Entry>>,
    /// The number of the document in each slot, close together for the ties of a long scan.
    docs: Vec<u32>,
    free_slots: Vec<u32>,
    pub(super) rarity: Rarity,
    pub(super) spelling: Spelling,
}

static NO_LEXICON: Lexicon = Lexicon::empty();

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// An empty index with the usual weights and the built-in lexicon.
    pub fn new() -> Self {
        Self::with(Tuning::default(), true)
    }

    /// An empty index with weights of its own, with or without the built-in lexicon.
    pub fn with(tuning: Tuning, has_lexicon: bool) -> Self {
        Index {
            tuning,
            lexicon: if has_lexicon { Lexicon::general() } else { &NO_LEXICON },
            vocabulary: BTreeMap::new(),
            postings: Vec::new(),
            term_of: Vec::new(),
            free_terms: Vec::new(),
            slots: BTreeMap::new(),
            entries: Vec::new(),
            docs: Vec::new(),
            free_slots: Vec::new(),
            rarity: Rarity::new(tuning.imagined),
            spelling: Spelling::new(),
        }
    }

    /// How many documents it holds.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Puts a document in, in place of any that has the same number.
    pub fn insert(&mut self, doc: u32, document: &Document<'_>) {
        self.remove(doc);
        let prepared = Prepared::new(document, self.lexicon, &self.tuning);
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.docs.push(doc);
            number(self.entries.len() - 1)
        });
        let mut terms = Vec::with_capacity(prepared.terms.len());
        for &(term, impact) in &prepared.terms {
            let id = self.term_id(term);
            let list = &mut self.postings[id as usize];
            let posting = Posting { slot, impact };
            match list.last() {
                // The usual case of a fleet that grows.
                Some(last) if last.slot > slot => {
                    let at = list.partition_point(|other| other.slot < slot);
                    list.insert(at, posting);
                }
                Some(_) | None => list.push(posting),
            }
            terms.push((id, impact));
        }
        terms.sort_unstable_by_key(|(id, _)| *id);
        for word in &prepared.spelled {
            self.spelling.add(word);
        }
        let Prepared { exclusions, parameters, spelled, likeness, .. } = prepared;
        self.rarity.add(likeness, terms.iter().map(|(id, _)| *id));
        let entry = Entry { doc, terms, exclusions, parameters, spelled, likeness };
        self.docs[slot as usize] = doc;
        self.entries[slot as usize] = Some(entry);
        self.slots.insert(doc, slot);
    }

    /// Takes a document out; an unknown number is no error.
    pub fn remove(&mut self, doc: u32) {
        let Some(slot) = self.slots.remove(&doc) else { return };
        let Some(entry) = self.entries[slot as usize].take() else { return };
        self.rarity.remove(entry.likeness, entry.terms.iter().map(|(id, _)| *id));
        for (id, _) in entry.terms {
            let list = &mut self.postings[id as usize];
            if let Ok(at) = list.binary_search_by_key(&slot, |posting| posting.slot) {
                list.remove(at);
            }
            if list.is_empty() {
                self.vocabulary.remove(&self.term_of[id as usize]);
                self.free_terms.push(id);
            }
        }
        for word in &entry.spelled {
            self.spelling.remove(word);
        }
        self.free_slots.push(slot);
    }

    fn term_id(&mut self, term: Term) -> u32 {
        if let Some(id) = self.vocabulary.get(&term) {
            return *id;
        }
        let id = self.free_terms.pop().unwrap_or_else(|| {
            self.postings.push(Vec::new());
            self.term_of.push(term);
            number(self.postings.len() - 1)
        });
        self.term_of[id as usize] = term;
        self.vocabulary.insert(term, id);
        id
    }

    /// A term's number.
    pub(super) fn find(&self, term: Term) -> Option<u32> {
        self.vocabulary.get(&term).copied()
    }

    /// Where a numbered term stands, sorted by slot.
    pub(super) fn postings(&self, id: u32) -> &[Posting] {
        &self.postings[id as usize]
    }

    pub(super) fn entry(&self, slot: u32) -> Option<&Entry> {
        self.entries.get(slot as usize)?.as_ref()
    }

    /// The slot of a document.
    pub(super) fn slot(&self, doc: u32) -> Option<u32> {
        self.slots.get(&doc).copied()
    }

    /// The document in a slot in use.
    pub(super) fn doc(&self, slot: u32) -> u32 {
        self.docs[slot as usize]
    }

    /// One past the highest slot in use.
    pub(super) fn slots_end(&self) -> usize {
        self.entries.len()
    }
}

/// Numbers of slots and terms are bounded by memory long before they leave `u32`.
fn number(at: usize) -> u32 {
    u32::try_from(at).expect("an index of four billion entries does not fit into memory")
}
