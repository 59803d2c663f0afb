//! Progress and estimated end of a task, computed once for every surface.

use std::time::Duration;

use crate::ids::ItemCount;
use crate::items::counters::Counters;
use crate::settings::{Rate, RateLimit};

/// Progress of a task: items with a final verdict, out of the items to be done. Items left out, at the head or by an
/// early finish, are in neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Number of items with a final verdict.
    pub settled: u64,
    /// Number of items to be done, including the settled ones.
    pub of: u64,
}

impl Completion {
    /// Computes the completion of a task, or of a part of one.
    pub fn of(counters: &Counters, total: ItemCount) -> Completion {
        Completion {
            settled: counters.settled(),
            of: total.0.saturating_sub(counters.excluded),
        }
    }

    /// Returns the settled share, from 0 to 1. An empty task is complete.
    pub fn ratio(self) -> f64 {
        if self.settled >= self.of {
            1.0
        } else {
            self.settled as f64 / self.of as f64
        }
    }

    /// Returns the settled share in percent, rounded to a tenth; 100 only when nothing is left.
    pub fn percent(self) -> f64 {
        if self.settled >= self.of {
            return 100.0;
        }
        let tenths = (u128::from(self.settled) * 2000 / u128::from(self.of)).div_ceil(2);
        tenths.min(999) as f64 / 10.0
    }
}

/// Returns the time until all is done at this pace, but no sooner than the rate allows: after a stall more settles
/// for a while than is sent. Returns `None` while nothing settles, and if only parked items are left: those wait for
/// a retry or a verdict, whatever the pace was.
pub fn eta(
    counters: &Counters,
    total: ItemCount,
    rate: RateLimit,
    settled_per_second: f64,
) -> Option<Duration> {
    let most = rate.most().map_or(f64::INFINITY, Rate::as_per_second);
    let pace = settled_per_second.min(most);
    let pending = counters.pending(total);
    let left = pending + counters.in_flight + counters.parked;
    let moves = pace > 0.0 && left > 0 && (pending > 0 || counters.parked == 0);
    moves
        .then(|| Duration::try_from_secs_f64((left as f64 / pace).ceil()).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Rate;

    fn counters(succeeded: u64, excluded: u64) -> Counters {
        Counters {
            succeeded,
            excluded,
            ..Counters::default()
        }
    }

    #[test]
    fn what_is_left_out_is_neither_done_nor_to_be_done() {
        let percent =
            |succeeded, excluded| Completion::of(&counters(succeeded, excluded), ItemCount(1000)).percent();
        assert_eq!(percent(2, 998), 100.0, "it was finished early");
        assert_eq!(percent(0, 900), 0.0, "its head is left out");
        assert_eq!(percent(1, 998), 50.0);
        assert_eq!(Completion::of(&counters(0, 0), ItemCount(0)).percent(), 100.0);
    }

    #[test]
    fn everything_is_said_of_everything_only() {
        let percent = |succeeded| {
            let total = ItemCount(1_000_000);
            Completion::of(&counters(succeeded, 0), total).percent()
        };
        assert_eq!([999_999, 1_000_000, 389_939].map(percent), [99.9, 100.0, 39.0]);
    }

    #[test]
    fn an_end_is_promised_only_while_something_moves_that_never_failed() {
        let at = |pending: u64, in_flight: u64, parked: u64, pace: f64| {
            let counters = Counters {
                in_flight,
                parked,
                ..Counters::default()
            };
            let most = RateLimit::Limited(Rate::per_second(5).expect("a rate"));
            eta(&counters, ItemCount(pending + in_flight + parked), most, pace)
        };
        assert_eq!(at(100, 0, 0, 0.0), None);
        assert_eq!(at(70, 20, 10, 3.0), Some(Duration::from_secs(34)));
        assert_eq!(at(0, 3, 0, 3.0), Some(Duration::from_secs(1)));
        assert_eq!(at(0, 3, 40, 3.0), None);
        assert_eq!(at(0, 0, 0, 3.0), None, "nothing is left");
        assert_eq!(
            at(100, 0, 0, 50.0),
            Some(Duration::from_secs(20)),
            "the rate is 5/s"
        );
    }
}
