//! A small histogram of latencies in steps of a quarter octave: at most some dozens of counts, and a quantile that is
//! never too low and at most a quarter too high.

use std::collections::BTreeMap;

use reach_schemas::Span;
use serde::{Deserialize, Serialize};

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
        *self.counts.entry(step_of(value.as_ms())).or_default() += 1;
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
                return Some(Span::from_ms(highest_in(*step)));
            }
            above -= count;
        }
        None
    }
}

/// The quarter octave of a value: values below 4 have a step of their own each.
fn step_of(ms: u64) -> u16 {
    if ms < 4 {
        return ms as u16;
    }
    let octave = 63 - ms.leading_zeros();
    let quarter = (ms >> (octave - 2)) & 3;
    ((octave - 1) * 4) as u16 + quarter as u16
}

/// The highest value of a step.
fn highest_in(step: u16) -> u64 {
    if step < 4 {
        return u64::from(step);
    }
    let (octave, quarter) = (u32::from(step) / 4 + 1, u128::from(step) % 4);
    let end = (5 + quarter) << (octave - 2);
    u64::try_from(end - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn a_step_holds_its_value_and_is_at_most_a_quarter_wide(ms in 0_u64..=u64::MAX) {
            let high = highest_in(step_of(ms));
            prop_assert!(high >= ms && u128::from(high) <= u128::from(ms) * 5 / 4 + 1, "{ms} in a step up to {high}");
            prop_assert!(step_of(high) == step_of(ms));
        }
    }
}
