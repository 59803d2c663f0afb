//! The capacity ledger against a twin that keeps a plain list and adds it up each time.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use proptest::prelude::*;
use windrow_core::capacity::Rank;
use windrow_core::capacity::{Capacity, Ledger, Load, Obstacle, PASSED_OVER_MAX, Request};
use windrow_core::ids::{Moment, ShardId, TaskId, WallMs};
use windrow_core::settings::{Rate, RateLimit};
use windrow_core::shards::Share;

fn rate(items: u64) -> Rate {
    Rate::per_second(items).expect("a legal rate")
}

fn limit(items: u64) -> RateLimit {
    RateLimit::Limited(rate(items))
}

fn shard(task: i64) -> ShardId {
    ShardId {
        task: TaskId(task),
        no: 0,
    }
}

fn request(task: i64, items: u64, priority: i32, since: i64) -> Request {
    Request {
        rank: Rank::new(priority, WallMs(since), shard(task)),
        rate: limit(items),
        share: Share::ALL,
        takes: None,
    }
}

fn paced(task: i64, rate: RateLimit) -> Request {
    Request {
        rate,
        ..request(task, 1, 0, 0)
    }
}

fn load(items: u64) -> Load {
    Load(u128::from(items) * 1_000_000)
}

fn seconds(seconds: u64) -> Moment {
    Moment(0).plus(Duration::from_secs(seconds))
}

/// Who was booked, in order.
fn admitted(ledger: &mut Ledger, waiting: &[Request], now: Moment) -> Vec<i64> {
    let answers = ledger.admit(waiting, BTreeMap::new, now);
    answers
        .iter()
        .filter(|answer| answer.outcome.is_ok())
        .map(|answer| answer.shard.task.0)
        .collect()
}

#[test]
fn the_line_goes_by_priority_then_by_age() {
    let mut ledger = Ledger::new(Capacity::Limited(rate(300)), rate(1000));
    let waiting = [
        request(1, 100, 0, 5),
        request(2, 100, 0, 4),
        request(3, 100, 9, 6),
        request(4, 100, -1, 0),
    ];
    assert_eq!(admitted(&mut ledger, &waiting, seconds(0)), [3, 2, 1]);
    assert_eq!(ledger.free(), Load(0));
}

#[test]
fn a_passed_over_shard_blocks_those_behind_it_after_a_minute() {
    let mut ledger = Ledger::new(Capacity::Limited(rate(1000)), rate(1000));
    ledger.reserve(&paced(1, limit(600))).expect("it fits");
    let big = request(2, 800, 0, 0);
    assert_eq!(
        admitted(&mut ledger, std::slice::from_ref(&big), seconds(0)),
        [] as [i64; 0],
        "nobody overtakes it yet"
    );
    assert_eq!(
        admitted(&mut ledger, &[big.clone(), request(3, 100, 0, 1)], seconds(100)),
        [3]
    );
    let almost = seconds(100).plus(PASSED_OVER_MAX).minus(Duration::from_nanos(1));
    assert_eq!(
        admitted(&mut ledger, &[big.clone(), request(4, 100, 0, 2)], almost),
        [4]
    );

    let later = seconds(100).plus(PASSED_OVER_MAX);
    let answers = ledger.admit(&[big.clone(), request(5, 100, 0, 3)], BTreeMap::new, later);
    let refusal = answers[1].outcome.expect_err("it would fit, but must wait");
    assert_eq!(refusal.obstacle, Obstacle::Behind(shard(2)));
    assert_eq!(
        refusal.to_string(),
        "it waits behind t2, which is ahead in the line and doesn't fit yet"
    );

    for task in [1, 3, 4] {
        assert!(ledger.release(shard(task)).is_some());
    }
    assert_eq!(
        admitted(&mut ledger, &[big, request(5, 100, 0, 3)], later),
        [2, 5]
    );
}

