//! `Latencies` beside a sorted list.

use std::time::Duration;

use proptest::prelude::*;
use windrow_core::stats::latency::Latencies;

fn histogram(nanos: &[u64]) -> Latencies {
    let mut latencies = Latencies::default();
    nanos
        .iter()
        .for_each(|nanos| latencies.record(Duration::from_nanos(*nanos)));
    latencies
}

proptest! {
    #[test]
    fn a_percentile_is_the_sorted_lists_or_at_most_a_quarter_above(
        mut nanos in prop::collection::vec(prop_oneof![4u64..1000, 4u64..10_000_000_000, 4u64..1 << 60], 1..300),
        percent in 1u64..=100,
    ) {
        let found = histogram(&nanos).percentile(percent).expect("calls were counted").as_nanos();
        nanos.sort_unstable();
        let rank = (nanos.len() * percent as usize).div_ceil(100).max(1);
        let truth = u128::from(nanos[rank - 1]);
        prop_assert!(found >= truth && found <= truth + truth / 4 + 1, "{found} for {truth}");
    }

    #[test]
    fn merging_is_counting_both(
        a in prop::collection::vec(0u64..1 << 40, 0..50),
        b in prop::collection::vec(0u64..1 << 40, 0..50),
    ) {
        let mut merged = histogram(&a);
        merged.merge(&histogram(&b));
        let both: Vec<u64> = a.iter().chain(&b).copied().collect();
        prop_assert_eq!(&merged, &histogram(&both));
        prop_assert_eq!(merged.count(), both.len() as u64);
        merged.fade();
        prop_assert!(merged.count() <= both.len() as u64 / 2);
        merged.clear();
        prop_assert_eq!(merged, Latencies::default());
    }
}
