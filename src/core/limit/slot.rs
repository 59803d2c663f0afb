//! Run that draws from a local bucket: its use, its reservations and its demand.

use std::time::Duration;

use super::demand::rounded;
use super::fair::Holding;
use super::local_bucket::{Reserved, Used};
use super::{NANOS_PER_ITEM, WEIGHT_USUAL};
use crate::ids::Moment;

/// Grace beyond the announced time for a run that wants more: timers are late, threads busy.
const LATENESS: Duration = Duration::from_millis(20);
/// Demand below this counts as none. Unit: as [`Part::rate`](super::Part::rate).
const RATE_WISH_MIN: u64 = NANOS_PER_ITEM / 20;
/// Items given to a run of weight 1 count so much.
const WEIGHT_SCALE: u64 = 100_000;

#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) own_rate: u64,
    pub(super) batch: u32,
    pub(super) weight: u32,
    /// Items in flight, without those reserved.
    pub(super) in_flight: u64,
    pub(super) reserved: u64,
    /// Items given to it since it began, for its weight ([`Slot::weighed`]); raised for a run that was idle so that it
    /// can't save up.
    pub(super) served: u64,
    pub(super) hungry_until: Moment,
    pub(super) waits_for_slots: bool,
    seen: Observed,
    quiet: (u64, u64),
}

/// Activity of a run since its demand was last collected.
#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    left: u64,
    peak: u64,
    /// Number of times it wanted more than it got, for lack of items or of slots.
    cut: u32,
    cut_by_slots: u32,
    /// Number of times it got all that it wanted.
    content: u32,
}

impl Slot {
    /// Creates the state of a run that begins now.
    pub(super) fn new(own_rate: Option<u64>, batch: u32) -> Slot {
        Slot {
            own_rate: own_rate.unwrap_or(u64::MAX),
            batch: batch.max(1),
            weight: WEIGHT_USUAL,
            in_flight: 0,
            reserved: 0,
            served: 0,
            hungry_until: Moment(0),
            waits_for_slots: false,
            // A new run most likely wants something: the allocation needn't wait until it was refused.
            seen: Observed {
                cut: 1,
                ..Observed::default()
            },
            quiet: (0, 0),
        }
    }

    /// Scales a number of items by the weight, so that runs are compared.
    pub(super) fn weighed(&self, items: u64) -> u64 {
        items.saturating_mul(WEIGHT_SCALE) / u64::from(self.weight)
    }

    /// Returns the items of a weighed number.
    pub(super) fn items_of(&self, weighed: u64) -> u64 {
        let items = u128::from(weighed) * u128::from(self.weight) / u128::from(WEIGHT_SCALE);
        u64::try_from(items).unwrap_or(u64::MAX)
    }

    pub(super) fn used(&self) -> u64 {
        self.in_flight + self.reserved
    }

    pub(super) fn holding(&self, now: Moment) -> Holding {
        Holding {
            used: self.used(),
            is_hungry: self.hungry_until > now && self.waits_for_slots,
            recent: self.quiet.1,
            batch: u64::from(self.batch),
            weight: u64::from(self.weight),
            served: self.served,
        }
    }

    pub(super) fn see(&mut self, reserved: Reserved, used: Used, now: Moment) {
        self.seen.left += u64::from(used.left);
        self.seen.peak = self.seen.peak.max(self.in_flight);
        if used.wants_more {
            self.seen.cut += 1;
            self.seen.cut_by_slots += u32::from(reserved.by_slots);
            self.waits_for_slots = reserved.by_slots;
            self.hungry_until = reserved.ask_at.unwrap_or(now).max(now).plus(LATENESS);
        } else {
            self.seen.content += 1;
            self.hungry_until = Moment(0);
        }
    }

    /// Returns the demand: everything that it may have by itself if it was cut short, otherwise a little more than it
    /// used. The weight of earlier use halves each time.
    pub(super) fn wish(&mut self, span: Duration, now: Moment) -> (u64, u64) {
        let mut seen = std::mem::take(&mut self.seen);
        if self.hungry_until > now && seen.cut == 0 {
            // It is waiting for the announced time, which may be far away.
            seen.cut = 1;
            seen.cut_by_slots = u32::from(self.waits_for_slots);
        }
        self.seen.peak = self.in_flight;
        let nanos = span.as_nanos().max(1);
        let used = u128::from(seen.left) * u128::from(NANOS_PER_ITEM) * 1_000_000_000 / nanos;
        let used = u64::try_from(used).unwrap_or(u64::MAX);
        let room = |wish: u64| wish.saturating_add(wish / 4);
        self.quiet.0 = room(used).max(self.quiet.0 / 2).min(self.own_rate);
        self.quiet.1 = seen
            .peak
            .saturating_add(seen.peak.div_ceil(4))
            .max(self.quiet.1 / 2);
        let by_items = seen.cut - seen.cut_by_slots;
        let quiet = if self.quiet.0 < RATE_WISH_MIN {
            0
        } else {
            self.quiet.0
        };
        let rate = if by_items > seen.content {
            self.own_rate
        } else {
            quiet
        };
        let slots = if seen.cut_by_slots > seen.content {
            u64::MAX
        } else {
            self.quiet.1
        };
        // A run that waits for a slot isn't idle, whatever it sent.
        (
            rounded(rate.max(u64::from(seen.cut > seen.content))),
            rounded(slots),
        )
    }
}
