//! Allowances of calendar periods: over midnight, over both changes of the clocks, by a clock that is wrong for a while,
//! and through deaths at any moment, a period never sees more than its amount.

use std::collections::BTreeMap;

use windrow_core::ids::WallMs;
use windrow_core::meter::period::{Calendar, Period};
use windrow_core::zone::Zone;

use crate::charges::{SECOND, World, thousand, uneven};
use crate::rng::Rng;

/// Seconds of an hour.
const HOUR: u64 = 3600;
/// Tokens of a period.
const AMOUNT: u64 = 400_000;

fn begun(limit: &str, from: &str) -> World {
    let mut world = World::new(1 << 20, &[limit], uneven, Some(uneven));
    world.begin(WallMs::from_rfc3339(from).expect("a time"));
    world
}

/// Returns what was paid in each period of the true clock.
fn by_period(world: &World, calendar: Calendar) -> BTreeMap<WallMs, u64> {
    let mut paid = BTreeMap::new();
    for call in &world.paid {
        *paid
            .entry(calendar.at(world.true_wall(call.at)).start)
            .or_default() += call.cost;
    }
    paid
}

fn calendar(period: Period, zone: &str) -> Calendar {
    Calendar {
        period,
        zone: zone.parse().expect("a zone"),
    }
}

/// Checks that no period saw more than the amount, and that all but the last used nearly all of it.
fn assert_kept(world: &World, calendar: Calendar, periods: usize, deaths: u64) {
    let paid = by_period(world, calendar);
    assert_eq!(paid.len(), periods, "{paid:?}");
    for (start, paid) in &paid {
        assert!(*paid <= AMOUNT, "{start:?}: {paid}");
    }
    let whole = paid.values().rev().skip(1);
    // A death may leave what a checkpoint allowed unspent.
    let least = AMOUNT - 3_000 - deaths * (AMOUNT / 64 + 6_000);
    assert!(whole.clone().all(|paid| *paid >= least), "{paid:?}");
}

#[test]
fn a_day_is_used_up_and_the_next_one_goes_on_at_midnight() {
    let mut world = begun("400k tokens/day", "2027-03-09T23:50:00Z");
    world.run(2 * 24 * HOUR);
    assert_kept(&world, calendar(Period::Day, "UTC"), 3, 0);
    assert_eq!(world.stopped(), None, "an allowance never stops a task");
    let midnight = world
        .paid
        .iter()
        .map(|call| call.at / SECOND)
        .find(|at| *at >= 600);
    assert!(midnight.is_some_and(|at| at <= 601), "{midnight:?}");
}

#[test]
fn a_run_that_waits_says_which_allowance_holds_it_and_until_when() {
    let mut world = begun("9k tokens/day America/Los_Angeles", "2027-03-13T20:00:00Z");
    world.run(HOUR);
    let progress = world.progress();
    assert_eq!(progress.stall.map(|stall| stall.as_str()), Some("usage"));
    let held = format!("{:?}", progress.held_by);
    assert!(held.contains("9k tokens/day America/Los_Angeles"), "{held}");
    assert!(held.contains("Sun 2027-03-14 00:00:00 PST"), "{held}");
    let allowance = progress.costs[0].allowance.clone().expect("one is set");
    assert!(allowance.is_used_up);
    assert_eq!(allowance.next.to_rfc3339(), "2027-03-14T08:00:00.000Z");
}

#[test]
fn days_of_23_and_of_25_hours_have_one_allowance_each() {
    for from in ["2027-03-27T22:00:00Z", "2027-10-30T21:00:00Z"] {
        let mut world = begun("400k tokens/day Europe/Berlin", from);
        world.run(47 * HOUR);
        assert_kept(&world, calendar(Period::Day, "Europe/Berlin"), 3, 0);
    }
}

#[test]
fn deaths_at_any_moment_never_spend_a_period_twice() {
    for seed in 0..12 {
        let mut world = begun("400k tokens/hour", "2027-03-09T22:59:30Z");
        world.rng = Rng(seed + 1);
        let mut kills = 0;
        while world.now < 2 * HOUR * SECOND {
            // Often while a period is spent, and around its end.
            let into = (world.now / SECOND + 3570) % HOUR;
            let step = if !(60..=HOUR - 35).contains(&into) {
                1 + world.rng.between(0, 3)
            } else {
                300
            };
            let until = (world.now / SECOND + step).min(2 * HOUR);
            match world.rng.between(0, 3) {
                0 => world.run_unsaved(until),
                _ => world.run(until),
            }
            if kills < 12 {
                world.kill();
                kills += 1;
            }
        }
        assert_kept(&world, calendar(Period::Hour, "UTC"), 3, 12);
    }
}

