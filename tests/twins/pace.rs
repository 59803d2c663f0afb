//! The promise of `Pace`, checked exactly over *all* intervals: attempts ≤ ∫ rate dt + burst.
//!
//! With `J(t)` the integral of the rate and departures numbered from 0, the interval from departure `j` to
//! departure `k` holds `k − j + 1` of them, so the promise is `max over k of (k + 1 − J(t_k)) − min over j ≤ k of
//! (j − J(t_j)) ≤ burst`: one pass. All in integers: a unit is `1 / UNIT` of an item.

use std::time::Duration;

use proptest::prelude::*;
use windrow_core::ids::Moment;
use windrow_core::pace::{Pace, STALE_AFTER, burst_items, burst_items_min};
use windrow_core::settings::{Burst, Rate, RateLimit};

#[derive(Clone, Debug)]
struct Settings {
    rate: Rate,
    burst: Burst,
    batch: u32,
}

#[derive(Clone, Debug)]
enum Op {
    /// Time passes, then so many are asked for; each departs this many parts of 16 of the longest delay later.
    Ask {
        gap_ns: u64,
        want: u32,
        delay: u64,
    },
    /// The clock is read this far in the past.
    AskBackwards {
        back_ns: u64,
        want: u32,
    },
    Set(Settings),
    SlowDown(Rate, u64),
    Pause(u64),
    Empty,
}

fn rates() -> impl Strategy<Value = Rate> {
    prop_oneof![
        (1u64..50).prop_map(|items| Rate::per_second(items).expect("valid")),
        (50u64..200_000).prop_map(|items| Rate::per_second(items).expect("valid")),
        (1u64..20, 1u64..120).prop_map(|(n, s)| Rate::new(n, Duration::from_secs(s)).expect("valid")),
        (1u64..1000, 1u64..1000).prop_map(|(n, ms)| Rate::new(n, Duration::from_millis(ms)).expect("valid")),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    (
        rates(),
        prop_oneof![3 => Just(1u32), 1 => 1u32..200],
        0u64..4,
        0u32..500,
    )
        .prop_map(|(rate, batch, kind, extra)| {
            let least = u32::try_from(burst_items_min(rate, batch)).expect("small");
            let items = |n: u32| Burst::Items(n.try_into().expect("not zero"));
            let burst = match kind {
                0 => items(least),
                1 => items(least + extra),
                _ => Burst::Span(Duration::from_millis(100)),
            };
            Settings { rate, burst, batch }
        })
}

fn gap() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..3_000_000, 2 => 0u64..50_000_000, 1 => 0u64..5_000_000_000, 1 => Just(0u64)]
}

fn asks() -> impl Strategy<Value = Op> {
    (
        gap(),
        prop_oneof![Just(1u32), 1u32..300, Just(u32::MAX)],
        0u64..=16,
    )
        .prop_map(|(gap_ns, want, delay)| Op::Ask { gap_ns, want, delay })
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => asks(),
        1 => (0u64..1_000_000_000, 1u32..100).prop_map(|(back_ns, want)| Op::AskBackwards { back_ns, want }),
        2 => settings().prop_map(Op::Set),
        1 => (rates(), 0u64..3_000_000_000).prop_map(|(rate, ns)| Op::SlowDown(rate, ns)),
        1 => (0u64..500_000_000).prop_map(Op::Pause),
        1 => Just(Op::Empty),
    ]
}

/// One item in the auditor's unit: fine enough that no rate above loses more than a billionth of an item a step.
const UNIT: i128 = 1 << 60;

/// The allowed rate over time, and what departed.
struct Auditor {
    /// From this time on, this rate: in order of time.
    rates: Vec<(u64, Rate)>,
    /// When, and how many at once.
    departures: Vec<(u64, u32)>,
    burst_max: u64,
}

impl Auditor {
    fn allow(&mut self, at: u64, settings: &Settings) {
        self.rates.push((at, settings.rate));
        self.burst_max = self
            .burst_max
            .max(burst_items(settings.burst, settings.rate, settings.batch));
    }

