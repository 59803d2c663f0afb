//! The meter beside a list of every failure: the meter looks back over ten slices, so it counts at least what
//! happened in the last nine tenths of the window and at most what happened in the whole of it.

use std::time::Duration;

use proptest::prelude::*;
use windrow_core::ids::{ItemCount, Moment};
use windrow_core::items::error_budget::Meter;
use windrow_core::settings::{ErrorBudget, FailedAttempts, FailedLimit, Rate};

const WINDOW_NS: u64 = 10_000_000_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_meter_fires_between_nine_tenths_and_the_whole_window(
        per_second in 1u64..20,
        gaps in prop::collection::vec(prop_oneof![3 => 0u64..50_000_000, 1 => 0u64..3_000_000_000], 1..600),
    ) {
        let budget = ErrorBudget {
            failed_attempts: Rate::per_second(per_second).map(FailedAttempts::Rate),
            failed: None,
        };
        let (mut meter, mut now, mut seen) = (Meter::new(budget, Duration::from_nanos(WINDOW_NS)), 0u64, Vec::new());
        let allowed = (per_second * 10) as usize;
        for gap in gaps {
            now += gap;
            seen.push(now);
            let within = |span: u64| seen.iter().filter(|at| now - **at < span).count();
            let fires = meter.on_failed_attempt(0, Moment(now));
            prop_assert!(!fires || within(WINDOW_NS) > allowed, "too early: {}", within(WINDOW_NS));
            prop_assert!(fires || within(WINDOW_NS / 10 * 9) <= allowed, "too late: {}", within(WINDOW_NS));
        }
    }

    #[test]
    fn a_share_of_failed_items_is_exact(failed in 0u64..2000, total in 1u64..100_000, ppm in 0u32..1_000_001) {
        let limit = Some(FailedLimit::RatioPpm(ppm));
        let budget = ErrorBudget { failed_attempts: None, failed: limit };
        let exceeded = Meter::new(budget, Duration::from_secs(1)).is_failed_exceeded(failed, ItemCount(total));
        prop_assert_eq!(exceeded, failed * 1_000_000 > total * u64::from(ppm));
    }
}

#[test]
fn a_budget_changed_live_goes_on_counting_in_the_same_window_and_begins_anew_in_another() {
    let budget = |per_second| ErrorBudget {
        failed_attempts: Rate::per_second(per_second).map(FailedAttempts::Rate),
        failed: None,
    };
    let mut meter = Meter::new(budget(10), Duration::from_secs(10));
    (0..50).for_each(|_| assert!(!meter.on_failed_attempt(0, Moment(1))));
    meter.set(budget(5), Duration::from_secs(10));
    assert!(meter.on_failed_attempt(0, Moment(2)), "51 of 50");
    meter.set(budget(5), Duration::from_secs(20));
    assert!(!meter.on_failed_attempt(0, Moment(3)));
}