#[test]
fn one_that_leaves_the_line_begins_anew() {
    let mut ledger = Ledger::new(Capacity::Limited(rate(1000)), rate(1000));
    ledger.reserve(&paced(1, limit(600))).expect("it fits");
    let big = request(2, 800, 0, 0);
    assert_eq!(
        admitted(&mut ledger, &[big.clone(), request(3, 100, 0, 1)], seconds(0)),
        [3]
    );
    assert_eq!(admitted(&mut ledger, &[], seconds(50)), [] as [i64; 0]);
    assert_eq!(
        admitted(&mut ledger, &[big, request(4, 100, 0, 1)], seconds(100)),
        [4]
    );
}

#[test]
fn one_that_never_fits_is_told_so_and_blocks_nobody() {
    let mut ledger = Ledger::new(Capacity::Limited(rate(1000)), rate(1000));
    let waiting = [request(1, 1001, 9, 0), request(2, 1000, 0, 0)];
    for at in [0, 1000] {
        let answers = ledger.admit(&waiting, BTreeMap::new, seconds(at));
        let refusal = answers[0].outcome.expect_err("too big");
        assert_eq!(refusal.obstacle, Obstacle::TooBig);
        assert!(
            refusal
                .to_string()
                .starts_with("it needs 1001/s, more than the node's whole capacity of 1000/s")
        );
        assert!(answers[1].outcome.is_ok());
        ledger.release(shard(2));
    }
}

#[test]
fn a_raise_that_does_not_fit_says_what_would() {
    let mut ledger = Ledger::new(Capacity::Limited(rate(1000)), rate(1000));
    ledger.reserve(&paced(1, limit(600))).expect("it fits");
    ledger.reserve(&paced(2, limit(300))).expect("it fits");
    let refusal = ledger.change(shard(1), limit(701)).expect_err("one too many");
    assert_eq!(
        refusal.to_string(),
        "it needs 701/s; only 700/s of the node's 1000/s would fit now"
    );
    assert_eq!(
        ledger.held_by(shard(1)),
        Some(Load(600_000_000)),
        "a refused change leaves the booking"
    );
    assert!(ledger.change(shard(1), limit(700)).is_ok());
    assert_eq!(ledger.free(), Load(0));
}

#[test]
fn an_unpaced_task_reserves_what_the_node_says_and_no_capacity_admits_everything() {
    let mut ledger = Ledger::new(Capacity::Limited(rate(2500)), rate(1000));
    assert!(ledger.reserve(&paced(1, RateLimit::Unlimited)).is_ok());
    assert!(ledger.reserve(&paced(2, RateLimit::Unlimited)).is_ok());
    let refusal = ledger
        .reserve(&paced(3, RateLimit::Unlimited))
        .expect_err("500/s are left");
    assert_eq!(
        (refusal.obstacle, refusal.need, refusal.free),
        (Obstacle::Full, Load(1_000_000_000), Load(500_000_000))
    );
    ledger.set_capacity(Capacity::Unlimited);
    assert!((3..100).all(|task| ledger.reserve(&paced(task, limit(1_000_000_000))).is_ok()));
    for task in 1..100 {
        assert!(ledger.release(shard(task)).is_some());
    }
    assert_eq!(
        (ledger.held_sum(), ledger.held_shards()),
        (Load(0), 0),
        "nothing leaks"
    );
}

#[test]
fn rounding_never_overbooks() {
    let third = "1/3s".parse::<Rate>().expect("a rate");
    let mut ledger = Ledger::new(Capacity::Limited(rate(1)), rate(1));
    let fits = (1..9).take_while(|task| ledger.reserve(&paced(*task, RateLimit::Limited(third))).is_ok());
    assert_eq!(
        fits.count(),
        2,
        "three thirds, each rounded up, are more than one"
    );
    assert_eq!(Load::needed_by(third).to_string(), "0.333334/s");
}

