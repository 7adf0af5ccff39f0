//! A small histogram of latencies in steps of a quarter octave: at most some dozens of counts, and a quantile that is
//! never too low and at most a quarter too high.

use std::collections::BTreeMap;

use reach_schemas::Span;
use serde::{Deserialize, Serialize};

use crate::octave::{range_of, step_of};

/// Steps of a quarter octave.
const BITS: u32 = 2;

/// Fewer values than this tell nothing of a P99.
const VALUES_MIN: u32 = 20;
/// With so many values all counts are halved, so that the old wear off.
const VALUES_MAX: u32 = 1024;

/// How often values of each size were seen, the older the less.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quantiles {
    counts: BTreeMap<u16, u32>,
    total: u32,
}

impl Quantiles {
    /// Notes a value.
    pub fn record(&mut self, value: Span) {
        *self.counts.entry(step_of::<BITS>(value.as_ms())).or_default() += 1;
        self.total += 1;
        if self.total >= VALUES_MAX {
            self.counts.values_mut().for_each(|count| *count /= 2);
            self.counts.retain(|_, count| *count > 0);
            self.total = self.counts.values().sum();
        }
    }

    /// A value that 99 of 100 do not pass. None: too few were seen to tell.
    #[must_use]
    pub fn p99(&self) -> Option<Span> {
        if self.total < VALUES_MIN {
            return None;
        }
        let mut above = self.total / 100;
        for (step, count) in self.counts.iter().rev() {
            if *count > above {
                return Some(Span::from_ms(range_of::<BITS>(*step).1));
            }
            above -= count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_values_tell_nothing_and_one_in_a_hundred_is_left_out() {
        let mut seen = Quantiles::default();
        (0..19).for_each(|_| seen.record(Span::from_ms(100)));
        assert_eq!(seen.p99(), None);
        (0..980).for_each(|_| seen.record(Span::from_ms(100)));
        (0..9).for_each(|_| seen.record(Span::from_secs(60)));
        assert_eq!(seen.p99(), Some(Span::from_ms(111)));
        (0..9).for_each(|_| seen.record(Span::from_secs(60)));
        assert!(seen.p99() > Some(Span::from_secs(59)));
    }

    #[test]
    fn what_is_old_wears_off() {
        let mut seen = Quantiles::default();
        (0..1000).for_each(|_| seen.record(Span::from_secs(60)));
        (0..10_000).for_each(|_| seen.record(Span::from_ms(10)));
        assert_eq!(seen.p99(), Some(Span::from_ms(11)));
    }
}
