//! How long something took: of late in fine steps, from which quantiles are read, and ever since the start in fixed
//! buckets, as Prometheus has them.

use reach_schemas::Timestamp;
use reach_schemas::call::Latency as Figures;

use super::buckets::Buckets;
use super::window::Window;
use crate::octave::{range_of, step_of};

/// Steps of a sixteenth of an octave, told by their middle: the relative error is at most 1/32.
const BITS: u32 = 4;
/// What takes longer counts as this long: 71 minutes.
const MICROS_MAX: u64 = (1 << 32) - 1;
/// How many steps there are up to it: 464.
const STEPS: usize = step_of::<BITS>(MICROS_MAX) as usize + 1;

/// How often each step was seen, in the order of the steps.
#[derive(Debug, Clone, Default)]
struct Steps(Vec<(u16, u32)>);

impl Steps {
    fn record(&mut self, step: u16) {
        match self.0.binary_search_by_key(&step, |(step, _)| *step) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(1),
            Err(at) => self.0.insert(at, (step, 1)),
        }
    }
}

/// How long something took.
#[derive(Debug, Clone)]
pub struct Latency {
    recent: Window<Steps, 60_000, 15>,
    total: Buckets,
}

impl Latency {
    /// Nothing yet; the buckets end at these values in microseconds.
    pub(super) fn new(bounds: &'static [u64]) -> Self {
        Self { recent: Window::default(), total: Buckets::new(bounds) }
    }

    pub(super) fn record(&mut self, micros: u64, now: Timestamp) {
        self.recent.slice(now).record(step_of::<BITS>(micros.min(MICROS_MAX)));
        self.total.record(micros);
    }

    /// All values since the start, in microseconds.
    #[must_use]
    pub const fn total(&self) -> &Buckets {
        &self.total
    }
}

/// The quantiles of the last 15 minutes over all of these together. None: nothing was measured.
pub(super) fn figures<'a>(of: impl IntoIterator<Item = &'a Latency>, now: Timestamp) -> Option<Figures> {
    let mut counts = [0_u64; STEPS];
    let (mut count, mut highest) = (0, 0);
    for slice in of.into_iter().flat_map(|latency| latency.recent.live(now)) {
        for (step, seen) in &slice.0 {
            counts[usize::from(*step)] += u64::from(*seen);
            (count, highest) = (count + u64::from(*seen), highest.max(usize::from(*step)));
        }
    }
    if count == 0 {
        return None;
    }
    let counts = &counts[..=highest];
    let quantile = |hundredths: u64| {
        // The value at the nearest rank: as many hundredths of all values are at or below it.
        let mut below = (count * hundredths).div_ceil(100);
        let at = counts.iter().position(|here| {
            let is_here = *here >= below;
            below = below.saturating_sub(*here);
            is_here
        });
        let (low, high) = range_of::<BITS>(at.and_then(|step| u16::try_from(step).ok()).unwrap_or_default());
        (low + high) as f64 / 2e3
    };
    Some(Figures { count, p50_ms: quantile(50), p90_ms: quantile(90), p95_ms: quantile(95), p99_ms: quantile(99) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reach_schemas::Span;

    use super::*;

    const BOUNDS: &[u64] = &[10, 1000];

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_ms(60_000_000) + Span::from_secs(secs)
    }

    #[test]
    fn quantiles_are_of_the_last_fifteen_minutes_and_buckets_of_all_time() {
        let mut latency = Latency::new(BOUNDS);
        (0..100).for_each(|_| latency.record(5, at(0)));
        (0..100).for_each(|_| latency.record(4_000, at(840)));
        let both = figures([&latency], at(840)).unwrap();
        assert_eq!((both.count, both.p50_ms), (200, 0.005));
        assert_eq!(figures([&latency], at(900)).unwrap().count, 100);
        assert_eq!(figures([&latency], at(2000)), None);
        assert_eq!((latency.total().count(), latency.total().sum(1e-6)), (200, 0.4005));
    }

    #[test]
    fn however_long_it_takes_and_however_often_the_room_is_bounded() {
        let mut latency = Latency::new(BOUNDS);
        let mut rng = fastrand::Rng::with_seed(1);
        latency.record(0, at(0));
        for _ in 0..200_000 {
            let micros = 1_u64 << rng.u32(0..63);
            latency.record(micros + rng.u64(..micros), at(0));
        }
        assert_eq!(latency.recent.live(at(0)).map(|slice| slice.0.len()).max(), Some(STEPS));
        assert_eq!(STEPS, 464);
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_a_thirtysecond_of_the_value_at_its_rank(
            values in prop::collection::vec(prop_oneof![0_u64..1000, 0_u64..10_000_000, 0..=MICROS_MAX], 1..300),
        ) {
            let mut parts = [Latency::new(BOUNDS), Latency::new(BOUNDS)];
            for (number, value) in values.iter().enumerate() {
                parts[number % 2].record(*value, at(number as u64));
            }
            let told = figures(&parts, at(values.len() as u64)).unwrap();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for (hundredths, told_ms) in [(50, told.p50_ms), (90, told.p90_ms), (95, told.p95_ms), (99, told.p99_ms)] {
                let exact = sorted[(sorted.len() * hundredths).div_ceil(100) - 1] as f64;
                prop_assert!((told_ms * 1e3 - exact).abs() <= exact / 32.0, "P{hundredths}: {told_ms} ms for {exact} us");
            }
        }
    }
}
