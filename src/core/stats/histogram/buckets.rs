//! Buckets of durations: each at most a twentieth wide, with readable bounds: 25 ms, 300 ms, 2.5 s.
//!
//! A decade has 70 buckets: from 10 to 20 in steps of 0.5, from 20 to 50 in steps of 1, from 50 to 100 in steps of
//! 2.5.

/// Number of buckets in a power of ten.
const DECADE: usize = 70;
/// Number of powers of ten, from a microsecond on: up to eleven days.
const DECADES: usize = 12;
/// Lower bound of the decades; shorter durations share one bucket. Unit: nanoseconds.
const FIRST: u64 = 1000;

/// Number of all buckets: one is below the decades, and one above.
pub(in crate::stats) const BUCKETS: usize = DECADE * DECADES + 2;

/// Returns the bucket of a duration. Unit: nanoseconds.
pub(super) fn bucket(nanos: u64) -> u16 {
    if nanos < FIRST {
        return 0;
    }
    let exponent = nanos.ilog10();
    let decade = (exponent - FIRST.ilog10()) as usize;
    if decade >= DECADES {
        return (BUCKETS - 1) as u16;
    }
    // The first three digits.
    let digits = (nanos / 10_u64.pow(exponent - 2)) as usize;
    let within = match digits {
        ..200 => (digits - 100) / 5,
        200..500 => 20 + (digits - 200) / 10,
        _ => 50 + (digits - 500) / 25,
    };
    (1 + decade * DECADE + within) as u16
}

/// Returns the shortest duration of a bucket. Unit: nanoseconds.
pub(super) fn floor(bucket: u16) -> u64 {
    let Some(at) = usize::from(bucket).checked_sub(1) else {
        return 0;
    };
    let (decade, within) = (at / DECADE, (at % DECADE) as u64);
    let digits = match within {
        ..20 => 100 + within * 5,
        20..50 => 200 + (within - 20) * 10,
        _ => 500 + (within - 50) * 25,
    };
    digits * (FIRST / 100) * 10_u64.pow(decade as u32)
}

/// Returns the exclusive upper bound of a bucket; the last one has none. Unit: nanoseconds.
pub(super) fn ceiling(bucket: u16) -> u64 {
    match usize::from(bucket) + 1 {
        BUCKETS.. => u64::MAX,
        _ => floor(bucket + 1),
    }
}

/// Returns the first bucket of a coarse group, six a decade: 1, 1.5, 2, 3, 5 and 7.
pub(super) fn group(bucket: u16) -> u16 {
    const STARTS: [u16; 6] = [0, 10, 20, 30, 50, 58];
    let Some(at) = bucket.checked_sub(1) else { return 0 };
    let (decade, within) = (at / DECADE as u16, at % DECADE as u16);
    let start = STARTS.into_iter().rev().find(|start| *start <= within);
    1 + decade * DECADE as u16 + start.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_people_write_are_bounds() {
        let millis = [
            1, 5, 10, 15, 25, 45, 50, 75, 100, 250, 300, 400, 750, 1500, 2500, 30_000, 60_000,
        ];
        for bound in millis.map(|millis| millis * 1_000_000_u64) {
            assert_eq!(floor(bucket(bound)), bound);
        }
    }

    #[test]
    fn groups_begin_where_people_would_cut() {
        let begins = |millis: u64| floor(group(bucket(millis * 1_000_000))) / 1_000_000;
        assert_eq!(
            [10, 14, 15, 29, 30, 69, 70, 99].map(begins),
            [10, 10, 15, 20, 30, 50, 70, 70]
        );
        assert_eq!(group(0), 0);
    }

    proptest! {
        #[test]
        fn a_duration_lies_in_its_bucket_which_is_a_twentieth_wide(nanos in any::<u64>(), shift in 0_u32..64) {
            let nanos = nanos >> shift;
            let own = bucket(nanos);
            prop_assert!(floor(own) <= nanos && usize::from(own) < BUCKETS);
            if usize::from(own) < BUCKETS - 1 {
                prop_assert!(nanos < ceiling(own));
            }
            if own > 0 && usize::from(own) < BUCKETS - 1 {
                prop_assert!(ceiling(own) - floor(own) <= floor(own) / 20);
            }
        }
    }
}
