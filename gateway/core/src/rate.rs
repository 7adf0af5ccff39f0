//! How fast somebody may ask: an even pace with room for a burst (the generic cell rate algorithm, ATM Forum TM 4.0, which
//! is a token bucket that keeps one number).

use reach_schemas::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// How fast, and how much at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// So many a second, at least 1.
    pub per_second: u32,
    /// So many may come at once, at least 1.
    pub burst: u32,
}

/// What somebody has used of their rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// When the next would come if all came evenly, in microseconds.
    next_us: u64,
}

const US_PER_S: u64 = 1_000_000;

const fn us(at: Timestamp) -> u64 {
    at.as_ms().saturating_mul(1000)
}

/// How far apart they are at an even pace, in microseconds.
fn every(rate: Rate) -> u64 {
    US_PER_S / u64::from(rate.per_second.max(1))
}

/// How far ahead of that they may be.
fn ahead(rate: Rate) -> u64 {
    every(rate) * u64::from(rate.burst.max(1) - 1)
}

impl Pace {
    /// Lets one more through.
    ///
    /// # Errors
    /// It comes too early: how long to wait.
    pub fn take(&mut self, rate: Rate, now: Timestamp) -> Result<(), Span> {
        self.look(rate, now)?;
        self.next_us = self.next_us.max(us(now)) + every(rate);
        Ok(())
    }

    /// Whether one more would be let through now.
    ///
    /// # Errors
    /// It comes too early: how long to wait.
    pub fn look(&self, rate: Rate, now: Timestamp) -> Result<(), Span> {
        let free_us = self.next_us.saturating_sub(ahead(rate));
        let early_us = free_us.saturating_sub(us(now));
        if early_us == 0 { Ok(()) } else { Err(Span::from_ms(early_us.div_ceil(1000))) }
    }

    /// Counts one more that was not held up, also beyond what may be used: who owes waits longer, but no longer than `most`.
    pub fn owe(&mut self, rate: Rate, most: Span, now: Timestamp) {
        let last = us(now) + ahead(rate) + most.as_ms().saturating_mul(1000);
        self.next_us = (self.next_us.max(us(now)) + every(rate)).min(last);
    }

    /// Whether nothing of the rate is used any more.
    #[must_use]
    pub const fn is_idle(&self, now: Timestamp) -> bool {
        self.next_us <= now.as_ms() * 1000
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(1_000_000 + ms)
    }

    #[test]
    fn a_burst_passes_and_then_an_even_pace() {
        let rate = Rate { per_second: 10, burst: 3 };
        let mut pace = Pace::default();
        assert_eq!((0..10).filter(|_| pace.take(rate, at(0)).is_ok()).count(), 3);
        assert_eq!(pace.take(rate, at(0)), Err(Span::from_ms(100)));
        assert_eq!((pace.take(rate, at(100)), pace.take(rate, at(150))), (Ok(()), Err(Span::from_ms(50))));
        assert!(!pace.is_idle(at(300)) && pace.is_idle(at(400)));
        assert_eq!((0..10).filter(|_| pace.take(rate, at(5000)).is_ok()).count(), 3, "the burst is whole again");
    }

    proptest! {
        #[test]
        fn over_any_time_no_more_passes_than_the_rate_and_one_burst(
            per_second in 1_u32..5000, burst in 1_u32..100, gaps in proptest::collection::vec(0_u64..50, 1..400)
        ) {
            let (rate, mut pace, mut now) = (Rate { per_second, burst }, Pace::default(), 0);
            let mut passed = 0_u64;
            for gap in &gaps {
                now += gap;
                passed += u64::from(pace.take(rate, at(now)).is_ok());
            }
            // The time of one is cut to whole microseconds.
            let most = u64::from(burst) + now * 1000 / (US_PER_S / u64::from(per_second)) + 1;
            prop_assert!(passed <= most, "{passed} of {most}");
        }
    }
}