#[test]
fn a_change_of_a_task_is_booked_for_all_its_shards_or_none() {
    let mut ledger = Ledger::new(Capacity::Limited(rate(900)), rate(1000));
    let of_seven = |no| ShardId { task: TaskId(7), no };
    for no in 0..3 {
        let request = request(7, 200, 0, 0);
        ledger
            .reserve(&Request {
                rank: Rank::new(0, WallMs(0), of_seven(no)),
                ..request
            })
            .expect("it fits");
    }
    assert_eq!(ledger.change_task(TaskId(7), limit(300), Share::ALL), Ok(3));
    let refusal = ledger
        .change_task(TaskId(7), limit(301), Share::ALL)
        .expect_err("two fit, three do not");
    assert_eq!(refusal.obstacle, Obstacle::Full);
    assert!(
        (0..3).all(|no| ledger.held_by(of_seven(no)) == Some(load(300))),
        "as it was"
    );
    assert_eq!(ledger.held_sum(), load(900));
    assert_eq!(
        ledger.change_task(TaskId(8), limit(900), Share::ALL),
        Ok(0),
        "it doesn't run here"
    );
    let refusal = ledger
        .change_task(TaskId(8), limit(901), Share::ALL)
        .expect_err("and never could");
    assert_eq!(refusal.obstacle, Obstacle::TooBig);
}

#[test]
fn the_reason_for_waiting_stays_the_same_while_others_come_and_go() {
    let mut ledger = Ledger::new(Capacity::Limited(rate(1000)), rate(1000));
    ledger.reserve(&paced(1, limit(600))).expect("it fits");
    ledger.reserve(&paced(2, limit(300))).expect("it fits");
    let before = ledger.reserve(&paced(3, limit(500))).expect_err("full");
    ledger.release(shard(2));
    let after = ledger.reserve(&paced(3, limit(500))).expect_err("still full");
    assert_ne!(before, after);
    assert_eq!(before.waiting_text(), after.waiting_text());
    assert_eq!(
        after.waiting_text().to_string(),
        "it needs 500/s; too much of the node's 1000/s is used by other tasks"
    );
}

/// When the head of the line starts, one step a second, with these tasks behind it. What runs has an end each.
fn start_of_head(running: &[(u64, u64)], head: u64, behind: &[(u64, u64, u64)]) -> Option<u64> {
    let mut ledger = Ledger::new(Capacity::Limited(rate(100)), rate(1000));
    let mut ends = BTreeMap::new();
    for (task, (items, end)) in (100..).zip(running) {
        if ledger.reserve(&request(task, *items, 0, 0)).is_ok() {
            ends.insert(shard(task), seconds(*end));
        }
    }
    let head = request(1, head, 1, 0);
    for second in 0..200 {
        let now = seconds(second);
        let over: Vec<ShardId> = ends
            .iter()
            .filter(|(_, end)| **end <= now)
            .map(|(shard, _)| *shard)
            .collect();
        for shard in over {
            ledger.release(shard);
            ends.remove(&shard);
        }
        let of_line = |(task, (items, takes, _)): (i64, &(u64, u64, u64))| Request {
            takes: Some(Duration::from_secs(*takes)),
            ..request(task, *items, 0, 1)
        };
        let here = (2..).zip(behind).filter(|(task, (_, _, from))| {
            *from <= second && *from + 200 > second && ledger.held_by(shard(*task)).is_none()
        });
        let line: Vec<Request> = std::iter::once(head.clone()).chain(here.map(of_line)).collect();
        let known = ends.clone();
        for answer in ledger.admit(&line, || known, now) {
            let takes = line
                .iter()
                .find(|request| request.rank.shard == answer.shard)
                .and_then(|request| request.takes);
            match (answer.outcome, takes) {
                (Ok(_), Some(takes)) => drop(ends.insert(answer.shard, now.plus(takes))),
                (Ok(_), None) => return Some(second),
                (Err(_), _) => {}
            }
        }
    }
    None
}

proptest! {
    #[test]
    fn whoever_is_filled_in_makes_the_head_no_later(
        running in prop::collection::vec((1..50_u64, 1..100_u64), 0..6),
        head in 1..=100_u64,
        behind in prop::collection::vec((1..60_u64, 1..150_u64, 0..100_u64), 0..8),
    ) {
        let alone = start_of_head(&running, head, &[]);
        prop_assert!(alone.is_some());
        prop_assert_eq!(start_of_head(&running, head, &behind), alone);
    }
}

