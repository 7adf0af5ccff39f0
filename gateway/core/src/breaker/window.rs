//! The last results of a breaker, one bit each.

use serde::{Deserialize, Serialize};

/// The longest window; a policy that asks for more gets this.
const WINDOW_MAX: u32 = 64;

/// The last results: the newest is the lowest bit, a failure is a 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Window {
    failures: u64,
    len: u32,
}

impl Window {
    /// Adds a result and forgets those older than the last `size` (1 to 64).
    pub(super) fn push(&mut self, passed: bool, size: u32) {
        let size = size.clamp(1, WINDOW_MAX);
        let kept = u64::MAX >> (WINDOW_MAX - size);
        self.failures = ((self.failures << 1) | u64::from(!passed)) & kept;
        self.len = (self.len + 1).min(size);
    }

    pub(super) const fn len(self) -> u32 {
        self.len
    }

    /// The share of failures, 0 while there are no results.
    pub(super) fn failure_rate(self) -> f64 {
        f64::from(self.failures.count_ones()) / f64::from(self.len.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_results_count_whatever_the_size() {
        for size in [1, 10, 64, 1000] {
            let mut window = Window::default();
            for _ in 0..200 {
                window.push(false, size);
            }
            assert_eq!((window.len(), window.failure_rate()), (size.min(64), 1.0));
            for _ in 0..size.min(64) {
                window.push(true, size);
            }
            assert_eq!(window.failure_rate(), 0.0);
        }
    }
}