    /// The worst interval's excess over the rate. Unit: 1 / `UNIT` items.
    fn excess(&mut self) -> i128 {
        self.departures.sort_unstable();
        let (mut integral, mut at, mut segment) = (0i128, 0u64, 0usize);
        let (mut lowest, mut worst, mut before) = (i128::MAX, 0i128, 0i128);
        for (departure, items) in &self.departures {
            while at < *departure {
                let next = self.rates.get(segment + 1).map_or(u64::MAX, |(from, _)| *from);
                let to = next.min(*departure);
                let rate = self.rates[segment].1;
                // Rounded up: the auditor must not accuse an exact bucket.
                let span = i128::from(to.saturating_sub(at)) * i128::from(rate.items());
                integral += (span * (UNIT >> 20) / i128::from(rate.period_ns()) + 1) << 20;
                at = at.max(to);
                if next <= *departure {
                    segment += 1;
                }
            }
            // Of those that leave together the first begins the worst interval and the last ends it.
            lowest = lowest.min(before * UNIT - integral);
            before += i128::from(*items);
            worst = worst.max(before * UNIT - integral - lowest);
        }
        worst
    }
}

struct World {
    pace: Pace,
    now: u64,
    paused_until: u64,
    slow_until: Option<u64>,
    settings: Settings,
    auditor: Auditor,
}

impl World {
    fn new(settings: Settings) -> World {
        let limit = RateLimit::Limited(settings.rate);
        let pace = Pace::new(limit, settings.burst, settings.batch, Moment(0));
        let mut auditor = Auditor {
            rates: Vec::new(),
            departures: Vec::new(),
            burst_max: 0,
        };
        auditor.allow(0, &settings);
        World {
            pace,
            now: 0,
            paused_until: 0,
            slow_until: None,
            settings,
            auditor,
        }
    }

    /// Notes the end of a slow-down that passed unasked.
    fn pass(&mut self, gap_ns: u64) {
        self.now += gap_ns;
        if let Some(until) = self.slow_until.filter(|until| *until <= self.now) {
            self.auditor.allow(until, &self.settings.clone());
            self.slow_until = None;
        }
    }

    fn ask(&mut self, at: u64, want: u32, delay_ns: u64) -> u32 {
        let items = self.pace.available(want, Moment(at));
        assert!(
            items == 0 || at >= self.paused_until,
            "something left during a pause"
        );
        self.pace.take(items);
        if items > 0 {
            self.auditor.departures.push((self.now + delay_ns, items));
        }
        items
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Ask { gap_ns, want, delay } => {
                self.pass(*gap_ns);
                self.ask(self.now, *want, STALE_AFTER.as_nanos() as u64 * delay / 16);
            }
            Op::AskBackwards { back_ns, want } => {
                self.ask(self.now.saturating_sub(*back_ns), *want, 0);
            }
            Op::Set(settings) => {
                let limit = RateLimit::Limited(settings.rate);
                self.pace
                    .set(limit, settings.burst, settings.batch, Moment(self.now));
                self.settings = settings.clone();
                self.note_rate_in_force();
            }
            Op::SlowDown(rate, lasting_ns) => {
                let until = self.now + lasting_ns;
                self.pace.slow_down(*rate, Moment(until), Moment(self.now));
                self.slow_until = Some(until);
                self.note_rate_in_force();
                self.pass(0);
            }
            Op::Pause(lasting_ns) => {
                self.pace
                    .pause_until(Moment(self.now + lasting_ns), Moment(self.now));
                self.paused_until = self.paused_until.max(self.now + lasting_ns);
            }
            Op::Empty => self.pace.empty(Moment(self.now)),
        }
    }

    fn note_rate_in_force(&mut self) {
        let rate = self.pace.rate().expect("always limited here");
        self.auditor.allow(
            self.now,
            &Settings {
                rate,
                ..self.settings.clone()
            },
        );
    }
}

