//! What became of every permit, against a twin that lives through time in ticks of 10 µs.
//!
//! Everything happens between two ticks, and all periods divide a minute, so the twin is exact: a unit is
//! `1 / MINUTE_NS` of an item, and a rate gives a whole number of them in each nanosecond.

use std::time::Duration;

use proptest::prelude::*;
use windrow_core::ids::Moment;
use windrow_core::pace::{Pace, STALE_AFTER, burst_items};
use windrow_core::settings::{Burst, Rate, RateLimit};
use windrow_core::stats::permits::Permits;
use windrow_core::stats::stall::StallReason;

const TICK_NS: u64 = 10_000;
const MINUTE_NS: u64 = 60_000_000_000;
/// Each of the terms is rounded down to a millionth.
const ROUNDING: u64 = 20;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// So many ticks pass.
    Pass(u64),
    Ask(u32),
    Blame(Option<StallReason>),
    Set(RateLimit, Burst, u32),
    SlowDown(Rate, u64),
    Pause(u64),
    Empty,
    Look,
}

fn rates() -> impl Strategy<Value = Rate> {
    let periods = prop_oneof![Just(60_000u64), Just(1_000), Just(100)];
    (prop_oneof![1u64..20, 1u64..90_000], periods)
        .prop_map(|(items, ms)| Rate::new(items, Duration::from_millis(ms)).expect("valid"))
}

fn limits() -> impl Strategy<Value = RateLimit> {
    prop_oneof![6 => rates().prop_map(RateLimit::Limited), 1 => Just(RateLimit::Unlimited)]
}

fn bursts() -> impl Strategy<Value = Burst> {
    let items = |n: u32| Burst::Items(n.try_into().expect("not zero"));
    prop_oneof![2 => Just(Burst::Span(Duration::from_millis(100))), 1 => (1u32..3000).prop_map(items)]
}

fn ops() -> impl Strategy<Value = Op> {
    let reasons = prop::sample::select(StallReason::ALL.to_vec());
    prop_oneof![
        10 => prop_oneof![4 => 0u64..400, 1 => 0u64..20_000].prop_map(Op::Pass),
        8 => prop_oneof![Just(1u32), 1u32..300, Just(u32::MAX)].prop_map(Op::Ask),
        4 => prop::option::of(reasons).prop_map(Op::Blame),
        2 => (limits(), bursts(), prop_oneof![Just(1u32), 1u32..100]).prop_map(|(r, b, n)| Op::Set(r, b, n)),
        1 => (rates(), 0u64..8_000).prop_map(|(rate, ticks)| Op::SlowDown(rate, ticks)),
        1 => (0u64..8_000).prop_map(Op::Pause),
        1 => Just(Op::Empty),
        2 => Just(Op::Look),
    ]
}

/// Units a nanosecond.
fn speed(rate: Rate) -> u64 {
    rate.items() * (MINUTE_NS / rate.period_ns())
}

#[derive(Default)]
struct Sums {
    due: u128,
    left: u64,
    lost: [u128; StallReason::ALL.len()],
    late: u128,
    slowed: u128,
}

struct Twin {
    now: u64,
    limit: RateLimit,
    burst: Burst,
    batch: u32,
    slow: Option<(Rate, u64)>,
    in_force: Option<Rate>,
    credit: u128,
    earns_from: u64,
    paused_until: u64,
    blamed: Option<StallReason>,
    sums: Sums,
}

impl Twin {
    fn new(limit: RateLimit, burst: Burst, batch: u32) -> Twin {
        let mut twin = Twin {
            now: 0,
            limit,
            burst,
            batch,
            slow: None,
            in_force: None,
            credit: 0,
            earns_from: 0,
            paused_until: 0,
            blamed: None,
            sums: Sums::default(),
        };
        twin.change();
        twin
    }

    fn cap(&self, rate: Rate) -> u64 {
        let batch = u64::from(self.batch);
        let wanted =
            (batch + rate.items_in(Duration::from_millis(3))).max(rate.items_in(Duration::from_millis(50)));
        let room = burst_items(self.burst, rate, self.batch).saturating_sub(rate.items_in(STALE_AFTER));
        wanted.max(2).min(room).max(1)
    }

    /// The rate in force may be another one: whole items survive as far as they fit.
    fn change(&mut self) {
        let before = self.in_force;
        let rates = [self.limit.most(), self.slow.map(|(rate, _)| rate)];
        self.in_force = rates.into_iter().flatten().min_by_key(|rate| speed(*rate));
        let whole = self.credit / u128::from(MINUTE_NS);
        let fits = self
            .in_force
            .map_or(0, |rate| whole.min(u128::from(self.cap(rate))));
        self.sums.late += self.credit - fits * u128::from(MINUTE_NS);
        self.credit = fits * u128::from(MINUTE_NS);
        if let (Some(before), Some(after)) = (before, self.in_force)
            && speed(before) < speed(after)
        {
            self.earns_from = self.earns_from.max(self.now + STALE_AFTER.as_nanos() as u64);
        }
    }

