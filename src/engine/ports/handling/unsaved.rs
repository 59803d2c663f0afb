//! Periods in which the database of a node took no checkpoint. Written with each transaction of checkpoints, read for
//! explanations.

use std::time::Duration;

use windrow_core::ids::Moment;

/// Shortest period that is shown; shorter failures are tried again and never noticed.
const UNSAVED_MIN: Duration = Duration::from_secs(1);
/// Gap without a write in progress beyond which nobody knows how long the database still failed.
const UNTRIED_MAX: Duration = Duration::from_secs(5);
/// Longest wait of a write for its connection and its answers; a longer one means that the node stood still.
const WRITE_MAX: Duration = Duration::from_secs(20);

/// Periods in which the database took no checkpoint: from the start of the first write that failed to the first that
/// didn't.
#[derive(Debug, Default)]
pub(super) struct Unsaved {
    /// Start of the current period and its last try, or `None`.
    open: Option<(Moment, Moment)>,
    /// Last period that is over and was long enough to show.
    over: Option<(Moment, Moment)>,
}

impl Unsaved {
    /// Records a write that began at `began` and is over now.
    pub(super) fn tried(&mut self, is_stored: bool, began: Moment, now: Moment) {
        let before = self.open.take();
        let lasts = before.filter(|(_, tried)| began.since(*tried) < UNTRIED_MAX);
        let whole = lasts.map(|(from, _)| (from, now));
        if is_stored || lasts.is_none() {
            self.over = whole.or(before).filter(Unsaved::is_told).or(self.over);
        }
        let first = if now.since(began) < WRITE_MAX { began } else { now };
        self.open = (!is_stored).then(|| whole.unwrap_or((first, now)));
    }

    /// Returns the newest period, if it was long enough to tell people. One that isn't over lasts while a write may
    /// be in progress.
    pub(super) fn newest(&self, now: Moment) -> Option<(Moment, Moment)> {
        let until = |tried: Moment| if now.since(tried) < WRITE_MAX { now } else { tried };
        let open = self.open.map(|(from, tried)| (from, until(tried)));
        open.filter(Unsaved::is_told).or(self.over)
    }

    fn is_told((from, to): &(Moment, Moment)) -> bool {
        to.since(*from) >= UNSAVED_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Moment {
        Moment(0).plus(Duration::from_secs(second))
    }

    /// Writes, each with what came of it, its begin and its end in seconds.
    fn unsaved(writes: &[(bool, u64, u64)]) -> Unsaved {
        let mut unsaved = Unsaved::default();
        for (is_stored, began, now) in writes {
            unsaved.tried(*is_stored, at(*began), at(*now));
        }
        unsaved
    }

    #[test]
    fn an_outage_lasts_from_the_first_failed_write_to_the_next_that_is_taken() {
        assert_eq!(unsaved(&[(true, 0, 0), (true, 1, 1)]).newest(at(1)), None);
        // A connection is waited for ten seconds.
        let lasts = [(false, 2, 2), (false, 4, 14), (false, 15, 25)];
        assert_eq!(unsaved(&lasts).newest(at(25)), Some((at(2), at(25))));
        assert_eq!(
            unsaved(&lasts).newest(at(34)),
            Some((at(2), at(34))),
            "the next one waits as well"
        );
        let mut over = unsaved(&[&lasts[..], &[(true, 26, 27)]].concat());
        assert_eq!(over.newest(at(31)), Some((at(2), at(27))));
        over.tried(false, at(30), at(30));
        over.tried(true, at(30), at(30));
        assert_eq!(
            over.newest(at(31)),
            Some((at(2), at(27))),
            "one more try is no outage"
        );
        let hung = unsaved(&[(false, 1, 11), (true, 12, 13)]);
        assert_eq!(
            hung.newest(at(14)),
            Some((at(1), at(13))),
            "it hung from the begin on"
        );
    }

    #[test]
    fn where_nobody_wrote_for_a_while_no_outage_is_told() {
        // Its runs are elsewhere then; the next one begins much later.
        let writes = [(false, 1, 1), (false, 2, 5), (false, 300, 300), (true, 300, 300)];
        assert_eq!(unsaved(&writes).newest(at(301)), Some((at(1), at(5))));
        let gone = unsaved(&writes[..2]);
        assert_eq!(gone.newest(at(100)), Some((at(1), at(5))));
        // A node that stood still in a write of 27 s knows of nothing but its end.
        assert_eq!(unsaved(&[(false, 1, 28), (true, 28, 28)]).newest(at(29)), None);
    }
}
