//! Values counted in fixed buckets, as Prometheus has its histograms.

/// Values counted by the first of the bounds that they do not pass, or beyond the last.
#[derive(Debug, Clone)]
pub struct Buckets {
    bounds: &'static [u64],
    counts: Vec<u64>,
    sum: u64,
}

impl Buckets {
    /// Nothing yet. The bounds grow.
    #[must_use]
    pub fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0 }
    }

    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum = self.sum.saturating_add(value);
    }

    /// The sum of all values, each times `unit`.
    #[must_use]
    pub fn sum(&self, unit: f64) -> f64 {
        scaled(self.sum, unit)
    }

    /// How many values there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The upper bound of each bucket times `unit`, the last one infinite, and how many values are in it alone.
    #[must_use]
    pub fn each(&self, unit: f64) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().map(|bound| scaled(*bound, unit)).chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().copied()).collect()
    }
}

/// By its inverse, which is a whole number for every unit in use, so that 250 ms is 0.25 s and not 0.25000000000000006.
fn scaled(value: u64, unit: f64) -> f64 {
    value as f64 / unit.recip().round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_is_in_the_bucket_that_ends_there() {
        let mut buckets = Buckets::new(&[10, 250_000]);
        [10, 11, 250_000, 250_001].iter().for_each(|value| buckets.record(*value));
        assert_eq!(buckets.each(1e-6), [(0.00001, 1), (0.25, 2), (f64::INFINITY, 1)]);
        assert_eq!((buckets.count(), buckets.sum(1.0)), (4, 500_022.0));
    }
}