#[test]
fn short_and_small_ones_are_filled_in_behind_a_head_whose_start_is_known() {
    let mut ledger = Ledger::new(Capacity::Limited(rate(2000)), rate(1000));
    ledger.reserve(&paced(1, limit(1000))).expect("it fits");
    let ends = || BTreeMap::from([(shard(1), seconds(36_000))]);
    let takes = |span: u64, request: Request| Request {
        takes: Some(Duration::from_secs(span)),
        ..request
    };
    let line = [
        request(2, 1500, 0, 0),
        takes(36_000, request(3, 600, 0, 1)),
        takes(36_001, request(4, 400, 0, 2)),
        request(5, 101, 0, 3),
        request(6, 100, 0, 4),
    ];
    // Its start is known, so that no minute of grace is over.
    let answers = ledger.admit(&line[..1], ends, seconds(0));
    let refusal = answers[0].outcome.expect_err("it doesn't fit yet");
    assert_eq!(
        refusal.waiting_text().to_string(),
        "it needs 1500/s; too much of the node's 2000/s is used by other tasks, mostly t1"
    );
    let outcomes: Vec<_> = ledger
        .admit(&line, ends, seconds(0))
        .iter()
        .map(|answer| answer.outcome.map(drop).map_err(|refusal| refusal.obstacle))
        .collect();
    assert_eq!(
        outcomes,
        [
            Err(Obstacle::Full),
            Ok(()),
            Ok(()),
            Err(Obstacle::Full),
            Err(Obstacle::Full),
        ]
    );
    ledger.release(shard(3));
    let obstacles: Vec<_> = ledger
        .admit(
            &[line[0].clone(), line[3].clone(), line[4].clone()],
            ends,
            seconds(600),
        )
        .iter()
        .map(|answer| answer.outcome.map(drop).map_err(|refusal| refusal.obstacle))
        .collect();
    assert_eq!(
        obstacles,
        [Err(Obstacle::Full), Err(Obstacle::Behind(shard(2))), Ok(())],
        "beside the head and t4 100/s are free for good"
    );
}

/// The twin: a list, and everything computed from it each time.
struct Twin {
    capacity: u64,
    held: Vec<(i64, u64)>,
    passed: HashMap<i64, Moment>,
}

#[derive(Debug, PartialEq)]
enum Fit {
    Yes,
    Never,
    NotNow,
}

impl Twin {
    fn sum(&self) -> u64 {
        self.held.iter().map(|(_, items)| items).sum()
    }

    /// Whether so many items fit beside all bookings but the task's own.
    fn fit(&self, task: i64, items: u64) -> Fit {
        let others = self.held.iter().filter(|(other, _)| *other != task);
        let all: u64 = others.map(|(_, items)| items).sum();
        match () {
            () if items > self.capacity => Fit::Never,
            () if all + items > self.capacity => Fit::NotNow,
            () => Fit::Yes,
        }
    }

    fn reserve(&mut self, task: i64, items: u64) -> bool {
        let may = self.held.iter().all(|(other, _)| *other != task) && self.fit(task, items) == Fit::Yes;
        if may {
            self.held.push((task, items));
        }
        may
    }

    fn change(&mut self, task: i64, items: u64) -> bool {
        let Some(at) = self.held.iter().position(|(other, _)| *other == task) else {
            return false;
        };
        let may = items <= self.held[at].1 || self.fit(task, items) == Fit::Yes;
        if may {
            self.held[at].1 = items;
        }
        may
    }

