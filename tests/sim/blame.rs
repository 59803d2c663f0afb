//! Calls that a bad item costs, and good items that are given up, where others fail too.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::time::Duration;

use windrow_core::execution::RunEnd;
use windrow_core::settings::Auto;
use windrow_core::task::lifecycle::StopReason;
use windrow_core::task::{Canary, CanaryThen};

use crate::outage::{Case, Fault, Story, play};

/// Of more seeds that were played by hand (`SIM_BLAME=200`) those are the first.
const SEEDS: u64 = 3;

fn seeds() -> std::ops::RangeInclusive<u64> {
    1..=crate::number("SIM_BLAME").unwrap_or(SEEDS)
}

fn case(total: u64, seed: u64) -> Case {
    let mut case = Case::new(Some(40), total);
    case.tuning.judge_after = Auto::Auto;
    case.tuning.timeout = Duration::from_secs(2);
    case.seed = seed;
    case
}

fn bad_items(case: &Case) -> BTreeSet<u64> {
    (0..case.total)
        .filter(|index| case.bad_fault(*index).is_some())
        .collect()
}

fn given_up(story: &Story) -> BTreeSet<u64> {
    story.failed.keys().copied().collect()
}

#[test]
fn a_bad_item_costs_few_calls_whatever_it_fails_with_and_an_outage_costs_no_more() {
    let kinds = [
        Fault::Status500,
        Fault::Unavailable,
        Fault::Timeout,
        Fault::Reset,
        Fault::Unprocessable,
        Fault::NotFound,
    ];
    let outages = [
        None,
        Some(Fault::Connect),
        Some(Fault::Unavailable),
        Some(Fault::Status500),
        Some(Fault::Timeout),
    ];
    for (percent, kind) in [5, 30]
        .into_iter()
        .flat_map(|percent| kinds.map(|kind| (percent, kind)))
    {
        // Three that are refused before any is answered stop the task, and thirty of a hundred are often three in a row.
        if (percent, kind) == (30, Fault::NotFound) {
            continue;
        }
        for (outage, seed) in outages
            .into_iter()
            .flat_map(|outage| seeds().map(move |seed| (outage, seed)))
        {
            let mut case = case(1_000, seed);
            (case.bad, case.bad_percent) = (vec![kind], percent);
            case.outage = outage.map(|fault| (10, 40, fault));
            let bad = bad_items(&case);
            let told = format!("{percent} % {kind:?}, outage {outage:?}, seed {seed}");
            let story = play(case);
            if matches!(&story.end, Some(RunEnd::Stopped { reason, .. }) if kind == Fault::NotFound && *reason == StopReason::HandlerRejected)
            {
                continue;
            }
            assert_eq!(story.end, Some(RunEnd::Done), "{told}");
            assert_eq!(given_up(&story), bad, "{told}");
            let calls: u32 = bad.iter().map(|index| story.calls_of[index]).sum();
            let mean = f64::from(calls) / bad.len() as f64;
            assert!(mean <= 12.0, "{mean:.1} calls for a bad item: {told}");
            let unconfirmed = story.unconfirmed.len() as f64 / bad.len() as f64;
            assert!(unconfirmed <= 0.5, "{unconfirmed:.2} of them unconfirmed: {told}");
        }
    }
}

#[test]
fn calls_that_fail_at_random_cost_hardly_an_item_and_none_as_if_it_were_bad() {
    for (percent, fault) in [
        (10, Fault::Status500),
        (30, Fault::Status500),
        (50, Fault::Status500),
        (50, Fault::Unavailable),
    ] {
        for seed in seeds() {
            let mut case = case(2_000, seed);
            (case.shed_percent, case.shed_fault) = (percent, fault);
            let story = play(case);
            let told = format!("{percent} % {fault:?}, seed {seed}");
            assert_eq!(story.end, Some(RunEnd::Done), "{told}");
            assert_eq!(given_up(&story), story.unconfirmed, "{told}");
            assert!(
                story.unconfirmed.len() <= 20,
                "{} items: {told}",
                story.unconfirmed.len()
            );
        }
    }
}

