//! A run that draws from a pot: what it has, what it was given, and what it wants.

use std::time::Duration;

use super::NANOS_PER_ITEM;
use super::demand::rounded;
use super::fair::Holding;
use super::pot::{Reserved, Used};
use crate::ids::Moment;

/// A run that wants more is waited for so long beyond the time that it was told: timers are late, threads busy.
const LATENESS: Duration = Duration::from_millis(20);
/// A wish below this is none. Unit: as [`Part::rate`](super::Part::rate).
const RATE_WISH_MIN: u64 = NANOS_PER_ITEM / 20;

#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) own_rate: u64,
    pub(super) batch: u32,
    /// Items in flight, those that are reserved not counted.
    pub(super) in_flight: u64,
    pub(super) reserved: u64,
    /// Items that it was given since it began, or as if: who was idle doesn't save up.
    pub(super) served: u64,
    pub(super) hungry_until: Moment,
    pub(super) waits_for_slots: bool,
    seen: Observed,
    quiet: (u64, u64),
}

/// What a run did since its wish was last asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    left: u64,
    peak: u64,
    /// It wanted more than it got, for want of items or of slots.
    cut: u32,
    cut_by_slots: u32,
    /// It got all that it wanted.
    content: u32,
}

impl Slot {
    /// A run that begins now.
    pub(super) fn new(own_rate: Option<u64>, batch: u32) -> Slot {
        Slot {
            own_rate: own_rate.unwrap_or(u64::MAX),
            batch: batch.max(1),
            in_flight: 0,
            reserved: 0,
            served: 0,
            hungry_until: Moment(0),
            waits_for_slots: false,
            // It wants something, most likely: the deal needn't wait until it was refused.
            seen: Observed {
                cut: 1,
                ..Observed::default()
            },
            quiet: (0, 0),
        }
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

    /// What it wants: all that it may have by itself where it was cut short, else a little more than it used; what it
    /// used before counts half as much each time.
    pub(super) fn wish(&mut self, span: Duration, now: Moment) -> (u64, u64) {
        let mut seen = std::mem::take(&mut self.seen);
        if self.hungry_until > now && seen.cut == 0 {
            // It waits for the time that it was told, which may be long.
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
        // Who waits for a slot is no idler, whatever it sent.
        (
            rounded(rate.max(u64::from(seen.cut > seen.content))),
            rounded(slots),
        )
    }
}