    fn admit(&mut self, waiting: &[Request], items_of: &HashMap<i64, u64>, now: Moment) -> Vec<i64> {
        let mut line = waiting.to_vec();
        line.sort_by(|a, b| {
            b.rank
                .priority
                .0
                .cmp(&a.rank.priority.0)
                .then(a.rank.since.cmp(&b.rank.since))
                .then(a.rank.shard.cmp(&b.rank.shard))
        });
        let tasks: Vec<i64> = line.iter().map(|request| request.rank.shard.task.0).collect();
        self.passed.retain(|task, _| tasks.contains(task));
        let mut admitted = vec![];
        let mut waits: Vec<i64> = vec![];
        for task in tasks {
            let long = |other: &i64| {
                self.passed
                    .get(other)
                    .is_some_and(|since| now.since(*since) >= PASSED_OVER_MAX)
            };
            // Nobody's end is known, and the first that doesn't fit is the head of the line.
            if waits.first().is_some_and(long) || self.held.iter().any(|(held, _)| *held == task) {
                continue;
            }
            match self.fit(task, items_of[&task]) {
                Fit::Yes => {
                    self.held.push((task, items_of[&task]));
                    self.passed.remove(&task);
                    admitted.push(task);
                    if let Some(head) = waits.first() {
                        self.passed.entry(*head).or_insert(now);
                    }
                }
                Fit::Never => {}
                Fit::NotNow => waits.push(task),
            }
        }
        admitted
    }
}

#[derive(Clone, Debug)]
enum Step {
    Reserve(i64, u64),
    Change(i64, u64),
    Release(i64),
    SetCapacity(u64),
    Admit(Vec<(i64, u64, i32, i64)>, u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let (task, items) = (1..8_i64, 1..60_u64);
    prop_oneof![
        (task.clone(), items.clone()).prop_map(|(task, items)| Step::Reserve(task, items)),
        (task.clone(), items.clone()).prop_map(|(task, items)| Step::Change(task, items)),
        task.clone().prop_map(Step::Release),
        (20..120_u64).prop_map(Step::SetCapacity),
        (
            prop::collection::vec((task, items, -1..2_i32, 0..3_i64), 0..6),
            0..40_u64
        )
            .prop_map(|(line, wait)| Step::Admit(line, wait)),
    ]
}

proptest! {
    #[test]
    fn the_ledger_does_what_its_twin_does(steps in prop::collection::vec(any_step(), 1..80)) {
        let mut ledger = Ledger::new(Capacity::Limited(rate(100)), rate(1000));
        let mut twin = Twin { capacity: 100, held: vec![], passed: HashMap::new() };
        let mut now = seconds(0);
        for step in steps {
            let before = ledger.held_sum();
            match step {
                Step::Reserve(task, items) => {
                    let booked = ledger.reserve(&paced(task, limit(items))).is_ok();
                    prop_assert_eq!(booked, twin.reserve(task, items));
                    if booked { twin.passed.remove(&task); }
                }
                Step::Change(task, items) => {
                    prop_assert_eq!(ledger.change(shard(task), limit(items)).is_ok(), twin.change(task, items));
                }
                Step::Release(task) => {
                    let at = twin.held.iter().position(|(held, _)| *held == task);
                    let items = at.map(|at| load(twin.held.remove(at).1));
                    prop_assert_eq!(ledger.release(shard(task)), items);
                }
                Step::SetCapacity(items) => {
                    ledger.set_capacity(Capacity::Limited(rate(items)));
                    twin.capacity = items;
                }
                Step::Admit(mut line, wait) => {
                    now = now.plus(Duration::from_secs(wait));
                    line.sort();
                    line.dedup_by_key(|entry| entry.0);
                    let items_of = line.iter().map(|entry| (entry.0, entry.1)).collect();
                    let waiting: Vec<Request> = line.into_iter()
                        .map(|(task, items, priority, since)| request(task, items, priority, since)).collect();
                    prop_assert_eq!(admitted(&mut ledger, &waiting, now), twin.admit(&waiting, &items_of, now));
                }
            }
            prop_assert_eq!(ledger.held_sum(), load(twin.sum()));
            prop_assert_eq!(ledger.held_shards(), twin.held.len());
            // Only a lowered capacity may leave more booked than there is, and then it only falls.
            prop_assert!(ledger.held_sum() <= before.max(load(twin.capacity)));
        }
    }
}
