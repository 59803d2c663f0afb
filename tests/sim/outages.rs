//! What must hold in an outage, and of items that always fail: `outage` plays it.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use windrow_core::execution::RunEnd;
use windrow_core::settings::Auto;
use windrow_core::task::lifecycle::StopReason;
use windrow_core::task::{Canary, CanaryThen};

use crate::outage::{Case, Fault, Story, play};
use crate::plan::n;

const DOWN: [Fault; 5] = [
    Fault::Connect,
    Fault::Unavailable,
    Fault::Status500,
    Fault::Timeout,
    Fault::Reset,
];
/// An hour. Unit: seconds since the run began.
const OUTAGE: (u64, u64) = (8, 3608);

fn stopped(story: &Story) -> Option<StopReason> {
    match &story.end {
        Some(RunEnd::Stopped { reason, .. }) => Some(*reason),
        _ => None,
    }
}

/// The longest span from the end of the outage to the next call.
fn judge_outage(name: &str, story: &Story, total: u64) {
    assert_eq!(story.end, Some(RunEnd::Done), "{name}");
    assert!(story.failed.is_empty(), "{name}: {:?}", story.failed);
    assert_eq!(story.succeeded, total, "{name}");
    let (from, to) = (OUTAGE.0 as f64, OUTAGE.1 as f64);
    let first = story
        .calls
        .iter()
        .find(|at| **at >= to)
        .expect("it is called again");
    assert!(*first <= to + 36.0, "{name}: first call {first}");
    // Once it is open, probes only: one in 24 s at the most frequent, after the first few.
    let late = story
        .calls
        .iter()
        .filter(|at| (from + 120.0..to).contains(*at))
        .count();
    assert!(late <= 3600 / 24, "{name}: {late} calls");
}

#[test]
fn an_hour_without_a_handler_costs_no_item_at_any_rate() {
    for fault in DOWN {
        for (rate, total) in [
            (Some(1), 100),
            (Some(5), 500),
            (Some(500), 20_000),
            (None, 60_000),
        ] {
            for batch in [1, 5] {
                let mut case = Case::new(rate, total);
                case.tuning.batch = n(batch);
                case.outage = Some((OUTAGE.0, OUTAGE.1, fault));
                let story = play(case);
                judge_outage(&format!("{fault:?} {rate:?} batch {batch}"), &story, total);
            }
        }
    }
}

#[test]
fn an_hour_costs_an_ordered_task_and_a_canary_no_item_either() {
    for fault in DOWN {
        let mut ordered = Case::new(Some(5), 200);
        ordered.tuning.ordered = true;
        ordered.outage = Some((OUTAGE.0, OUTAGE.1, fault));
        judge_outage(&format!("{fault:?} ordered"), &play(ordered), 200);
        let mut canary = Case::new(Some(5), 200);
        let items = NonZeroU64::new(60).expect("not zero");
        canary.canary = Some(Canary {
            items,
            then: CanaryThen::Continue,
        });
        canary.outage = Some((OUTAGE.0, OUTAGE.1, fault));
        judge_outage(&format!("{fault:?} canary"), &play(canary), 200);
    }
}

#[test]
fn the_full_rate_is_back_within_seconds_of_the_first_answer() {
    for fault in DOWN {
        let mut case = Case::new(Some(500), 20_000);
        case.outage = Some((OUTAGE.0, OUTAGE.1, fault));
        let story = play(case);
        let to = OUTAGE.1 as f64;
        let first = *story
            .calls
            .iter()
            .find(|at| **at >= to)
            .expect("it is called again");
        // 5 s, and log₂(64) + 1 calls of 20 ms.
        let from = first + 5.2;
        let calls = story
            .calls
            .iter()
            .filter(|at| (from..from + 10.0).contains(*at))
            .count();
        assert!(calls >= 4_900, "{fault:?}: {calls} calls in 10 s");
    }
}

