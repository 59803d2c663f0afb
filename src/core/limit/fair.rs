//! Fair division of slots among runs. A long call holds its slot, so slots are shared, not calls: otherwise a run
//! whose calls take 8 s would keep all of them, and one whose calls take 10 ms would wait for it each time.
//!
//! Each run that wants slots, or used some recently, has a share in whole slots, equal for equal weights. Beyond its share a run takes
//! what the others' shares leave, in rotation if several want that. For runs that want none right now only some slots are
//! kept free: a run of short calls wants one again in a moment, and a slot given to a long call doesn't come back
//! that soon. If a batch is larger than a share and the batches don't all fit together, nobody has a share: all slots
//! are taken in rotation, and the next run waits for enough of them.

/// Divisor of all slots: at most one in this many is kept free for runs that want none right now.
const KEPT_FREE: u64 = 4;

/// Use of slots by one run, and its demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holding {
    /// Number of slots that it holds.
    pub used: u64,
    /// True if it wants more slots.
    pub is_hungry: bool,
    /// Approximate number of slots in use at a time recently.
    pub recent: u64,
    /// Number of slots that it needs at once.
    pub batch: u64,
    /// Weight of its share.
    pub weight: u64,
    /// Items given to it so far, for its weight; raised for a run that was idle so that it can't save up.
    pub served: u64,
}

impl Holding {
    fn is_active(self) -> bool {
        self.is_hungry || self.used > 0 || self.recent > 0
    }
}

/// Returns the number of the `slots` that a run may take now, given the others; fewer may be free. Slots that no
/// share covers go to the run that was served least.
pub(super) fn allowed(slots: u64, own: Holding, others: impl Iterator<Item = Holding> + Clone) -> u64 {
    let active = others.clone().filter(|other| other.is_active());
    let weights = active.clone().map(|other| other.weight).sum::<u64>() + own.weight;
    let of_weight = |run: Holding| slots * run.weight / weights.max(1);
    let least = |run: Holding| of_weight(run).max(run.batch);
    let fits = active.map(least).sum::<u64>() + least(own) <= slots;
    let share_of = |run: Holding| if fits { of_weight(run) } else { 0 };
    let share = share_of(own);
    let missing = |other: Holding| match other.is_hungry {
        true => (share_of(other).saturating_sub(other.used), 0),
        false => (0, share_of(other).min(other.recent).saturating_sub(other.used)),
    };
    let (mut taken, mut owed, mut kept) = (0_u64, 0_u64, 0_u64);
    let mut is_its_turn = true;
    for other in others {
        let (wanted, quiet) = missing(other);
        taken += other.used;
        owed += wanted;
        kept += quiet;
        let is_behind = other.used <= share_of(other).max(own.used) && other.served < own.served;
        is_its_turn &= !(other.is_hungry && is_behind);
    }
    let beside = taken + owed + kept.min(slots / KEPT_FREE);
    let most = match is_its_turn {
        true => share.max(slots.saturating_sub(beside)),
        false => share,
    };
    most.saturating_sub(own.used)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hungry(used: u64) -> Holding {
        Holding {
            used,
            is_hungry: true,
            recent: used,
            batch: 1,
            weight: 10,
            served: 0,
        }
    }

    fn quiet(used: u64, recent: u64) -> Holding {
        Holding {
            used,
            is_hungry: false,
            recent,
            batch: 1,
            weight: 10,
            served: 0,
        }
    }

    fn of_ten(own: Holding, others: &[Holding]) -> u64 {
        allowed(10, own, others.iter().copied())
    }

    #[test]
    fn who_is_alone_may_take_all() {
        assert_eq!(of_ten(hungry(3), &[]), 7);
        assert_eq!(of_ten(hungry(3), &[quiet(0, 0), quiet(0, 0)]), 7);
    }

    #[test]
    fn who_has_its_share_takes_none_that_another_wants() {
        let (slow, fast) = (hungry(10), hungry(0));
        assert_eq!((of_ten(slow, &[fast]), of_ten(fast, &[slow])), (0, 5));
        assert_eq!(
            (of_ten(hungry(5), &[hungry(4)]), of_ten(hungry(4), &[hungry(5)])),
            (0, 1)
        );
    }

    #[test]
    fn a_run_of_short_calls_finds_a_slot_although_another_would_take_all() {
        assert_eq!(of_ten(hungry(7), &[quiet(0, 2)]), 1, "two of ten are kept");
        assert_eq!(of_ten(hungry(8), &[quiet(0, 2)]), 0);
        assert_eq!(
            of_ten(hungry(5), &[quiet(0, 9), quiet(0, 9)]),
            3,
            "but never more than a quarter"
        );
    }

    #[test]
    fn a_heavier_run_has_a_larger_share() {
        let heavy = |used| Holding {
            weight: 40,
            ..hungry(used)
        };
        assert_eq!(
            (of_ten(heavy(0), &[hungry(0)]), of_ten(hungry(0), &[heavy(0)])),
            (8, 2)
        );
        assert_eq!(of_ten(hungry(2), &[heavy(7)]), 0, "one of the eight is free");
    }

    #[test]
    fn what_no_share_covers_is_taken_in_turn() {
        let after = |served, own| Holding { served, ..own };
        let third = |served| allowed(7, after(served, hungry(2)), [hungry(2), hungry(2)].into_iter());
        assert_eq!((third(0), third(1)), (1, 0));
        let all = |served| allowed(7, after(served, hungry(0)), [hungry(2), hungry(2)].into_iter());
        assert_eq!((all(0), all(1)), (3, 2), "its share it has in any case");
        let fewer = |served| allowed(1, after(served, hungry(0)), [hungry(0), hungry(0)].into_iter());
        assert_eq!(
            (fewer(0), fewer(1)),
            (1, 0),
            "also where there are fewer than runs"
        );
    }
}
