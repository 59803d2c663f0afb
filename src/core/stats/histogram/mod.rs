//! Histogram of durations in buckets that are at most a twentieth wide: the bounds stay exact, whatever is merged.

mod buckets;

use std::time::Duration;

pub(super) use buckets::BUCKETS;
use buckets::{bucket, ceiling, floor};

/// Histogram of durations. Uses memory only for buckets that are not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Buckets that are not empty, in ascending order.
    counts: Vec<(u16, u64)>,
    nanos: u128,
    /// Upper bound of all durations. Unit: nanoseconds.
    longest: u64,
}

impl Histogram {
    /// Restores a histogram from [`Histogram::counts`], [`Histogram::nanos`] and [`Histogram::longest`]. If the
    /// longest is missing, as in the counts of an earlier version, the last bucket bounds it.
    pub(super) fn of(counts: Vec<(u16, u64)>, nanos: u128, longest: u64) -> Histogram {
        let mut histogram = Histogram {
            counts,
            nanos,
            longest,
        };
        if longest == 0 {
            histogram.longest = u64::MAX;
            histogram.bound();
        }
        histogram
    }

    /// Returns the buckets that are not empty, in ascending order.
    pub(super) fn counts(&self) -> &[(u16, u64)] {
        &self.counts
    }

    /// Returns the sum of the durations. Unit: nanoseconds.
    pub(super) fn nanos(&self) -> u128 {
        self.nanos
    }

    /// Returns an upper bound of all durations. Unit: nanoseconds.
    pub(super) fn longest(&self) -> u64 {
        self.longest
    }

    /// Counts a duration `times` times.
    pub fn record(&mut self, took: Duration, times: u64) {
        if times == 0 {
            return;
        }
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.count_in(bucket(nanos), times);
        self.nanos += u128::from(nanos) * u128::from(times);
        self.longest = self.longest.max(nanos);
    }

    /// Counts durations that are known only approximately, and whose sum is counted already.
    pub(super) fn place(&mut self, about: Duration, times: u64) {
        let nanos = self.nanos;
        self.record(about, times);
        self.nanos = nanos;
    }

    fn count_in(&mut self, bucket: u16, times: u64) {
        match self.counts.binary_search_by_key(&bucket, |(at, _)| *at) {
            Ok(at) => self.counts[at].1 += times,
            Err(at) => self.counts.insert(at, (bucket, times)),
        }
    }

    /// Counts `times` durations spread evenly between two; many are counted in eight groups of equal ones.
    pub fn record_between(&mut self, first: Duration, last: Duration, times: u32) {
        let groups = times.min(8);
        let span =
            i128::try_from(last.as_nanos()).unwrap_or(0) - i128::try_from(first.as_nanos()).unwrap_or(0);
        for group in 0..groups {
            // Groups are spread from `first` to `last`; a single one is at `first`.
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

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Histogram) {
        for (bucket, times) in &other.counts {
            self.count_in(*bucket, *times);
        }
        self.nanos += other.nanos;
        self.longest = self.longest.max(other.longest);
    }

    /// Halves all counts, so that old durations fade.
    pub fn fade(&mut self) {
        self.counts.iter_mut().for_each(|(_, count)| *count /= 2);
        self.nanos /= 2;
        self.bound();
    }

    /// Resets all counts to zero.
    pub fn clear(&mut self) {
        self.counts.clear();
        (self.nanos, self.longest) = (0, 0);
    }

    /// Drops empty buckets, and bounds the longest by what is left.
    fn bound(&mut self) {
        self.counts.retain(|(_, count)| *count > 0);
        let most = self.counts.last().map_or(0, |(last, _)| ceiling(*last));
        self.longest = self.longest.min(most);
    }

    /// Returns the counts since an earlier snapshot of the same histogram.
    #[must_use]
    pub fn since(&self, before: &Histogram) -> Histogram {
        let mut fresh = self.clone();
        let mut then = before.counts.iter().peekable();
        for (bucket, now) in &mut fresh.counts {
            while then.next_if(|(at, _)| at < bucket).is_some() {}
            if let Some((_, count)) = then.next_if(|(at, _)| at == bucket) {
                *now = now.saturating_sub(*count);
            }
        }
        fresh.nanos = fresh.nanos.saturating_sub(before.nanos);
        fresh.bound();
        fresh
    }

    /// Returns the counts of the first `part` of a span of `whole`, assuming an even distribution; rounded down.
    #[must_use]
    pub(super) fn head(&self, part: u64, whole: u64) -> Histogram {
        let mut head = self.clone();
        head.counts
            .iter_mut()
            .for_each(|(_, count)| *count = share(*count, part, whole));
        head.nanos = self.nanos / u128::from(whole.max(1)) * u128::from(part.min(whole));
        head.bound();
        head
    }

    /// Returns the number of durations that were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Returns the sum of the durations. Unit: seconds.
    pub fn sum_seconds(&self) -> f64 {
        self.nanos as f64 / 1e9
    }

    /// Returns the duration that `percent` of all did not exceed, or `None` without any. An estimate to within a
    /// twentieth: the bucket is exact, and durations are assumed to be spread evenly in it. Never longer than the
    /// longest.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let rank = (u128::from(self.count()) * u128::from(percent))
            .div_ceil(100)
            .max(1);
        let mut below = 0;
        for (bucket, count) in &self.counts {
            let count = u128::from(*count);
            if below + count >= rank {
                let from = floor(*bucket).min(self.longest);
                let width = u128::from(ceiling(*bucket).min(self.longest) - from);
                let part = u64::try_from(width * (rank - below) / count).unwrap_or(0);
                return Some(Duration::from_nanos(from + part));
            }
            below += count;
        }
        None
    }