/// Exactly the bad items are given up, each with its own reason.
fn judge_mixture(name: &str, case: Case) {
    let bad: BTreeMap<u64, Fault> = (0..case.total)
        .filter_map(|index| Some((index, case.bad_fault(index)?)))
        .collect();
    let total = case.total;
    let story = play(case);
    assert_eq!(story.end, Some(RunEnd::Done), "{name}, at {} s", story.over_at);
    let codes = |fault: &Fault| match fault {
        Fault::Status500 => "HTTP_500",
        Fault::Timeout => "TIMEOUT",
        Fault::Reset => "RESET",
        Fault::NotFound => "HTTP_404",
        Fault::Unavailable => "HTTP_503",
        _ => "HTTP_422",
    };
    let wanted: BTreeMap<u64, String> = bad
        .iter()
        .map(|(index, fault)| (*index, codes(fault).to_owned()))
        .collect();
    let innocent: Vec<&u64> = story
        .failed
        .keys()
        .filter(|index| !wanted.contains_key(index))
        .collect();
    assert!(innocent.is_empty(), "{name}: innocent {innocent:?}");
    let missing: Vec<&u64> = wanted
        .keys()
        .filter(|index| !story.failed.contains_key(index))
        .collect();
    assert!(missing.is_empty(), "{name}: not found {missing:?}");
    assert_eq!(story.failed, wanted, "{name}");
    assert_eq!(story.succeeded, total - wanted.len() as u64, "{name}");
    println!(
        "{name}: {} s, {} outages, at most {} calls of one",
        story.over_at,
        story.outages_seen,
        story.calls_of_one()
    );
}

#[test]
fn among_bad_items_the_good_succeed_and_the_bad_are_found() {
    let kinds = [
        vec![Fault::Status500],
        vec![Fault::Timeout],
        vec![Fault::Reset],
        vec![Fault::Unprocessable],
        vec![
            Fault::Status500,
            Fault::Timeout,
            Fault::Reset,
            Fault::Unprocessable,
        ],
    ];
    for bad in kinds {
        for percent in [1, 20, 60] {
            for rate in [Some(20), None] {
                let mut case = Case::new(rate, 1500);
                (case.bad, case.bad_percent, case.seed) = (bad.clone(), percent, percent + 7);
                judge_mixture(&format!("{bad:?} {percent} % {rate:?}"), case);
            }
        }
    }
}

#[test]
fn an_outage_in_the_middle_neither_hides_the_bad_nor_costs_the_good() {
    for down in DOWN {
        for percent in [1, 20, 60] {
            let mut case = Case::new(Some(20), 1500);
            case.bad = vec![
                Fault::Status500,
                Fault::Timeout,
                Fault::Reset,
                Fault::Unprocessable,
            ];
            (case.bad_percent, case.seed) = (percent, percent + 11);
            case.outage = Some((30, 630, down));
            judge_mixture(&format!("{down:?}, {percent} % bad"), case);
        }
    }
}

#[test]
fn items_that_are_refused_while_others_are_answered_are_given_up() {
    let with = |percent: u64| {
        let mut case = Case::new(Some(20), 1500);
        (case.bad, case.bad_percent, case.seed) = (vec![Fault::NotFound], percent, 3);
        case
    };
    judge_mixture("1 % not found", with(1));
    // Where people have decided, even most of them may be: else a row of them may look like a handler that refuses all.
    let decided = Auto::Fixed(Duration::ZERO);
    let shares = [
        (1, None),
        (6, None),
        (12, None),
        (25, Some(decided)),
        (40, Some(decided)),
    ];
    for (percent, judge_after) in shares {
        for seed in 3..6 {
            let mut case = with(percent);
            case.seed = seed;
            case.tuning.judge_after = judge_after.unwrap_or(case.tuning.judge_after);
            // Three that are refused before any is answered stop the task.
            while (0..3).all(|index| case.bad_fault(index).is_some()) {
                case.seed += 10;
            }
            let mut resumed = case.clone();
            resumed.called_before = 1_000;
            judge_mixture(&format!("{percent} % not found, called before"), resumed);
            case.outage = Some((30, 38, Fault::Connect));
            judge_mixture(&format!("{percent} % not found, and an outage"), case);
        }
    }
    // The last one has nobody after it who is answered: others that were refused alike say what it is …
    let mut alike = with(1);
    while alike.bad_fault(alike.total - 1).is_none() {
        alike.seed += 1;
    }
    judge_mixture("the last one not found, as others were", alike);
    // … or people have to.
    let mut only = with(0);
    only.block = Some((only.total - 1, only.total));
    assert_eq!(stopped(&play(only.clone())), Some(StopReason::HandlerRejected));
    only.tuning.judge_after = Auto::Fixed(Duration::ZERO);
    judge_mixture("the last one not found, decided", only);
}

#[test]
fn items_to_which_the_handler_is_never_there_are_given_up() {
    for bad in [
        vec![Fault::Unavailable],
        vec![Fault::Unavailable, Fault::Status500, Fault::NotFound],
    ] {
        for (percent, rate, before) in [
            (1, 20, 0),
            (1, 500, 0),
            (10, 100, 0),
            (10, 100, 1_000),
            (30, 20, 0),
        ] {
            for seed in 3..6 {
                let mut case = Case::new(Some(rate), 2_000);
                (case.bad, case.bad_percent, case.seed) = (bad.clone(), percent, seed);
                case.called_before = before;
                judge_mixture(&format!("{bad:?} {percent} % at {rate}/s, {before} before"), case);
            }
        }
    }
}