#[test]
fn a_handler_that_comes_and_goes_each_three_seconds_costs_no_item() {
    for fault in [
        Fault::Connect,
        Fault::Unavailable,
        Fault::Status500,
        Fault::Timeout,
    ] {
        for seed in seeds() {
            let mut case = case(2_000, seed);
            (case.outage, case.flaps) = (Some((0, 1_000_000, fault)), Some(3));
            let story = play(case);
            let told = format!("{fault:?}, seed {seed}");
            assert_eq!(
                (&story.end, story.succeeded),
                (&Some(RunEnd::Done), 2_000),
                "{told}"
            );
        }
    }
}

#[test]
fn a_canary_with_a_bad_item_ends_as_soon_as_a_task_would() {
    for kind in [Fault::Status500, Fault::Unavailable, Fault::Timeout, Fault::Reset] {
        for then in [CanaryThen::Continue, CanaryThen::Stop] {
            let mut case = case(400, 1);
            (case.bad, case.block) = (vec![kind], Some((4, 5)));
            let items = NonZeroU64::new(10).expect("not zero");
            case.canary = Some(Canary { items, then });
            let story = play(case);
            let told = format!("{kind:?}, {then:?}");
            assert!(
                matches!(&story.end, Some(RunEnd::Stopped { reason, .. }) if *reason == StopReason::CanaryDone),
                "{:?}: {told}",
                story.end
            );
            assert_eq!(given_up(&story), BTreeSet::from([4]), "{told}");
            assert!(story.over_at <= 30, "{} s: {told}", story.over_at);
        }
    }
}

#[test]
fn a_redrive_of_items_that_are_all_bad_ends_with_them() {
    for kind in [Fault::Status500, Fault::Unavailable, Fault::Timeout, Fault::Reset] {
        for total in [1, 2, 5] {
            let mut case = case(total, 1);
            (case.bad, case.block, case.is_proven) = (vec![kind], Some((0, total)), true);
            case.first_contact = Some(Duration::from_secs(30));
            let story = play(case);
            let told = format!("{total} × {kind:?}");
            assert_eq!(story.end, Some(RunEnd::Done), "{told}");
            assert_eq!(given_up(&story), (0..total).collect(), "{told}");
            assert!(story.over_at <= 40, "{} s: {told}", story.over_at);
        }
    }
    let mut nobody = case(2, 1);
    (nobody.outage, nobody.is_proven) = (Some((0, 1_000_000, Fault::Connect)), true);
    nobody.first_contact = Some(Duration::from_secs(30));
    let story = play(nobody);
    assert!(given_up(&story).is_empty(), "{:?}", story.failed);
}

#[test]
fn calls_that_come_back_in_another_order_than_they_left_are_witnesses_too() {
    for kind in [Fault::Status500, Fault::Unavailable, Fault::Reset] {
        for seed in seeds() {
            let mut case = case(1_000, seed);
            (case.bad, case.bad_percent, case.jitter_ms) = (vec![kind], 30, Some(1_000));
            let bad = bad_items(&case);
            let story = play(case);
            let told = format!("{kind:?}, seed {seed}");
            assert_eq!(given_up(&story), bad, "{told}");
            let unconfirmed = story.unconfirmed.len() as f64 / bad.len() as f64;
            assert!(
                unconfirmed <= 0.25,
                "{unconfirmed:.2} of them unconfirmed: {told}"
            );
        }
    }
}

#[test]
fn a_run_that_goes_on_confirms_what_the_run_before_charged() {
    for seed in seeds() {
        let mut case = case(400, seed);
        (case.bad, case.bad_percent) = (vec![Fault::Status500, Fault::Timeout], 30);
        (case.called_before, case.charged_before) = (400, 3);
        let bad = bad_items(&case);
        let story = play(case);
        assert_eq!(given_up(&story), bad, "seed {seed}");
        assert!(
            story.unconfirmed.is_empty(),
            "seed {seed}: {:?}",
            story.unconfirmed
        );
    }
}
