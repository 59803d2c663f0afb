//! What is taken in of runs that begin, end, begin again and share a task.

use super::*;
use windrow_core::items::counters::Counters;
use windrow_core::stats::histogram::Histogram;
use windrow_core::stats::permits::Permits;

const SECOND: u64 = 1_000_000_000;

fn at(seconds: u64) -> Moment {
    Moment(seconds * SECOND)
}

/// A run that began at a second, with so much done before and so much done since.
fn sample(shard: (i64, u32), run: u32, (began, before): (u64, u64), (now, since): (u64, u64)) -> RunSample {
    let mut calls = Histogram::default();
    calls.record(Duration::from_millis(5), since);
    RunSample {
        shard: ShardId {
            task: TaskId(shard.0),
            no: shard.1,
        },
        run: RunNo(run),
        began_at: at(began),
        began: Counters {
            succeeded: before,
            ..Counters::default()
        },
        at: at(now),
        counters: Counters {
            succeeded: before + since,
            ..Counters::default()
        },
        permits: Permits {
            due: since * 1_000_000,
            ..Permits::default()
        },
        calls,
        failed_attempts: since / 10,
        gauges: Gauges {
            in_flight: 7,
            ..Gauges::default()
        },
        task_rate: RateLimit::Unlimited,
    }
}

#[test]
fn a_change_of_the_rate_is_seen_also_across_runs_and_only_once() {
    let mut board = Board::default();
    let rate = |text: &str| RateLimit::Limited(text.parse().expect("a rate"));
    let mut take = |run: u32, begun: u64, now: u64, text: &str| {
        let seen = RunSample {
            task_rate: rate(text),
            ..sample((1, 0), run, (begun, 0), (now, now))
        };
        board.take_in(vec![seen], vec![], at(now));
        board.tasks[&TaskId(1)].rate_changed_at
    };
    assert_eq!(
        [take(1, 1, 2, "9/s"), take(1, 1, 3, "9/s")],
        [None, None],
        "its first rate is no change"
    );
    assert_eq!([take(1, 1, 4, "5/s"), take(1, 1, 5, "5/s")], [Some(at(4)); 2]);
    assert_eq!(
        take(2, 6, 7, "1/s"),
        Some(at(7)),
        "it was changed while nothing ran"
    );
}

fn sum(board: &Board, task: i64, now: u64) -> Span {
    let track = board.tasks.get(&TaskId(task)).expect("it is known");
    track
        .series
        .span(at(now), Duration::from_secs(1000))
        .expect("it ran")
}

#[test]
fn runs_that_follow_one_another_are_summed_without_loss_and_never_backwards() {
    let mut board = Board::default();
    board.take_in(vec![sample((1, 0), 1, (10, 0), (11, 100))], vec![], at(11));
    // It ended half way, and its successor has begun anew from what was saved.
    let ended = sample((1, 0), 1, (10, 0), (12, 150));
    let next = sample((1, 0), 2, (12, 140), (13, 60));
    board.take_in(vec![next], vec![ended], at(13));
    board.take_in(vec![sample((1, 0), 2, (12, 140), (14, 90))], vec![], at(14));
    let span = sum(&board, 1, 14);
    assert_eq!(
        (
            span.point.succeeded,
            span.point.permits.due,
            span.point.calls.count()
        ),
        (240, 240_000_000, 240)
    );
    assert_eq!((span.covered.as_secs(), span.running.as_secs()), (4, 4));
    assert_eq!(span.point.gauges.in_flight, 7);
}

#[test]
fn a_run_that_ends_between_two_looks_is_counted_once() {
    let mut board = Board::default();
    let (live, ended) = (
        sample((1, 0), 1, (1, 5), (2, 30)),
        sample((1, 0), 1, (1, 5), (2, 35)),
    );
    board.take_in(vec![live], vec![ended], at(2));
    board.take_in(vec![], vec![], at(3));
    assert_eq!(sum(&board, 1, 3).point.succeeded, 35);
    assert!(board.seen.is_empty());
    board.take_in(vec![], vec![sample((2, 0), 1, (3, 0), (4, 8))], at(4));
    let unseen = sum(&board, 2, 4);
    assert_eq!(
        (unseen.point.succeeded, unseen.point.gauges.in_flight),
        (8, 0),
        "nobody saw it alive"
    );
}

#[test]
fn shards_of_a_task_are_one_series() {
    let mut board = Board::default();
    for second in 1..=3 {
        let shard = |no| sample((9, no), 1, (0, 0), (second, second * 10));
        board.take_in(vec![shard(0), shard(1), shard(2)], vec![], at(second));
    }
    let span = sum(&board, 9, 3);
    assert_eq!(
        (
            span.point.succeeded,
            span.point.gauges.in_flight,
            span.running.as_secs()
        ),
        (90, 21, 3)
    );
}

#[test]
fn the_past_of_tasks_that_ended_goes_with_time_and_when_there_are_many() {
    let mut board = Board::default();
    let ended = |task| sample((task, 0), 1, (1, 0), (2, 1));
    board.take_in(vec![], (1..=1500).map(ended).collect(), at(2));
    board.take_in(vec![], vec![], at(3));
    assert_eq!(board.tasks.len(), 1500);
    board.take_in(vec![], vec![], at(10));
    assert_eq!(board.tasks.len(), GONE_MAX);
    board.take_in(vec![], vec![], at(2 + KEPT.as_secs()));
    assert!(board.tasks.is_empty());
}

#[test]
fn many_runs_are_taken_in_within_bounds_of_memory() {
    // An eighth of 8,000 runs, with an eighth of the memory.
    let mut board = Board {
        bytes_max: BYTES_MAX / 8,
        ..Board::default()
    };
    let mut spent = Duration::ZERO;
    for second in 1..=100_u64 {
        let live = (1..=1000)
            .map(|task| sample((task, 0), 1, (0, 0), (second, second * 100)))
            .collect();
        let begun = tokio::time::Instant::now();
        board.take_in(live, vec![], at(second));
        spent += begun.elapsed();
    }
    let bytes: usize = board.tasks.values().map(|track| track.series.bytes()).sum();
    println!(
        "1,000 runs: {:?} a round, {} KiB of points",
        spent / 100,
        bytes / 1024
    );
    assert!(bytes <= BYTES_MAX / 8, "{bytes}");
    let span = board.tasks[&TaskId(400)]
        .series
        .span(at(100), Duration::from_secs(60))
        .expect("it runs");
    assert_eq!((span.covered.as_secs(), span.point.succeeded), (60, 6000));
}

#[test]
fn a_node_that_stood_still_finds_it_in_its_own_samples() {
    let mut board = Board::default();
    let mut take =
        |no: u32, now: u64| board.take_in(vec![sample((1, no), 1, (1, 0), (now, now))], vec![], at(now));
    (2..10).for_each(|now| take(0, now));
    [12, 39, 40].into_iter().for_each(|now| take(0, now));
    take(1, 40); // A shard that nobody saw before says nothing of the time before.
    (41..50).for_each(|now| take(0, now));
    let track = &board.tasks[&TaskId(1)];
    let told = |reach: u64| track.stood_still(at(50), Duration::from_secs(reach));
    let spell = told(60).expect("it stood");
    assert_eq!(
        (spell.lasted(), spell.to),
        (Duration::from_secs(27), Duration::from_secs(11))
    );
    assert_eq!(told(11), None, "it ended before");
}