#[test]
fn a_death_after_any_step_spends_neither_the_day_nor_the_next_one_twice() {
    for steps in 0..100 {
        // While the day is spent, and around midnight; with a store that takes what is saved, and with one that doesn't.
        for (before, is_deaf) in [(0, false), (0, true), (9, false), (9, true)] {
            let mut world = begun("60k tokens/day", "2027-03-09T23:59:50Z");
            world.rng = Rng(u64::from(steps) + 1);
            world.run(before);
            world.is_deaf = is_deaf;
            world.run_turns(20, steps);
            world.is_deaf = false;
            world.kill();
            world.run(60);
            let paid = by_period(&world, calendar(Period::Day, "UTC"));
            assert!(
                paid.values().all(|paid| *paid <= 60_000),
                "{steps} {before} {is_deaf}: {paid:?}"
            );
            assert!(
                is_deaf || paid.values().all(|paid| *paid >= 50_000),
                "{steps} {before}: {paid:?}"
            );
        }
    }
}

#[test]
fn a_clock_that_was_ahead_by_a_month_and_is_put_right_gives_no_period_twice() {
    for (kills, hours_ahead) in [(false, 5), (true, 5), (true, 26)] {
        let mut world = begun("400k tokens/day", "2027-03-09T08:00:00Z");
        world.run(5);
        assert!(world.paid() < AMOUNT);
        world.clock_ahead = 30 * 24 * HOUR as i64 * 1000 + 14 * HOUR as i64 * 1000;
        world.run(60);
        if kills {
            world.kill();
        }
        world.run(hours_ahead * HOUR);
        world.clock_ahead = 0;
        if kills {
            world.kill();
        }
        world.run(64 * HOUR);
        let paid = by_period(&world, calendar(Period::Day, "UTC"));
        // While the clock is ahead, the periods that it shows have allowances of their own.
        let shown = 1 + u64::from(hours_ahead > 2) + u64::from(hours_ahead > 24);
        let first = paid.values().next().copied().unwrap_or_default();
        assert!(first <= (1 + shown) * AMOUNT, "{paid:?}");
        let later = paid.values().skip(1);
        assert!(later.clone().all(|paid| *paid <= AMOUNT), "{paid:?}");
        assert!(
            later.clone().last().is_some_and(|paid| *paid > AMOUNT / 2),
            "{paid:?}"
        );
    }
}

#[test]
fn use_under_a_clock_that_was_ahead_counts_once_it_is_put_right() {
    let mut world = World::new(1 << 20, &["400k tokens/day"], thousand, Some(thousand));
    world.begin(WallMs::from_rfc3339("2027-03-09T08:00:00Z").expect("a time"));
    world.run(1);
    let before = world.paid();
    world.clock_ahead = 30 * 24 * HOUR as i64 * 1000;
    world.run(3);
    assert!(
        before < world.paid() && world.paid() < AMOUNT,
        "{before} and {}",
        world.paid()
    );
    world.clock_ahead = 0;
    world.run(12 * HOUR);
    assert_eq!(world.paid(), AMOUNT, "the day has one allowance");
}

#[test]
fn a_changed_zone_keeps_what_was_used() {
    let mut world = begun("400k tokens/day", "2027-03-09T08:00:00Z");
    world.run(HOUR);
    assert!(world.paid() > AMOUNT - 3_000);
    let paid = world.paid();
    world.set_limit("400k tokens/day Asia/Tokyo");
    world.kill();
    // In Tokyo the next day begins at 15:00 in UTC, which is before the old day ends.
    world.run(16 * HOUR - 1);
    assert_eq!(world.paid(), paid);
    world.set_limit("400k tokens/hour");
    world.kill();
    world.run(32 * HOUR);
    let calendar = Calendar {
        period: Period::Day,
        zone: Zone::UTC,
    };
    assert_eq!(by_period(&world, calendar).values().next(), Some(&paid));
}