fn hold(settings: Settings, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut world = World::new(settings);
    ops.iter().for_each(|op| world.apply(op));
    let (excess, burst) = (world.auditor.excess(), i128::from(world.auditor.burst_max) * UNIT);
    prop_assert!(
        excess <= burst,
        "{} of {} items",
        excess / UNIT + 1,
        world.auditor.burst_max
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_interval_ever_holds_more_than_the_rate_and_the_burst(
        settings in settings(),
        ops in prop::collection::vec(asks(), 1..300),
    ) {
        hold(settings, &ops)?;
    }

    #[test]
    fn nor_does_one_across_live_changes_pauses_slow_downs_and_clocks_that_step_back(
        settings in settings(),
        ops in prop::collection::vec(ops(), 1..300),
    ) {
        hold(settings, &ops)?;
    }

    #[test]
    fn asked_every_three_milliseconds_it_reaches_the_rate(
        rate in rates(),
        batch in prop_oneof![Just(1u32), 1u32..100],
        gaps in prop::collection::vec(1u64..=3_000_000, 64),
    ) {
        let burst = Burst::Span(Duration::from_millis(100));
        let mut pace = Pace::new(RateLimit::Limited(rate), burst, batch, Moment(0));
        // Long enough for 1,000 items or 20,000 questions.
        let span = (1000.0 / rate.as_per_second() * 1e9).min(20_000.0 * 1.5e6) as u64;
        let (mut now, mut sent) = (0u64, 0u64);
        for gap in gaps.iter().cycle() {
            if now >= span {
                break;
            }
            now += gap;
            let items = pace.available(u32::MAX, Moment(now)) / batch * batch;
            pace.take(items);
            sent += u64::from(items);
        }
        let target = rate.as_per_second() * now as f64 / 1e9;
        let least = 0.99 * target - f64::from(batch) - 1.0;
        prop_assert!(sent as f64 >= least, "{sent} of {target}");
    }

    #[test]
    fn at_the_time_it_names_something_may_leave(settings in settings(), ops in prop::collection::vec(ops(), 1..40)) {
        let mut world = World::new(settings);
        ops.iter().for_each(|op| world.apply(op));
        // The end of a slow-down may come first: then the next time that it names is right.
        let left = (0..3).any(|_| {
            let gap = world.pace.next_at(1).0.saturating_sub(world.now);
            world.pass(gap);
            world.ask(world.now, 1, 0) == 1
        });
        prop_assert!(left, "nothing left at {}", world.now);
    }
}

#[test]
fn a_raised_rate_never_adds_to_what_was_drawn_just_before_and_departs_just_after() {
    let rate = |per_second| Rate::per_second(per_second).expect("valid");
    let burst = |n: u32| Burst::Items(n.try_into().expect("not zero"));
    let old = Settings {
        rate: rate(1),
        burst: burst(501),
        batch: 500,
    };
    let mut world = World::new(old);
    world.pass(600_000_000_000);
    assert!(world.ask(world.now, 1000, 2_000_000) >= 500);
    world.apply(&Op::Set(Settings {
        rate: rate(100_000),
        burst: burst(210),
        batch: 1,
    }));
    for _ in 0..200 {
        world.pass(10_000);
        world.ask(world.now, 1000, 2_000_000);
    }
    for _ in 0..200 {
        world.pass(10_000);
        world.ask(world.now, 1000, 0);
    }
    let excess = world.auditor.excess();
    assert!(
        excess <= i128::from(world.auditor.burst_max) * UNIT,
        "{} of 501 items",
        excess / UNIT + 1
    );
}

#[test]
fn the_time_to_ask_again_is_not_later_than_the_end_of_a_slow_down() {
    let per = |items, seconds| Rate::new(items, Duration::from_secs(seconds)).expect("valid");
    let burst = Burst::Span(Duration::from_millis(100));
    let mut pace = Pace::new(RateLimit::Limited(per(1000, 1)), burst, 1, Moment(0));
    pace.slow_down(per(1, 3600), Moment(5_000_000_000), Moment(0));
    assert!(pace.next_at(1) <= Moment(5_010_000_000), "{:?}", pace.next_at(1));
    assert!(pace.available(10, Moment(5_010_000_000)) > 0);
}
