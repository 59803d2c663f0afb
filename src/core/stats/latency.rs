//! How long calls take, as a histogram of quarter octaves: enough for a p95 to within 19 %, in 1 KiB.

use std::time::Duration;

/// Buckets: 4 for each power of two of nanoseconds.
const BUCKETS: usize = 256;

/// A histogram of durations that a lane fills and the core merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies {
    counts: Box<[u32; BUCKETS]>,
    total: u64,
    nanos: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            counts: Box::new([0; BUCKETS]),
            total: 0,
            nanos: 0,
        }
    }
}

impl Latencies {
    /// Counts one call.
    pub fn record(&mut self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(4);
        let exponent = 63 - nanos.leading_zeros();
        let quarter = (nanos >> (exponent - 2)) & 3;
        let bucket = (exponent * 4) as usize + quarter as usize;
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
        self.total += 1;
        self.nanos = self.nanos.saturating_add(nanos);
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Latencies) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine = mine.saturating_add(*theirs);
        }
        self.total += other.total;
        self.nanos = self.nanos.saturating_add(other.nanos);
    }

    /// Forgets half of what was counted, so that old calls fade.
    pub fn fade(&mut self) {
        self.counts.iter_mut().for_each(|count| *count /= 2);
        self.total = self.counts.iter().map(|count| u64::from(*count)).sum();
        self.nanos /= 2;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.total, self.nanos) = (0, 0);
    }

    /// How many calls were counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The sum of all. Unit: nanoseconds.
    pub(super) fn nanos(&self) -> u64 {
        self.nanos
    }

    /// How many were from `2^n` to below `2^(n+1)` nanoseconds, for each `n`.
    pub(super) fn by_octave(&self) -> impl Iterator<Item = u64> {
        self.counts
            .as_chunks::<4>()
            .0
            .iter()
            .map(|quarters| quarters.iter().copied().map(u64::from).sum())
    }

    /// The duration that `percent` of the calls did not exceed (the bucket's upper edge); none without calls.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let rank = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        })?;
        let (exponent, quarter) = (bucket as u32 / 4, bucket as u64 % 4);
        Some(Duration::from_nanos(
            ((u128::from(quarter + 5)) << exponent >> 2).min(u128::from(u64::MAX)) as u64,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_at_most_a_quarter_octave_above_the_truth() {
        let mut latencies = Latencies::default();
        (1..=1000u64).for_each(|ms| latencies.record(Duration::from_millis(ms)));
        for (percent, truth) in [(50, 0.5), (95, 0.95), (100, 1.0)] {
            let found = latencies
                .percentile(percent)
                .expect("calls were counted")
                .as_secs_f64();
            assert!(found >= truth && found <= truth * 1.26, "{percent}: {found}");
        }
    }

    #[test]
    fn extreme_durations_have_a_bucket() {
        let mut latencies = Latencies::default();
        latencies.record(Duration::ZERO);
        latencies.record(Duration::MAX);
        assert_eq!(latencies.count(), 2);
        assert!(latencies.percentile(100).is_some());
        assert_eq!(Latencies::default().percentile(95), None);
    }
}
