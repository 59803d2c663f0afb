//! Periods of allowances as they follow each other, also by clocks that are wrong.

use proptest::prelude::*;

use crate::ids::WallMs;
use crate::meter::allowance::Periods;
use crate::meter::amount::Amount;
use crate::meter::class::Cost;
use crate::meter::period::{Calendar, Period};
use crate::zone::Zone;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// Midnight in UTC.
const MIDNIGHT: i64 = 20_000 * DAY;

fn days(zone: Zone) -> Calendar {
    Calendar {
        period: Period::Day,
        zone,
    }
}

fn begun(wall: i64) -> Periods {
    Periods::restore(days(Zone::UTC), None, WallMs(wall))
}

fn units(units: u64) -> Amount {
    Amount::units(units)
}

#[test]
fn a_period_that_follows_is_unused() {
    let mut periods = begun(MIDNIGHT + HOUR);
    assert_eq!(periods.turn(units(7), WallMs(MIDNIGHT + DAY - 1)), None);
    assert_eq!(periods.turn(units(7), WallMs(MIDNIGHT + DAY)), Some(Amount::ZERO));
    assert_eq!(periods.current().start, WallMs(MIDNIGHT + DAY));
    assert_eq!(
        periods.turn(units(1), WallMs(MIDNIGHT + 9 * DAY)),
        Some(Amount::ZERO)
    );
}

#[test]
fn a_clock_that_was_ahead_leads_back_to_what_was_used_before_and_meanwhile() {
    for restarts in [false, true] {
        let mut periods = begun(MIDNIGHT + HOUR);
        let ahead = MIDNIGHT + 30 * DAY + 23 * HOUR;
        assert_eq!(periods.turn(units(7), WallMs(ahead)), Some(Amount::ZERO));
        // A midnight passes by the wrong clock.
        assert_eq!(
            periods.turn(units(3), WallMs(ahead + 2 * HOUR)),
            Some(Amount::ZERO)
        );
        if restarts {
            periods = Periods::restore(
                days(Zone::UTC),
                Some(periods.stored()),
                WallMs(MIDNIGHT + 4 * HOUR),
            );
        }
        let right = WallMs(MIDNIGHT + 4 * HOUR);
        assert_eq!(periods.turn(units(2), right), Some(units(12)));
        assert_eq!(
            periods.turn(units(12), WallMs(MIDNIGHT + DAY)),
            Some(Amount::ZERO),
            "it counts once"
        );
    }
}

#[test]
fn a_clock_that_is_wrong_twice_adds_what_was_used_once() {
    let (right, ahead) = (WallMs(MIDNIGHT + HOUR), WallMs(MIDNIGHT + 30 * DAY));
    let mut periods = begun(right.0);
    assert_eq!(periods.turn(units(10), ahead), Some(Amount::ZERO));
    assert_eq!(periods.turn(units(5), right), Some(units(15)));
    assert_eq!(periods.turn(units(15), ahead), Some(units(5)));
    let mut periods = Periods::restore(days(Zone::UTC), Some(periods.stored()), ahead);
    assert_eq!(
        periods.turn(units(5), right),
        Some(units(15)),
        "nothing was used since"
    );
    assert_eq!(periods.turn(units(15), ahead), Some(units(5)));
    assert_eq!(periods.turn(units(7), right), Some(units(17)));
}

#[test]
fn a_clock_that_is_set_back_by_seconds_leaves_the_period() {
    let mut periods = begun(MIDNIGHT + 1);
    assert_eq!(periods.turn(units(7), WallMs(MIDNIGHT - 60_000)), None);
    assert_eq!(periods.turn(units(7), WallMs(MIDNIGHT - 60_001)), Some(units(7)));
}

#[test]
fn a_changed_calendar_keeps_what_was_used_until_the_later_end() {
    let stored = Some(begun(MIDNIGHT + HOUR).stored());
    let now = WallMs(MIDNIGHT + HOUR);
    let week = Calendar {
        period: Period::Week,
        zone: Zone::UTC,
    };
    let hour = Calendar {
        period: Period::Hour,
        zone: Zone::UTC,
    };
    for calendar in [
        week,
        hour,
        days(Zone::America__Los_Angeles),
        days(Zone::Asia__Tokyo),
    ] {
        let mut periods = Periods::restore(calendar, stored.clone(), now);
        assert_eq!(periods.turn(units(7), now), None, "{calendar:?}");
        let end = periods.current().end;
        assert!(
            end >= WallMs(MIDNIGHT + DAY) && end >= calendar.at(now).end,
            "{calendar:?}"
        );
        // What is new begins with a whole period.
        assert_eq!(periods.turn(units(7), WallMs(end.0 - 1)), None, "{calendar:?}");
        assert_eq!(periods.turn(units(7), end), Some(Amount::ZERO));
        assert_eq!(periods.current(), calendar.at(end));
    }
}

#[test]
fn a_call_belongs_to_the_period_of_its_departure() {
    let mut periods = begun(MIDNIGHT);
    assert_eq!(periods.turn(units(7), WallMs(MIDNIGHT + DAY)), Some(Amount::ZERO));
    periods.settle(WallMs(MIDNIGHT), units(2), Cost::Known(units(3)));
    assert_eq!(periods.turn(Amount::ZERO, WallMs(MIDNIGHT)), Some(units(8)));
}

proptest! {
    #[test]
    fn a_clock_that_is_wrong_for_a_while_lets_no_period_begin_anew(
        start in 0..DAY, before in 1..100_u64, jump in -40 * DAY..40 * DAY,
        steps in proptest::collection::vec((0..2 * HOUR, 1..20_u64), 1..8),
    ) {
        let (mut wall, last) = (MIDNIGHT + start, steps.len() - 1);
        let mut periods = begun(wall);
        let (mut used, mut behind) = (units(before), 0);
        let mut paid = before;
        for (at, (passes, spends)) in steps.into_iter().enumerate() {
            wall += passes;
            if wall >= MIDNIGHT + DAY {
                return Ok(());
            }
            let shown = if at == last { wall } else { wall + jump };
            used = periods.turn(used, WallMs(shown)).unwrap_or(used).plus(units(spends));
            paid += spends;
            if shown < MIDNIGHT {
                behind += spends;
            }
        }
        // A clock that is behind spends the allowance of the day that it shows.
        prop_assert!(used.plus(units(behind)) >= units(paid), "{} and {} of {}", used, behind, paid);
    }
}