#[test]
fn a_job_that_goes_on_with_its_last_items_ends_with_exactly_the_bad_ones_given_up() {
    let bad = vec![Fault::Unavailable, Fault::Status500, Fault::NotFound];
    for (before, judge_after) in [(2_000, 600), (2_000, 5), (2_000, 0), (1_990, 600), (1_900, 600)] {
        let mut case = Case::new(Some(100), 2_000);
        (case.bad, case.bad_percent, case.seed) = (bad.clone(), 10, 3);
        (case.called_before, case.charged_before) = (before, 2);
        case.tuning.judge_after = Auto::Fixed(Duration::from_secs(judge_after));
        let story = play(case.clone());
        let most = judge_after + 900;
        assert!(story.over_at < most, "{before} before: {} s", story.over_at);
        judge_mixture(&format!("{before} before, judged after {judge_after} s"), case);
    }
}

#[test]
fn an_outage_while_only_bad_items_are_left_costs_its_own_time_and_no_more() {
    for bad in [Fault::Status500, Fault::Unavailable] {
        for outage in [None, Some((8, 28, Fault::Connect))] {
            let mut case = Case::new(Some(200), 1_000);
            (case.bad, case.bad_percent, case.seed) = (vec![bad], 2, 3);
            case.tuning.max_attempts = n(8);
            case.tuning.backoff.first = Duration::from_secs(1);
            case.tuning.backoff.max = Duration::from_secs(60);
            case.tuning.judge_after = Auto::Fixed(Duration::from_secs(60));
            case.outage = outage;
            let story = play(case.clone());
            assert!(story.over_at < 300, "{bad:?}, {outage:?}: {} s", story.over_at);
            judge_mixture(&format!("{bad:?} at the end, {outage:?}"), case);
        }
    }
}

#[test]
fn in_batches_exactly_the_bad_items_are_given_up_and_few_calls_are_made() {
    for fault in [Fault::Status500, Fault::Unavailable, Fault::Reset, Fault::Timeout] {
        for batch in [10, 50, 200] {
            for percent in [0, 1, 5, 10] {
                let mut case = Case::new(None, 2_000);
                case.tuning.batch = n(batch);
                case.tuning.concurrency = Auto::Fixed(n(32 * batch));
                case.tuning.judge_after = Auto::Auto;
                (case.bad, case.bad_percent, case.seed) = (vec![fault], percent, 3);
                // Two of two thousand.
                case.block = (percent == 0).then_some((900, 902));
                let bad = (0..case.total).filter(|index| case.bad_fault(*index).is_some());
                let bad = bad.count() as f64;
                let story = play(case.clone());
                let most = 1.2 * 2_000.0 / (batch as f64) + bad * (2.0 * (batch as f64).log2() + 8.0);
                let told = format!("{fault:?}, batches of {batch}, {percent} % bad");
                println!(
                    "{told}: {} of at most {most:.0} calls, {} s",
                    story.calls.len(),
                    story.over_at
                );
                judge_mixture(&told, case);
                assert!(
                    story.calls.len() as f64 <= most,
                    "{told}: {} calls",
                    story.calls.len()
                );
            }
        }
    }
}

#[test]
fn in_batches_a_job_that_goes_on_gives_up_exactly_the_bad_items_too() {
    for before in [0, 400] {
        let mut case = Case::new(Some(100), 400);
        case.tuning.batch = n(5);
        (case.bad, case.bad_percent, case.seed) = (vec![Fault::Unavailable], 5, 3);
        (case.called_before, case.charged_before) = (before, 2);
        // An outage that the run before saw nothing of.
        case.outage = Some((u64::from(before == 0), 60, Fault::Unavailable));
        case.tuning.judge_after = Auto::Fixed(Duration::from_secs(120));
        judge_mixture(&format!("{before} before"), case);
    }
}

