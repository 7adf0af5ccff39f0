//! What happened lately, in slices of equal length: a slice is forgotten as a whole once it is older than the window.

use std::collections::VecDeque;

use reach_schemas::Timestamp;

/// So many slices of so many ms each, the newest included. A slice in which nothing happened takes no room.
#[derive(Debug, Clone)]
pub(super) struct Window<T, const SLICE_MS: u64, const SLICES: u64> {
    slices: VecDeque<(u64, T)>,
}

impl<T, const SLICE_MS: u64, const SLICES: u64> Default for Window<T, SLICE_MS, SLICES> {
    fn default() -> Self {
        Self { slices: VecDeque::new() }
    }
}

impl<T: Default, const SLICE_MS: u64, const SLICES: u64> Window<T, SLICE_MS, SLICES> {
    /// The slice of now; those that are too old are forgotten. What is reported a little late goes into the newest.
    pub(super) fn slice(&mut self, now: Timestamp) -> &mut T {
        let newest = self.slices.back().map_or(0, |(number, _)| *number);
        let number = (now.as_ms() / SLICE_MS).max(newest);
        while self.slices.front().is_some_and(|(old, _)| old + SLICES <= number) {
            self.slices.pop_front();
        }
        if self.slices.is_empty() || newest < number {
            self.slices.push_back((number, T::default()));
        }
        &mut self.slices.back_mut().expect("a slice was pushed just above or was there").1
    }

    /// The slices that are not too old now.
    pub(super) fn live(&self, now: Timestamp) -> impl Iterator<Item = &T> {
        self.last(SLICES, now)
    }

    /// The last so many slices, that of now included.
    pub(super) fn last(&self, slices: u64, now: Timestamp) -> impl Iterator<Item = &T> {
        let number = now.as_ms() / SLICE_MS;
        self.slices.iter().filter(move |(old, _)| old + slices > number).map(|(_, slice)| slice)
    }
}

#[cfg(test)]
mod tests {
    use reach_schemas::Span;

    use super::*;

    #[test]
    fn a_slice_is_kept_for_the_window_and_no_longer() {
        let start = Timestamp::from_ms(60_000);
        let at = |secs| start + Span::from_secs(secs);
        let mut window = Window::<u32, 10_000, 3>::default();
        *window.slice(at(0)) += 1;
        *window.slice(at(9)) += 1;
        *window.slice(at(25)) += 4;
        let sum = |window: &Window<u32, 10_000, 3>, secs| window.live(at(secs)).sum::<u32>();
        assert_eq!(
            [sum(&window, 25), sum(&window, 29), sum(&window, 30), sum(&window, 49), sum(&window, 50)],
            [6, 6, 4, 4, 0]
        );
        assert_eq!(window.last(1, at(25)).sum::<u32>(), 4);
        // A clock that was set back loses nothing and makes no second slice.
        *window.slice(at(3)) += 1;
        assert_eq!((sum(&window, 25), window.slices.len()), (7, 2));
        for second in 0..10_000 {
            *window.slice(at(second)) += 1;
        }
        assert_eq!(window.slices.len(), 3);
    }
}
