//! `Histogram` beside a sorted list.

use std::time::Duration;

use proptest::prelude::*;
use windrow_core::stats::histogram::Histogram;

fn histogram(nanos: &[u64]) -> Histogram {
    let mut latencies = Histogram::default();
    nanos
        .iter()
        .for_each(|nanos| latencies.record(Duration::from_nanos(*nanos), 1));
    latencies
}

proptest! {
    #[test]
    fn a_percentile_is_that_of_the_sorted_list_to_within_a_twentieth_and_never_above_its_longest(
        mut nanos in prop::collection::vec(prop_oneof![1000u64..1_000_000, 1000u64..10_000_000_000, 1000u64..1_000_000_000_000_000], 1..300),
        percent in 1u64..=100,
    ) {
        let found = histogram(&nanos).percentile(percent).expect("calls were counted").as_nanos();
        nanos.sort_unstable();
        let rank = (nanos.len() * percent as usize).div_ceil(100).max(1);
        let truth = u128::from(nanos[rank - 1]);
        prop_assert!(found.abs_diff(truth) <= truth / 20 + 1, "{found} for {truth}");
        prop_assert!(found <= nanos.last().copied().map_or(0, u128::from));
    }

    #[test]
    fn merging_is_counting_both(
        a in prop::collection::vec(0u64..1 << 40, 0..50),
        b in prop::collection::vec(0u64..1 << 40, 0..50),
    ) {
        let mut merged = histogram(&a);
        merged.add(&histogram(&b));
        let both: Vec<u64> = a.iter().chain(&b).copied().collect();
        prop_assert_eq!(&merged, &histogram(&both));
        prop_assert_eq!(merged.count(), both.len() as u64);
        merged.fade();
        prop_assert!(merged.count() <= both.len() as u64 / 2);
        merged.clear();
        prop_assert_eq!(merged, Histogram::default());
    }
}