#[test]
fn the_last_items_are_given_up_within_seconds_of_a_short_job_whatever_they_fail_with() {
    let kinds = [
        vec![Fault::Status500],
        vec![Fault::Unavailable],
        vec![Fault::Timeout],
        vec![Fault::Reset],
        vec![Fault::Status500, Fault::Unavailable, Fault::Timeout, Fault::Reset],
    ];
    for bad in kinds {
        for last in [1, 2, 5] {
            for seed in 1..30 {
                let mut case = Case::new(Some(40), 200);
                (case.bad, case.block, case.seed) = (bad.clone(), Some((200 - last, 200)), seed);
                case.tuning.timeout = Duration::from_secs(2);
                case.tuning.judge_after = Auto::Auto;
                let told = format!("the last {last}, {bad:?}, seed {seed}");
                let story = play(case.clone());
                assert!(story.over_at <= 5 + 30, "{told}: {} s", story.over_at);
                judge_mixture(&told, case);
            }
        }
    }
}

#[test]
fn however_many_attempts_an_item_may_have_the_last_ones_end() {
    let mut case = Case::new(Some(40), 200);
    (case.bad, case.block) = (vec![Fault::Status500, Fault::Unavailable], Some((196, 200)));
    case.tuning.max_attempts = n(10_000);
    (case.tuning.backoff.first, case.tuning.backoff.max) = (Duration::from_secs(1), Duration::from_secs(60));
    case.tuning.judge_after = Auto::Auto;
    let story = play(case.clone());
    assert!(story.over_at <= 5 + 4 * 20 + 5, "{} s", story.over_at);
    judge_mixture("ten thousand attempts", case);
}

#[test]
fn a_handler_that_sheds_a_share_of_all_calls_costs_no_item() {
    for (percent, rate) in [
        (1, 20),
        (1, 200),
        (10, 20),
        (10, 200),
        (30, 20),
        (30, 200),
        (60, 20),
        (75, 20),
    ] {
        for outage in [None, Some((30, 930, Fault::Unavailable))] {
            let mut case = Case::new(Some(rate), rate * 60);
            (case.shed_percent, case.outage) = (percent, outage);
            judge_mixture(&format!("{percent} % shed at {rate}/s, {outage:?}"), case);
        }
    }
}

#[test]
fn a_handler_that_refuses_all_ends_the_task_and_nobody_is_charged_for_it() {
    for judge_after in [600, 0].map(Duration::from_secs).map(Auto::Fixed) {
        let mut case = Case::new(Some(20), 1500);
        (case.bad, case.bad_percent, case.seed) = (vec![Fault::NotFound], 2, 3);
        case.tuning.judge_after = judge_after;
        case.outage = Some((30, 1_000_000, Fault::NotFound));
        let bad: Vec<u64> = (0..case.total)
            .filter(|index| case.bad_fault(*index).is_some())
            .collect();
        let story = play(case);
        assert_eq!(stopped(&story), Some(StopReason::HandlerRejected));
        let innocent = story.failed.keys().find(|index| !bad.contains(index));
        assert_eq!(innocent, None, "what was moved away is no fault of items");
    }
}

#[test]
fn calls_that_were_out_together_end_no_task_before_its_time() {
    for fault in [Fault::Timeout, Fault::Status500] {
        let mut case = Case::new(Some(500), 20_000);
        case.outage = Some((0, 1_000_000, fault));
        let judge_after = 600;
        let story = play(case);
        assert_eq!(stopped(&story), Some(StopReason::NoItemSucceeds), "{fault:?}");
        let borne = story.over_at;
        assert!(
            (judge_after..judge_after + 90).contains(&borne),
            "{fault:?}: {borne} s"
        );
    }
}

#[test]
fn a_block_of_bad_neighbours_is_no_outage() {
    let mut case = Case::new(Some(500), 20_000);
    (case.bad, case.block) = (vec![Fault::Status500], Some((5_000, 6_000)));
    judge_mixture("block", case);
}

#[test]
fn a_task_in_which_everything_fails_stops_and_says_why() {
    for (fault, reason) in [
        (Fault::Status500, StopReason::NoItemSucceeds),
        (Fault::Timeout, StopReason::NoItemSucceeds),
        (Fault::Connect, StopReason::HandlerUnreachable),
    ] {
        let mut case = Case::new(Some(5), 300);
        case.outage = Some((0, 1_000_000, fault));
        let story = play(case);
        assert_eq!(stopped(&story), Some(reason), "{fault:?}");
        assert!(story.failed.is_empty(), "{fault:?}: {:?}", story.failed);
    }
}

