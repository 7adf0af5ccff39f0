//! Figures that are told apart by a label, up to a number of labels; what comes beyond counts as other. The place of
//! one of which nothing was heard for a window is given to the next that needs one.

use std::collections::BTreeMap;
use std::ops::Bound;

use reach_schemas::{Span, Timestamp};

use super::WINDOW;

/// How often it is looked whether a place can be given away.
const LOOK_EVERY: Span = Span::from_secs(10);

/// What is kept for each label.
#[derive(Debug, Clone)]
pub(super) struct Series<K, V> {
    max: usize,
    known: BTreeMap<K, (V, Timestamp)>,
    other: V,
    looked_at: Timestamp,
}

impl<K: Ord + Clone, V: Default> Series<K, V> {
    pub(super) fn new(max: usize) -> Self {
        Self { max, known: BTreeMap::new(), other: V::default(), looked_at: Timestamp::from_ms(0) }
    }

    /// What is kept for a label, or for those that are not told apart.
    pub(super) fn of(&mut self, label: &K, now: Timestamp) -> &mut V {
        if !self.known.contains_key(label) && !self.make_room(now) {
            return &mut self.other;
        }
        let known = &mut self.known;
        if !known.contains_key(label) {
            known.insert(label.clone(), (V::default(), now));
        }
        let (value, used_at) = known.get_mut(label).expect("the label was inserted just above or was there");
        *used_at = now;
        value
    }

    /// What is kept for those that have no label, or are not told apart.
    pub(super) const fn other_mut(&mut self) -> &mut V {
        &mut self.other
    }

    /// Whether one more label may be told apart.
    fn make_room(&mut self, now: Timestamp) -> bool {
        if self.known.len() >= self.max && now.since(self.looked_at) >= LOOK_EVERY {
            self.looked_at = now;
            self.known.retain(|_, (_, used_at)| now.since(*used_at) < WINDOW);
        }
        self.known.len() < self.max
    }

    /// Everything, by label; last, without one, what is not told apart.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Option<&K>, &V)> {
        self.after(None)
    }

    /// The same, of the labels after this one.
    pub(super) fn after(&self, label: Option<&K>) -> impl Iterator<Item = (Option<&K>, &V)> {
        let from = label.map_or(Bound::Unbounded, Bound::Excluded);
        let known = self.known.range::<K, _>((from, Bound::Unbounded)).map(|(label, (value, _))| (Some(label), value));
        known.chain([(None, &self.other)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_number_counts_as_other_until_a_place_is_free() {
        let at = |secs| Timestamp::from_ms(1_000_000) + Span::from_secs(secs);
        let mut series = Series::<u32, u32>::new(3);
        (0..5).for_each(|label| *series.of(&label, at(0)) += 1);
        *series.other_mut() += 10;
        assert_eq!(
            series.iter().map(|(label, value)| (label.copied(), *value)).collect::<Vec<_>>(),
            [(Some(0), 1), (Some(1), 1), (Some(2), 1), (None, 12)]
        );
        *series.of(&1, at(600)) += 1;
        *series.of(&7, at(899)) += 1;
        *series.of(&7, at(1000)) += 1;
        assert_eq!(
            series.iter().map(|(label, value)| (label.copied(), *value)).collect::<Vec<_>>(),
            [(Some(1), 2), (Some(7), 1), (None, 13)]
        );
    }
}
