//! Estimated storage for the results of a task, known before the storage is full.

/// Minimum number of results in a sample for an estimate: the packed size of fewer says little.
const SAMPLE_MIN: u64 = 100;

/// Sample of a task's results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Number of results in a few segments.
    pub results: u64,
    /// Stored size of these segments. Unit: bytes.
    pub bytes: u64,
}

impl Sample {
    /// Returns the estimated size of `results` results; `None` while the sample is too small. Unit: bytes.
    pub fn room_of(self, results: u64) -> Option<u64> {
        let known = self.results >= SAMPLE_MIN;
        known.then(|| scaled(results, self.bytes, self.results))
    }

    /// Returns the estimated size of the results of the `left` items, if the same share of them has one as of the
    /// `settled` ones; `None` while the sample is too small. Unit: bytes.
    pub fn room_needed(self, kept: u64, settled: u64, left: u64) -> Option<u64> {
        self.room_of(scaled(left, kept.min(settled), settled.max(1)))
    }
}

/// Returns `amount × part ÷ whole`, rounded down.
fn scaled(amount: u64, part: u64, whole: u64) -> u64 {
    let scaled = u128::from(amount) * u128::from(part) / u128::from(whole);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_are_left_take_what_those_before_them_took() {
        let sample = Sample {
            results: 1_000,
            bytes: 50_000,
        };
        assert_eq!(sample.room_of(10), Some(500));
        assert_eq!(sample.room_needed(40_000, 40_000, 1_000_000), Some(50_000_000));
        assert_eq!(
            sample.room_needed(10_000, 40_000, 1_000_000),
            Some(12_500_000),
            "a quarter has one"
        );
        assert_eq!(sample.room_needed(0, 40_000, 1_000_000), Some(0));
        assert_eq!(sample.room_needed(0, 0, 1_000_000), Some(0));
        let most = u64::MAX;
        assert_eq!(sample.room_needed(most, most, most), Some(most), "no overflow");
    }

    #[test]
    fn a_few_results_say_nothing() {
        let few = Sample {
            results: SAMPLE_MIN - 1,
            bytes: 9_000,
        };
        assert_eq!(few.room_needed(99, 99, 1_000_000), None);
        assert_eq!(Sample::default().room_of(1), None);
    }
}