#[test]
fn where_people_have_decided_that_it_is_the_items_they_are_given_up_although_none_ever_succeeded() {
    for (total, fault) in [(5, Fault::Timeout), (5, Fault::Status500), (300, Fault::Timeout)] {
        let mut case = Case::new(Some(5), total);
        case.outage = Some((0, 1_000_000, fault));
        case.tuning.judge_after = Auto::Fixed(Duration::ZERO);
        let story = play(case);
        assert_eq!(story.end, Some(RunEnd::Done), "{fault:?}");
        assert_eq!(story.failed.len() as u64, total, "{fault:?}");
        assert!(
            (5..=10).contains(&story.calls_of_one()),
            "some were excused: {}",
            story.calls_of_one()
        );
        assert!(
            story.over_at < 600,
            "nobody waits for another outage to end: {} s",
            story.over_at
        );
    }
    let mut unreachable = Case::new(Some(5), 5);
    unreachable.outage = Some((0, 1_000_000, Fault::Connect));
    unreachable.tuning.judge_after = Auto::Fixed(Duration::ZERO);
    let story = play(unreachable);
    assert_eq!(
        stopped(&story),
        Some(StopReason::HandlerUnreachable),
        "nobody was there to judge them"
    );
    assert!(story.failed.is_empty(), "{:?}", story.failed);
}

#[test]
fn a_handler_that_was_never_reached_ends_the_run_in_time_with_nothing_charged() {
    for fault in [Fault::Connect, Fault::Unavailable] {
        let mut case = Case::new(Some(5), 300);
        case.first_contact = Some(Duration::from_secs(30));
        case.outage = Some((0, 1_000_000, fault));
        let story = play(case);
        assert_eq!(stopped(&story), Some(StopReason::HandlerUnreachable), "{fault:?}");
        assert!((30..=32).contains(&story.over_at), "{}", story.over_at);
    }
}

#[test]
fn a_handler_that_is_down_for_longer_than_the_patience_stops_the_task() {
    let mut case = Case::new(Some(5), 300);
    case.outage = Some((8, 1_000_000, Fault::Connect));
    let story = play(case);
    assert_eq!(stopped(&story), Some(StopReason::HandlerUnreachable));
    assert!(
        (24 * 3600..24 * 3600 + 60).contains(&story.over_at),
        "{}",
        story.over_at
    );
}

#[test]
fn the_last_items_are_judged_at_once_when_they_failed_beside_others_and_else_after_a_while() {
    let mut known = Case::new(Some(20), 200);
    (known.bad, known.block) = (vec![Fault::Status500], Some((150, 152)));
    let story = play(known);
    assert_eq!(story.failed.len(), 2);
    assert!(
        story.over_at < 60,
        "they failed while others were answered: {} s",
        story.over_at
    );
    let mut last = Case::new(Some(20), 200);
    (last.bad, last.block) = (vec![Fault::Status500], Some((199, 200)));
    let story = play(last);
    assert_eq!(story.failed.len(), 1);
    assert!((600..700).contains(&story.over_at), "{} s", story.over_at);
    assert!(
        story.calls_of_one() <= 11,
        "twice as often as it may be, {}",
        story.calls_of_one()
    );
}

#[test]
fn bad_items_of_an_ordered_task_are_found_the_first_after_hours_and_the_others_after_minutes() {
    let mut case = Case::new(Some(5), 200);
    case.tuning.ordered = true;
    (case.bad, case.block) = (vec![Fault::Status500, Fault::Timeout], Some((50, 51)));
    let first = play(case.clone());
    assert!((7200..7300).contains(&first.over_at), "{} s", first.over_at);
    (case.bad_percent, case.seed) = (4, 3);
    let others = (0..200).filter(|index| case.bad_fault(*index).is_some()).count() as u64 - 1;
    assert!(others >= 2, "the seed has bad items beside the first");
    judge_mixture("ordered", case.clone());
    let story = play(case);
    let most = 7300 + others * 700;
    assert!(story.over_at < most, "{} s with {others} others", story.over_at);
}

#[test]
fn a_day_without_answers_costs_an_ordered_task_one_item_at_most() {
    let mut case = Case::new(Some(5), 200);
    case.tuning.ordered = true;
    case.outage = Some((8, 1_000_000, Fault::Timeout));
    let story = play(case);
    assert_eq!(stopped(&story), Some(StopReason::HandlerUnreachable));
    assert!(story.failed.len() <= 1, "{:?}", story.failed);
}

#[test]
fn an_item_that_may_be_tried_once_is_never_tried_twice() {
    let mut case = Case::new(Some(20), 400);
    case.tuning.max_attempts = n(1);
    (case.bad, case.bad_percent) = (vec![Fault::Timeout, Fault::Reset], 5);
    case.outage = Some((8, 60, Fault::Status500));
    let story = play(case);
    assert_eq!((&story.end, story.calls_of_one()), (&Some(RunEnd::Done), 1));
}