    fn tick(&mut self) {
        if let Some((_, until)) = self.slow
            && self.now >= until
        {
            self.slow = None;
            self.change();
        }
        let gives = |rate: Rate| u128::from(speed(rate) * TICK_NS);
        if let Some(rate) = self.in_force {
            self.sums.due += gives(rate);
            if let RateLimit::Limited(full) = self.limit {
                self.sums.due += gives(full) - gives(rate);
                self.sums.slowed += gives(full) - gives(rate);
            }
            self.earn(rate, gives(rate));
        }
        self.now += TICK_NS;
    }

    fn earn(&mut self, rate: Rate, given: u128) {
        if self.now < self.earns_from {
            self.sums.late += given;
            return;
        }
        let all = self.credit + given;
        self.credit = all.min(u128::from(self.cap(rate)) * u128::from(MINUTE_NS));
        let over = all - self.credit;
        match self.blamed.filter(|reason| *reason != StallReason::BackPressure) {
            _ if self.now < self.paused_until => self.sums.lost[StallReason::BackPressure as usize] += over,
            Some(reason) => self.sums.lost[reason as usize] += over,
            None => self.sums.late += over,
        }
    }

    fn leave(&mut self, items: u32) {
        let units = u128::from(items) * u128::from(MINUTE_NS);
        self.sums.left += u64::from(items);
        match self.in_force {
            Some(_) => self.credit = self.credit.checked_sub(units).expect("it was earned"),
            None => self.sums.due += units,
        }
    }

    fn apply(&mut self, op: Op, pace: &mut Pace) -> Result<(), TestCaseError> {
        let now = Moment(self.now);
        match op {
            Op::Pass(ticks) => (0..ticks).for_each(|_| self.tick()),
            Op::Ask(want) => {
                let items = pace.available(want, now);
                // Without a rate as many leave as are asked for: not too many for the sums.
                let items = items.min(100_000);
                pace.take(items);
                self.end_slow_down();
                self.leave(items);
            }
            Op::Blame(reason) => {
                pace.blame(reason, now);
                self.blamed = reason;
            }
            Op::Set(limit, burst, batch) => {
                pace.set(limit, burst, batch, now);
                self.end_slow_down();
                (self.limit, self.burst, self.batch) = (limit, burst, batch);
                self.change();
            }
            Op::SlowDown(rate, ticks) => {
                let until = self.now + ticks * TICK_NS;
                pace.slow_down(rate, Moment(until), now);
                self.end_slow_down();
                self.slow = Some((rate, until));
                self.change();
            }
            Op::Pause(ticks) => {
                let until = self.now + ticks * TICK_NS;
                pace.pause_until(Moment(until), now);
                self.paused_until = self.paused_until.max(until);
            }
            Op::Empty => {
                pace.empty(now);
                self.end_slow_down();
                self.sums.late += std::mem::take(&mut self.credit);
            }
            Op::Look => self.compare(&pace.permits(now))?,
        }
        Ok(())
    }

    /// A slow-down that ends now has ended before anything else happens now.
    fn end_slow_down(&mut self) {
        if self.slow.is_some_and(|(_, until)| self.now >= until) {
            self.slow = None;
            self.change();
        }
    }

    fn compare(&mut self, found: &Permits) -> Result<(), TestCaseError> {
        self.end_slow_down();
        let micro = |units: u128| (units * 1_000_000 / u128::from(MINUTE_NS)) as u64;
        let sums = &self.sums;
        let near = |what: &str, found: u64, true_one: u128| {
            let expected = micro(true_one);
            prop_assert!(found.abs_diff(expected) <= 2, "{what}: {found}, not {expected}");
            Ok(())
        };
        near("due", found.due, sums.due)?;
        near("late", found.late, sums.late)?;
        near("slowed", found.slowed, sums.slowed)?;
        for (reason, (found, expected)) in StallReason::ALL.iter().zip(found.lost.iter().zip(sums.lost)) {
            near(reason.as_str(), *found, expected)?;
        }
        let accounted = found.spent() + sums.left * 1_000_000 + micro(self.credit);
        prop_assert!(
            found.due.abs_diff(accounted) <= ROUNDING,
            "{accounted} of {}",
            found.due
        );
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_permit_is_accounted_for_and_each_reason_has_its_part(
        limit in limits(),
        burst in bursts(),
        batch in prop_oneof![Just(1u32), 1u32..100],
        ops in prop::collection::vec(ops(), 1..120),
    ) {
        let mut pace = Pace::new(limit, burst, batch, Moment(0));
        let mut twin = Twin::new(limit, burst, batch);
        for op in ops {
            twin.apply(op, &mut pace)?;
        }
        twin.apply(Op::Look, &mut pace)?;
    }
}

#[test]
fn a_run_that_ends_is_due_nothing_more() {
    let rate = RateLimit::Limited(Rate::per_second(1000).expect("valid"));
    let mut pace = Pace::new(rate, Burst::Span(Duration::from_millis(100)), 1, Moment(0));
    pace.blame(Some(StallReason::WindowFull), Moment(1_000_000_000));
    let before = pace.permits(Moment(1_000_000_000));
    pace.halt();
    assert_eq!(pace.permits(Moment(9_000_000_000)), before);
    assert_eq!(before.due, 1_000_000_000);
}
