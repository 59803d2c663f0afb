//! A node's part of a limit, and the runs that draw from it.
//!
//! A run reserves before it asks its core for work, and settles afterwards: what its core didn't use goes back. Runs
//! that want more than there is take turns: who was served least goes first, and nobody is ahead of another one who
//! wants something by more than a few milliseconds' worth. What the runs want is measured here, for the deal.

use std::collections::BTreeMap;
use std::time::Duration;

use super::bucket::Bucket;
use super::demand::{Demand, Wishes, rounded};
use super::{Amount, NANOS_PER_ITEM, Part};
use crate::ids::Moment;

/// What a run may be ahead of others.
const AHEAD: Duration = Duration::from_millis(5);
/// A run that wants more is waited for so long beyond the time that it was told: timers are late, threads busy.
const LATENESS: Duration = Duration::from_millis(20);
/// What a run that fell behind may make good.
const BEHIND_MAX: Duration = Duration::from_secs(1);
/// When to ask again where nothing says when something will be there: a change wakes the run anyway.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// A wish below this is none. Unit: as [`Part::rate`].
const RATE_WISH_MIN: u64 = NANOS_PER_ITEM / 20;

/// Which run.
pub type SlotNo = u64;

/// What a run was given before it asked its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// So many items may leave.
    pub items: u32,
    /// When to ask again for more; none where it has all that it wanted.
    pub ask_at: Option<Moment>,
    /// Slots are what there is least of.
    pub by_slots: bool,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// So many left.
    pub left: u32,
    /// More would have left.
    pub wants_more: bool,
    /// So many items of the run are in flight now.
    pub in_flight: u64,
}

impl Used {
    /// Nothing left, and so many items are in flight.
    pub fn only(in_flight: u64) -> Used {
        Used {
            in_flight,
            ..Used::default()
        }
    }
}

#[derive(Clone, Debug)]
struct Slot {
    own_rate: u64,
    batch: u32,
    /// Items in flight, those that are reserved not counted.
    in_flight: u64,
    reserved: u64,
    /// Items that it was given since it began, or as if: who was idle doesn't save up.
    served: u64,
    hungry_until: Moment,
    waits_for_slots: bool,
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

/// See the module.
#[derive(Clone, Debug)]
pub struct Pot {
    part: Part,
    bucket: Bucket,
    runs: BTreeMap<SlotNo, Slot>,
    next: SlotNo,
    sent: u64,
    collected_at: Moment,
}

impl Pot {
    /// A pot with this in it and nobody to draw from it. What departs later than `stale` after it was reserved comes
    /// back instead.
    pub fn new(part: Part, stale: Duration, now: Moment) -> Pot {
        let bucket = Bucket::new(stale, now);
        let mut pot = Pot {
            part: Part::NONE,
            bucket,
            runs: BTreeMap::new(),
            next: 0,
            sent: 0,
            collected_at: now,
        };
        pot.apply(part, now);
        pot
    }

    /// A run begins, at this rate of its own at most (in the unit of [`Part::rate`]).
    pub fn join(&mut self, own_rate: Option<u64>, batch: u32, now: Moment) -> SlotNo {
        self.next += 1;
        let run = Slot {
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
        };
        self.runs.insert(self.next, run);
        self.apply(self.part, now);
        self.next
    }

    /// Its settings changed.
    pub fn tune(&mut self, no: SlotNo, own_rate: Option<u64>, batch: u32, now: Moment) {
        if let Some(run) = self.runs.get_mut(&no) {
            (run.own_rate, run.batch) = (own_rate.unwrap_or(u64::MAX), batch.max(1));
        }
        self.apply(self.part, now);
    }

    /// A run is over, and nothing of it is in flight.
    pub fn leave(&mut self, no: SlotNo) {
        self.runs.remove(&no);
    }

    /// Whether nobody draws from it.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The part that may be used from `now` on.
    pub fn apply(&mut self, part: Part, now: Moment) {
        self.part = part;
        let rate = part.rate.bound().unwrap_or(0);
        let burst = part.burst.bound().unwrap_or(u64::MAX);
        self.bucket.set(rate, burst, self.batch(), now);
    }

    /// The part in force.
    pub fn part(&self) -> Part {
        self.part
    }

    /// What is used at most from now on: calls in flight beyond the part count until they have ended.
    pub fn uses(&self) -> Part {
        let slots = self.part.slots.bound().map(|slots| slots.max(self.in_flight()));
        Part {
            slots: Amount::at_most(slots),
            ..self.part
        }
    }

    /// How many items were sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The largest batch.
    pub fn batch(&self) -> u32 {
        self.runs.values().map(|run| run.batch).max().unwrap_or(1)
    }

    /// Trust was lost: what was earned is void.
    pub fn void(&mut self, now: Moment) {
        self.bucket.void(now);
    }

