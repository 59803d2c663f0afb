//! Deadline check: reports that a task can't be done by its deadline, given its items and the rate that binds it.
//! Retries and a slow handler come on top, so it only reports "it can't", never "it will".
//!
//! ```
//! use std::time::Duration;
//! use windrow_core::task::deadline::{Plan, shortfall};
//! use windrow_core::ids::WallMs;
//!
//! let plan = Plan {
//!     items: 3_600,
//!     rate: "1/s".parse().expect("a rate"),
//!     limit: None,
//!     begins: WallMs(0),
//!     deadline: WallMs(600_000),
//! };
//! let short = shortfall(&plan).expect("it can't be done");
//! assert_eq!((short.needs, short.has, short.done), (Duration::from_secs(3_600), Duration::from_secs(600), 600));
//! ```

use std::time::Duration;

use crate::ids::WallMs;
use crate::settings::{Rate, RateLimit};

/// Inputs of the deadline check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of items that are left.
    pub items: u64,
    /// Rate limit of the task.
    pub rate: RateLimit,
    /// Lowest limit that it shares with other tasks.
    pub limit: Option<Rate>,
    /// Time at which the first of these items can be dispatched.
    pub begins: WallMs,
    /// Deadline at which the task is stopped.
    pub deadline: WallMs,
}

/// Gap between the time that a task needs and its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Rate that binds the task.
    pub rate: Rate,
    /// True if that is the limit, not the task's own rate.
    pub is_limit: bool,
    /// Time that the items take.
    pub needs: Duration,
    /// Time that is available.
    pub has: Duration,
    /// Number of items that can be dispatched until then.
    pub done: u64,
    /// Lowest sufficient rate in whole items per second or per hour; `None` if no time is left.
    pub needed: Option<Rate>,
    /// True for the task's own rate, and for the limit, if they are lower than `needed`.
    pub are_lower: (bool, bool),
    /// Time at which the last item is dispatched.
    pub until: WallMs,
}

/// Returns the gap to the deadline at the rate that binds the task, or `None` if the rate allows it.
pub fn shortfall(plan: &Plan) -> Option<Shortfall> {
    let (rate, is_limit) = binding(plan).filter(|_| plan.items > 0)?;
    let has = plan.deadline.since(plan.begins);
    let needs = rate.time_of(plan.items);
    let needed = least(plan.items, has);
    let is_lower = |rate: Rate| needed.is_some_and(|needed| needed.is_faster_than(rate));
    let own = plan.rate.most().is_some_and(is_lower);
    (needs > has).then(|| Shortfall {
        rate,
        is_limit,
        needs,
        has,
        done: items_in(rate, has).min(plan.items),
        needed,
        are_lower: (own, plan.limit.is_some_and(is_lower)),
        until: plan.begins.plus(needs),
    })
}

/// Returns the slower of the task's rate and the limit; `None` if neither is limited.
fn binding(plan: &Plan) -> Option<(Rate, bool)> {
    match (plan.rate.most(), plan.limit) {
        (Some(own), Some(most)) if own.is_faster_than(most) => Some((most, true)),
        (Some(own), _) => Some((own, false)),
        (None, most) => most.map(|most| (most, true)),
    }
}

fn items_in(rate: Rate, span: Duration) -> u64 {
    let items = span.as_nanos().saturating_mul(u128::from(rate.items())) / u128::from(rate.period_ns());
    u64::try_from(items).unwrap_or(u64::MAX)
}

fn least(items: u64, has: Duration) -> Option<Rate> {
    let per = |unit: u64| {
        let wanted = u128::from(items) * u128::from(unit) * 1_000_000_000;
        let count = u64::try_from(wanted.div_ceil(has.as_nanos().max(1))).ok()?;
        Rate::new(count, Duration::from_secs(unit))
    };
    let is_seconds = items as u128 * 1_000_000_000 >= has.as_nanos();
    if has.is_zero() {
        None
    } else {
        per(if is_seconds { 1 } else { 3_600 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(items: u64, rate: &str, has_seconds: i64) -> Plan {
        let rate = rate.parse().expect("a rate");
        let deadline = WallMs(50_000 + has_seconds * 1000);
        Plan {
            items,
            rate,
            limit: None,
            begins: WallMs(50_000),
            deadline,
        }
    }

    fn rate(text: &str) -> Rate {
        text.parse().expect("a rate")
    }

    #[test]
    fn what_takes_exactly_as_long_as_there_is_fits() {
        assert_eq!(shortfall(&plan(600, "1/s", 600)), None);
        assert!(shortfall(&plan(601, "1/s", 600)).is_some());
        assert_eq!(shortfall(&plan(0, "1/h", 0)), None, "nothing is left");
        assert_eq!(
            shortfall(&plan(u64::MAX, "unlimited", 1)),
            None,
            "as fast as the handler answers"
        );
    }

    #[test]
    fn it_says_what_would_be_done_and_which_rate_would_do() {
        let short = shortfall(&plan(1_000, "30/m", 600)).expect("it is too slow");
        assert_eq!(
            (short.rate, short.is_limit, short.done),
            (rate("30/m"), false, 300)
        );
        assert_eq!(
            (short.needed, short.until),
            (Some(rate("2/s")), WallMs(2_050_000))
        );
        let slow = shortfall(&plan(10, "1/1d", 3_600 * 24 * 5)).expect("it is too slow");
        assert_eq!(slow.needed, Some(rate("1/h")));
        for (items, seconds) in [(7, 3), (1_000, 7), (3, 10_000), (999_999, 86_399)] {
            let short = shortfall(&plan(items, "1/30d", seconds)).expect("it is too slow");
            let needed = short.needed.expect("there is time").to_string();
            assert_eq!(shortfall(&plan(items, &needed, seconds)), None, "{needed}");
        }
    }

    #[test]
    fn the_limit_binds_what_is_faster_or_unpaced() {
        let short = |own, limit| {
            let bound = Plan {
                limit: Some(rate(limit)),
                ..plan(601, own, 600)
            };
            shortfall(&bound).map(|short| (short.is_limit, short.are_lower))
        };
        assert_eq!(
            (short("100/s", "1/s"), short("unlimited", "1/s")),
            (Some((true, (false, true))), Some((true, (false, true))))
        );
        assert_eq!(
            (short("1/s", "100/s"), short("2/s", "100/s")),
            (Some((false, (true, false))), None)
        );
        assert_eq!(
            (short("1/10s", "1/s"), short("1/s", "1/10s")),
            (Some((false, (true, true))), Some((true, (true, true)))),
            "one alone wouldn't do"
        );
    }

    #[test]
    fn a_start_after_the_deadline_leaves_no_time() {
        let short = shortfall(&plan(1, "1000/s", -5)).expect("it is over");
        assert_eq!((short.has, short.done, short.needed), (Duration::ZERO, 0, None));
    }

    #[test]
    fn the_longest_plans_have_an_end() {
        let endless = shortfall(&plan(u64::MAX, "1/30d", 1)).expect("it is too slow");
        assert_eq!((endless.done, endless.needed), (0, None), "no rate is as high");
    }
}
