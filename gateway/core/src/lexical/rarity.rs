//! How rare a term is, counted in what is said and not in how often it is offered: one capability that fifty agents
//! offer is one, and its words are as telling as if one agent offered it.

use std::collections::BTreeMap;

/// The name and the words of a capability as one number, the same for all that say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Likeness(pub(super) u64);

/// Documents of one likeness. What their agents say of themselves may still differ.
#[derive(Debug, Clone, Default)]
struct Kin {
    documents: u32,
    /// Numbers of terms, sorted, and how many of these documents have each.
    terms: Vec<(u32, u32)>,
}

/// Counts for each term how many likenesses it stands in.
#[derive(Debug, Clone)]
pub(super) struct Rarity {
    kin: BTreeMap<Likeness, Kin>,
    /// By number of term.
    holders: Vec<u32>,
    imagined: f32,
}

impl Rarity {
    /// One that has counted nothing, beside so many documents that are only imagined.
    pub(super) const fn new(imagined: f32) -> Self {
        Rarity { kin: BTreeMap::new(), holders: Vec::new(), imagined }
    }

    /// Counts a document with its terms, sorted by number.
    pub(super) fn add(&mut self, likeness: Likeness, terms: impl ExactSizeIterator<Item = u32>) {
        let kin = self.kin.entry(likeness).or_default();
        kin.documents += 1;
        kin.terms.reserve_exact(if kin.terms.is_empty() { terms.len() } else { 0 });
        for id in terms {
            match kin.terms.binary_search_by_key(&id, |(other, _)| *other) {
                Ok(at) => kin.terms[at].1 += 1,
                Err(at) => {
                    kin.terms.insert(at, (id, 1));
                    let place = id as usize;
                    self.holders.resize(self.holders.len().max(place + 1), 0);
                    self.holders[place] += 1;
                }
            }
        }
    }

    /// Takes a counted document back.
    pub(super) fn remove(&mut self, likeness: Likeness, terms: impl Iterator<Item = u32>) {
        let Some(kin) = self.kin.get_mut(&likeness) else { return };
        kin.documents -= 1;
        for id in terms {
            let Ok(at) = kin.terms.binary_search_by_key(&id, |(other, _)| *other) else { continue };
            kin.terms[at].1 -= 1;
            if kin.terms[at].1 == 0 {
                kin.terms.remove(at);
                self.holders[id as usize] -= 1;
            }
        }
        if kin.documents == 0 {
            self.kin.remove(&likeness);
        }
    }

    /// How much a numbered term says.
    pub(super) fn of(&self, id: u32) -> f32 {
        self.in_so_many(self.holders.get(id as usize).copied().unwrap_or(0))
    }

    /// How much a term says that nobody has.
    pub(super) fn of_unknown(&self) -> f32 {
        self.in_so_many(0)
    }

    fn in_so_many(&self, holders: u32) -> f32 {
        let all = self.kin.len() as f32 + self.imagined;
        let holders = holders as f32;
        (1.0 + (all - holders + 0.5) / (holders + 0.5)).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_again_is_counted_once_and_forgotten_with_the_last() {
        let mut rarity = Rarity::new(40.0);
        rarity.add(Likeness(1), [3, 5].into_iter());
        rarity.add(Likeness(2), [5].into_iter());
        let (of_three, of_five) = (rarity.of(3), rarity.of(5));
        rarity.add(Likeness(1), [3, 4, 5].into_iter());
        assert_eq!((rarity.of(3), rarity.of(5)), (of_three, of_five));
        assert_eq!(rarity.of(4), of_three, "a word of one agent's own");
        rarity.remove(Likeness(1), [3, 5].into_iter());
        assert_eq!((rarity.of(3), rarity.of(5)), (of_three, of_five));
        rarity.remove(Likeness(1), [3, 4, 5].into_iter());
        rarity.remove(Likeness(2), [5].into_iter());
        assert!(rarity.kin.is_empty() && rarity.holders.iter().all(|holders| *holders == 0));
    }
}