    /// Takes up to `want` items for a run. What isn't used must be settled.
    pub fn reserve(&mut self, no: SlotNo, want: u32, now: Moment) -> Reserved {
        let Some(run) = self.runs.get(&no) else {
            return Reserved {
                items: 0,
                ask_at: None,
                by_slots: false,
            };
        };
        let batch = u64::from(run.batch);
        let (slots, there) = (self.slots_free(), self.items_there(now));
        let most = slots.min(there).min(self.allowed(no, now)).min(u64::from(want));
        let full = batch.min(self.most_ever()).min(u64::from(want));
        let items = if most < full { 0 } else { most - most % full.max(1) };
        if let Some(run) = self.runs.get_mut(&no) {
            run.reserved += items;
            run.served += items;
        }
        if self.is_paced() {
            self.bucket.take(items);
        }
        let is_cut = items < u64::from(want);
        Reserved {
            items: u32::try_from(items).unwrap_or(want),
            ask_at: is_cut.then(|| self.ask_at(batch, now)),
            by_slots: slots < there,
        }
    }

    /// A run says what became of what it reserved. Another run may have something now: it is to be woken.
    pub fn settle(&mut self, no: SlotNo, reserved: Reserved, used: Used, now: Moment) -> Option<SlotNo> {
        let before = self.in_flight();
        let run = self.runs.get_mut(&no)?;
        let back = u64::from(reserved.items.saturating_sub(used.left));
        run.reserved = run.reserved.saturating_sub(u64::from(reserved.items));
        run.served = run.served.saturating_sub(back);
        run.in_flight = used.in_flight;
        run.see(reserved, used, now);
        self.sent += u64::from(used.left);
        if self.is_paced() {
            self.bucket.give(back);
        }
        let is_freed = self.in_flight() < before && self.part.slots.bound().is_some();
        is_freed.then(|| self.next_hungry(no, now)).flatten()
    }

    /// What the runs want, as it was since this was last asked.
    pub fn collect(&mut self, now: Moment) -> Demand {
        let span = now.since(self.collected_at);
        self.collected_at = now;
        let wishes: Vec<(u64, u64)> = self.runs.values_mut().map(|run| run.wish(span, now)).collect();
        Demand {
            rates: Wishes::of(wishes.iter().map(|wish| wish.0)),
            slots: Wishes::of(wishes.iter().map(|wish| wish.1)),
            batch: self.batch(),
        }
    }

    /// How many items of all runs are in flight or about to be.
    pub fn in_flight(&self) -> u64 {
        self.runs.values().map(|run| run.in_flight + run.reserved).sum()
    }

    /// Whether items are counted as they leave.
    fn is_paced(&self) -> bool {
        self.part.rate.bound().is_some()
    }

    fn slots_free(&self) -> u64 {
        let slots = self.part.slots.bound();
        slots.map_or(u64::MAX, |slots| slots.saturating_sub(self.in_flight()))
    }

    fn items_there(&mut self, now: Moment) -> u64 {
        if self.is_paced() {
            self.bucket.items(now)
        } else {
            u64::MAX
        }
    }

    /// The most that could ever be there at once.
    fn most_ever(&self) -> u64 {
        let slots = self.part.slots.bound().unwrap_or(u64::MAX);
        let items = if self.is_paced() {
            self.bucket.items_max()
        } else {
            u64::MAX
        };
        items.min(slots).max(1)
    }

    /// What a run may take without getting ahead of one that wants something too.
    fn allowed(&mut self, no: SlotNo, now: Moment) -> u64 {
        let rivals = self
            .runs
            .iter()
            .filter(|(other, run)| **other != no && run.hungry_until > now);
        let served = rivals.map(|(_, run)| run.served);
        let (least, most) = served.fold((None, 0), |(least, most), served| {
            (
                Some(least.map_or(served, |least: u64| least.min(served))),
                served.max(most),
            )
        });
        let Some(least) = least else { return u64::MAX };
        let behind_max = self.bucket.items_in(BEHIND_MAX).max(u64::from(self.batch()) * 4);
        let ahead = self.bucket.items_in(AHEAD);
        let Some(run) = self.runs.get_mut(&no) else {
            return 0;
        };
        let floor = if run.hungry_until > now {
            most.saturating_sub(behind_max)
        } else {
            least
        };
        run.served = run.served.max(floor);
        let allowed = (least + ahead.max(u64::from(run.batch))).saturating_sub(run.served);
        if allowed == 0 {
            0
        } else {
            allowed.max(u64::from(run.batch))
        }
    }

    fn ask_at(&self, batch: u64, now: Moment) -> Moment {
        let slots_free = self.slots_free() > 0;
        let next = if self.is_paced() {
            self.bucket.next_at(batch.min(self.most_ever()))
        } else {
            None
        };
        let again = now.plus(ASK_AGAIN);
        next.filter(|_| slots_free)
            .map_or(again, |next| next.max(now.plus(Duration::from_millis(1))))
    }

    /// Of the others that want something, the one that was served least.
    fn next_hungry(&self, no: SlotNo, now: Moment) -> Option<SlotNo> {
        let hungry = self
            .runs
            .iter()
            .filter(|(other, run)| **other != no && run.hungry_until > now);
        hungry.min_by_key(|(_, run)| run.served).map(|(other, _)| *other)
    }
}

impl Slot {
    fn see(&mut self, reserved: Reserved, used: Used, now: Moment) {
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
    fn wish(&mut self, span: Duration, now: Moment) -> (u64, u64) {
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
