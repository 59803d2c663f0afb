//! Durations counted by powers of two of nanoseconds: bounds that are exact, whatever is merged.

use std::time::Duration;

use crate::stats::latency::Latencies;

/// One for each power of two of a `u64` of nanoseconds.
pub const OCTAVES: usize = 64;

/// A histogram that only grows, for people who watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Of durations from `2^n` to below `2^(n+1)` nanoseconds.
    counts: [u64; OCTAVES],
    nanos: u128,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: [0; OCTAVES],
            nanos: 0,
        }
    }
}

impl Histogram {
    /// What [`Histogram::counts`] and [`Histogram::nanos`] said.
    pub(super) fn of(counts: [u64; OCTAVES], nanos: u128) -> Histogram {
        Histogram { counts, nanos }
    }

    /// How many were from `2^n` to below `2^(n+1)` nanoseconds, for each `n`.
    pub fn counts(&self) -> &[u64; OCTAVES] {
        &self.counts
    }

    /// Their sum. Unit: nanoseconds.
    pub(super) fn nanos(&self) -> u128 {
        self.nanos
    }

    /// Counts a duration `times` times.
    pub fn record(&mut self, took: Duration, times: u64) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.counts[nanos.max(1).ilog2() as usize] += times;
        self.nanos += u128::from(nanos) * u128::from(times);
    }

    /// Counts `times` durations that lie evenly between two; many are counted in eight groups of equal ones.
    pub fn record_between(&mut self, first: Duration, last: Duration, times: u32) {
        let groups = times.min(8);
        let span =
            i128::try_from(last.as_nanos()).unwrap_or(0) - i128::try_from(first.as_nanos()).unwrap_or(0);
        for group in 0..groups {
            // The middle of its group; a single one is the first.
            let part = if groups > 1 {
                span * i128::from(group) / i128::from(groups - 1)
            } else {
                0
            };
            let nanos = i128::try_from(first.as_nanos()).unwrap_or(0) + part;
            let share = times / groups + u32::from(group < times % groups);
            self.record(
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)),
                u64::from(share),
            );
        }
    }

    /// Counts what a lane has seen.
    pub fn absorb(&mut self, seen: &Latencies) {
        for (count, more) in self.counts.iter_mut().zip(seen.by_octave()) {
            *count += more;
        }
        self.nanos += u128::from(seen.nanos());
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Histogram) {
        self.counts
            .iter_mut()
            .zip(other.counts)
            .for_each(|(mine, theirs)| *mine += theirs);
        self.nanos += other.nanos;
    }

    /// What came since an earlier picture of the same histogram.
    #[must_use]
    pub fn since(&self, before: &Histogram) -> Histogram {
        let mut fresh = self.clone();
        fresh
            .counts
            .iter_mut()
            .zip(before.counts)
            .for_each(|(now, then)| *now = now.saturating_sub(then));
        fresh.nanos = fresh.nanos.saturating_sub(before.nanos);
        fresh
    }

    /// The counts of the first `part` of a span of `whole`, as if they lay evenly in it; rounded down.
    #[must_use]
    pub(super) fn head(&self, part: u64, whole: u64) -> Histogram {
        let mut head = self.clone();
        head.counts
            .iter_mut()
            .for_each(|count| *count = share(*count, part, whole));
        head.nanos = self.nanos / u128::from(whole.max(1)) * u128::from(part.min(whole));
        head
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum. Unit: seconds.
    pub fn sum_seconds(&self) -> f64 {
        self.nanos as f64 / 1e9
    }

    /// The duration that `percent` of all did not exceed; none without any. An estimate: the power of two is the right
    /// one, and between two of them durations are taken to lie evenly.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let rank = (u128::from(self.count()) * u128::from(percent))
            .div_ceil(100)
            .max(1);
        let mut below = 0;
        for (octave, count) in self.counts.iter().map(|count| u128::from(*count)).enumerate() {
            if below + count >= rank {
                let floor = 1_u128 << octave;
                let nanos = floor + (rank - below) * floor / count;
                return Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
            }
            below += count;
        }
        None
    }

    /// How many were below `2^octave` nanoseconds.
    pub fn below(&self, octave: usize) -> u64 {
        self.counts.iter().take(octave).sum()
    }
}

/// `part` of `whole` of a count, rounded down.
pub(super) fn share(count: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(count) * u128::from(part.min(whole)) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_exact_and_lanes_are_taken_in() {
        let (mut direct, mut lane, mut absorbed) =
            (Histogram::default(), Latencies::default(), Histogram::default());
        for nanos in [5u64, 1023, 1024, 1025, 2047, 2048, 3_000_000, 70_000_000_000] {
            direct.record(Duration::from_nanos(nanos), 1);
            lane.record(Duration::from_nanos(nanos));
        }
        absorbed.absorb(&lane);
        assert_eq!(absorbed, direct);
        assert_eq!((direct.below(10), direct.below(11), direct.count()), (2, 5, 8));
        let before = direct.clone();
        direct.record(Duration::from_secs(2), 3);
        assert_eq!(direct.since(&before).count(), 3);
        assert_eq!(direct.since(&before).sum_seconds(), 6.0);
    }

    #[test]
    fn a_percentile_has_the_right_power_of_two() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50), None);
        (1..=1000).for_each(|ms| histogram.record(Duration::from_millis(ms), 1));
        for (percent, truth) in [(1, 0.01), (50, 0.5), (95, 0.95), (99, 0.99), (100, 1.0)] {
            let found = histogram
                .percentile(percent)
                .expect("some were counted")
                .as_secs_f64();
            assert!(found > truth / 2.0 && found < truth * 2.0, "{percent}: {found}");
        }
        let mut longest = Histogram::default();
        longest.record(Duration::MAX, 3);
        assert_eq!(longest.percentile(100), Some(Duration::from_nanos(u64::MAX)));
    }

    #[test]
    fn many_between_two_are_all_counted_and_none_lies_outside() {
        for times in [1, 2, 7, 8, 9, 1000] {
            let mut histogram = Histogram::default();
            histogram.record_between(Duration::from_nanos(4000), Duration::from_nanos(1024), times);
            assert_eq!(histogram.count(), u64::from(times));
            assert_eq!(
                (histogram.below(10), histogram.below(12)),
                (0, u64::from(times)),
                "{times}"
            );
        }
        let mut none = Histogram::default();
        none.record_between(Duration::ZERO, Duration::ZERO, 0);
        assert_eq!(none, Histogram::default());
    }
}