    /// Counts the durations shorter than `bound`, which must be a bound of the buckets.
    pub fn below(&self, bound: Duration) -> u64 {
        let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
        let shorter = self.counts.iter().take_while(|(at, _)| ceiling(*at) <= nanos);
        shorter.map(|(_, count)| count).sum()
    }

    /// Returns the counts in groups coarse enough for people, six a decade, each with its bounds. Empty groups are
    /// left out.
    pub fn groups(&self) -> Vec<(Duration, Duration, u64)> {
        let mut groups: Vec<(u16, u16, u64)> = Vec::new();
        for (bucket, count) in &self.counts {
            let begin = buckets::group(*bucket);
            match groups.last_mut() {
                Some((first, last, sum)) if *first == begin => (*last, *sum) = (*bucket, *sum + count),
                _ => groups.push((begin, *bucket, *count)),
            }
        }
        let whole = |(first, last, count): (u16, u16, u64)| {
            let to = (last..BUCKETS_END)
                .find(|at| buckets::group(at + 1) != first)
                .map_or(u64::MAX, ceiling);
            (
                Duration::from_nanos(floor(first)),
                Duration::from_nanos(to),
                count,
            )
        };
        groups.into_iter().map(whole).collect()
    }
}

/// Number of the last bucket.
const BUCKETS_END: u16 = (buckets::BUCKETS - 1) as u16;

/// Returns `part` of `whole` of a count, rounded down.
pub(super) fn share(count: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(count) * u128::from(part.min(whole)) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn bounds_are_exact_and_differences_are_whole() {
        let mut histogram = Histogram::default();
        for nanos in [5_u64, 999, 1000, 1024, 299_999_999, 300_000_000, 70_000_000_000] {
            histogram.record(Duration::from_nanos(nanos), 1);
        }
        assert_eq!(
            (
                histogram.below(millis(300)),
                histogram.below(Duration::from_micros(1)),
                histogram.count()
            ),
            (5, 2, 7)
        );
        let before = histogram.clone();
        histogram.record(Duration::from_secs(2), 3);
        let fresh = histogram.since(&before);
        assert_eq!((fresh.count(), fresh.sum_seconds()), (3, 6.0));
        assert!(fresh.percentile(100) <= Some(millis(2100)), "{fresh:?}");
        let mut sum = before;
        sum.add(&fresh);
        assert_eq!(sum, histogram);
    }

    #[test]
    fn a_percentile_is_within_a_twentieth_of_the_truth() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50), None);
        (1..=1000).for_each(|ms| histogram.record(millis(ms), 1));
        for (percent, truth) in [(1, 0.01), (50, 0.5), (95, 0.95), (99, 0.99), (100, 1.0)] {
            let found = histogram
                .percentile(percent)
                .expect("some were counted")
                .as_secs_f64();
            assert!((found / truth - 1.0).abs() < 0.051, "{percent}: {found}");
        }
    }

    #[test]
    fn no_percentile_is_above_the_longest_duration() {
        let mut histogram = Histogram::default();
        (0..90).for_each(|_| histogram.record(millis(20), 1));
        (0..10).for_each(|_| histogram.record(Duration::from_secs(30), 1));
        assert_eq!(
            histogram.percentile(99).map(|p99| p99 <= Duration::from_secs(30)),
            Some(true)
        );
        assert_eq!(histogram.percentile(100), Some(Duration::from_secs(30)));
        let mut longest = Histogram::default();
        longest.record(Duration::MAX, 3);
        assert_eq!(longest.percentile(100), Some(Duration::from_nanos(u64::MAX)));
    }

    #[test]
    fn many_between_two_are_all_counted_and_none_lies_outside() {
        for times in [1, 2, 7, 8, 9, 1000] {
            let mut histogram = Histogram::default();
            histogram.record_between(Duration::from_micros(4), Duration::from_micros(1), times);
            assert_eq!(histogram.count(), u64::from(times));
            let below = |micros| histogram.below(Duration::from_micros(micros));
            assert_eq!((below(1), below(5)), (0, u64::from(times)), "{times}");
        }
        let mut none = Histogram::default();
        none.record_between(Duration::ZERO, Duration::ZERO, 0);
        assert_eq!(none, Histogram::default());
    }

    #[test]
    fn what_fades_is_gone_in_the_end() {
        let mut histogram = Histogram::default();
        histogram.record(millis(5), 8);
        histogram.record(millis(500), 1);
        histogram.fade();
        assert_eq!(
            (histogram.count(), histogram.percentile(100) < Some(millis(6))),
            (4, true)
        );
        (0..3).for_each(|_| histogram.fade());
        assert_eq!((histogram.count(), histogram.percentile(95)), (0, None));
    }

    #[test]
    fn groups_have_everything_once() {
        let mut histogram = Histogram::default();
        for took in [0, 11, 14, 15, 16, 72, 99, 100] {
            histogram.record(millis(took), 2);
        }
        let found = histogram
            .groups()
            .into_iter()
            .map(|(from, to, count)| (from.as_millis(), to.as_millis(), count));
        let expected = [(0, 0, 2), (10, 15, 4), (15, 20, 4), (70, 100, 4), (100, 150, 2)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
