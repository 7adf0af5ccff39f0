//! Who goes first of those that share a bounded number of places: owners in turn, so that what one has waiting, however much
//! it is and however long each takes, holds up no other's longer than until a place comes free.

use std::collections::BTreeMap;

/// Puts items of several owners into the order in which they get places: of one owner in the order in which they come, and
/// of all owners the one first that has the fewest, `has` of which it holds already. Of equals the one that came first.
pub fn in_turn<O: Ord + Clone, T>(items: Vec<(O, T)>, has: impl Fn(&O) -> u32) -> Vec<T> {
    let mut counts: BTreeMap<O, u32> = BTreeMap::new();
    let mut ranked: Vec<(u32, T)> = Vec::with_capacity(items.len());
    for (owner, item) in items {
        let held = has(&owner);
        let count = counts.entry(owner).or_insert(held);
        ranked.push((*count, item));
        *count = count.saturating_add(1);
    }
    // A stable sort: equals stay in their order.
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(items: &str, has: &[(char, u32)], expected: &str) {
        let items = items.split(' ').map(|item| (item.chars().next().unwrap(), item)).collect();
        let has = |owner: &char| has.iter().find(|(of, _)| of == owner).map_or(0, |(_, count)| *count);
        assert_eq!(in_turn(items, has).join(" "), expected);
    }

    #[test]
    fn whoever_has_the_fewest_places_goes_first_and_nobody_overtakes_their_own() {
        check("a1 a2 a3 a4 b1 b2 c1", &[], "a1 b1 c1 a2 b2 a3 a4");
        check("a1 a2 a3 b1 b2", &[('a', 2)], "b1 b2 a1 a2 a3");
        check("a1 a2 b1", &[('a', 9), ('b', 9)], "a1 b1 a2");
    }
}
