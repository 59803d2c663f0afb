//! Local bucket: a node's share of a limit, and the runs that draw from it.
//!
//! A run reserves before it asks its core for work, and settles afterwards: what its core didn't use goes back. If
//! runs want more than there is, the one served least goes first, and none is ahead of another that wants something
//! by more than a few milliseconds' worth. The demand of the runs is measured here, for the allocation.

use std::collections::BTreeMap;
use std::time::Duration;

use super::bucket::Bucket;
use super::demand::{Demand, SLOT_PARTS, Wishes};
use super::fair;
use super::slot::Slot;
use super::units::bucket::Units;
use super::{Amount, Part, WEIGHT_MAX};
use crate::ids::Moment;

/// Maximum lead of a run over others, as a span of the rate.
const AHEAD: Duration = Duration::from_millis(5);
/// Maximum lag that a run may catch up, as a span of the rate.
const BEHIND_MAX: Duration = Duration::from_secs(1);
/// Time until the next attempt if it isn't known when something will be available: a change wakes the run anyway.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// Least time until the next attempt.
const ASK_LEAST: Duration = Duration::from_millis(1);

/// Number of a run in the local bucket.
pub type SlotNo = u64;

/// Reservation that a run gets before it asks its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Number of items that may be sent.
    pub items: u32,
    /// Time to ask again for more; `None` if the run has all that it wanted.
    pub ask_at: Option<Moment>,
    /// True if slots are scarcer than items of the rate.
    pub by_slots: bool,
}

/// Use that a run made of its reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Number of items that were dispatched.
    pub left: u32,
    /// True if more would have been dispatched.
    pub wants_more: bool,
    /// Number of items of the run in flight now.
    pub in_flight: u64,
}

impl Used {
    /// Reports no dispatch, with `in_flight` items in flight.
    pub fn only(in_flight: u64) -> Used {
        Used {
            in_flight,
            ..Used::default()
        }
    }
}

/// Local bucket of a node for one limit.
#[derive(Clone, Debug)]
pub struct LocalBucket {
    part: Part,
    bucket: Bucket,
    runs: BTreeMap<SlotNo, Slot>,
    next: SlotNo,
    sent: u64,
    collected_at: Moment,
    /// Limits in units; none for most limits.
    pub units: Units,
}

impl LocalBucket {
    /// Creates a local bucket with this share and no runs. Items that would be dispatched later than `stale` after
    /// their reservation come back instead.
    pub fn new(part: Part, stale: Duration, now: Moment) -> LocalBucket {
        let bucket = Bucket::new(stale, now);
        let mut local_bucket = LocalBucket {
            part: Part::NONE,
            bucket,
            runs: BTreeMap::new(),
            next: 0,
            sent: 0,
            collected_at: now,
            units: Units::default(),
        };
        local_bucket.apply(part, now);
        local_bucket
    }

    /// Adds a run with an optional rate of its own (in the unit of [`Part::rate`]).
    pub fn join(&mut self, own_rate: Option<u64>, batch: u32, now: Moment) -> SlotNo {
        self.next += 1;
        self.runs.insert(self.next, Slot::new(own_rate, batch));
        self.apply(self.part, now);
        self.next
    }

    /// Applies changed settings of a run.
    pub fn tune(&mut self, no: SlotNo, own_rate: Option<u64>, batch: u32, now: Moment) {
        if let Some(run) = self.runs.get_mut(&no) {
            (run.own_rate, run.batch) = (own_rate.unwrap_or(u64::MAX), batch.max(1));
        }
        self.apply(self.part, now);
    }

    /// Sets the weight of a run among others, from 1 to 100.
    pub fn weigh(&mut self, no: SlotNo, weight: u32) {
        if let Some(run) = self.runs.get_mut(&no) {
            run.weight = weight.clamp(1, WEIGHT_MAX);
        }
    }

    /// Removes a run that is over and has nothing in flight.
    pub fn leave(&mut self, no: SlotNo) {
        self.runs.remove(&no);
        self.units.leave_run(no);
    }

    /// Returns true if no run draws from it.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Sets the share that may be used from `now` on.
    pub fn apply(&mut self, part: Part, now: Moment) {
        self.part = part;
        let rate = part.rate.bound().unwrap_or(0);
        let burst = part.burst.bound().unwrap_or(u64::MAX);
        self.bucket.set(rate, burst, self.batch(), now);
    }

    /// Returns the share in force.
    pub fn part(&self) -> Part {
        self.part
    }

    /// Returns the maximum use from now on: calls in flight beyond the share count until they have ended.
    pub fn uses(&self) -> Part {
        let slots = self.part.slots.bound().map(|slots| slots.max(self.in_flight()));
        Part {
            slots: Amount::at_most(slots),
            ..self.part
        }
    }

    /// Returns the number of items sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the size of the largest batch.
    pub fn batch(&self) -> u32 {
        self.runs.values().map(|run| run.batch).max().unwrap_or(1)
    }

    /// Drops what was earned, because lease validity was lost.
    pub fn void(&mut self, now: Moment) {
        self.bucket.void(now);
        self.units.void(now);
    }

    /// Takes up to `want` items for a run. Each reservation must be settled.
    pub fn reserve(&mut self, no: SlotNo, want: u32, now: Moment) -> Reserved {
        let Some(run) = self.runs.get(&no) else {
            return Reserved {
                items: 0,
                ask_at: None,
                by_slots: false,
            };
        };
        let batch = u64::from(run.batch);
        self.catch_up(no, now);
        let slots = self.slots_free().min(self.slots_allowed(no, now));
        let there = self.items_there(now).min(self.items_allowed(no, now));
        let leave = self.units.leave(no, now);
        let by_units = u64::from(leave.calls).saturating_mul(batch);
        let most = slots.min(there).min(by_units).min(u64::from(want));
        let full = batch.min(self.most_ever()).min(u64::from(want));
        let items = if most < full { 0 } else { most - most % full.max(1) };
        if let Some(run) = self.runs.get_mut(&no) {
            run.reserved += items;
            run.served += run.weighed(items);
        }
        if self.is_paced() {
            self.bucket.take(items);
        }
        let is_cut = items < u64::from(want);
        Reserved {
            items: u32::try_from(items).unwrap_or(want),
            ask_at: is_cut.then(|| match by_units < slots.min(there) {
                true => leave.until.unwrap_or(now).max(now.plus(ASK_LEAST)),
                false => self.ask_at(batch, now),
            }),
            by_slots: slots < there && slots <= by_units,
        }
    }

    /// Settles a reservation with its use. Returns a run to wake if another one may have something now.
    pub fn settle(&mut self, no: SlotNo, reserved: Reserved, used: Used, now: Moment) -> Option<SlotNo> {
        let before = self.in_flight();
        let run = self.runs.get_mut(&no)?;
        let back = u64::from(reserved.items.saturating_sub(used.left));
        run.reserved = run.reserved.saturating_sub(u64::from(reserved.items));
        run.served = run.served.saturating_sub(run.weighed(back));
        run.in_flight = used.in_flight;
        run.see(reserved, used, now);
        self.units.see(no, used.wants_more, reserved.ask_at, now);
        self.sent += u64::from(used.left);
        if self.is_paced() {
            self.bucket.give(back);
        }
        let is_freed = self.in_flight() < before && self.part.slots.bound().is_some();
        is_freed.then(|| self.next_hungry(no, now)).flatten()
    }

    /// Returns the demand of the runs since the last call.
    pub fn collect(&mut self, now: Moment) -> Demand {
        let span = now.since(self.collected_at);
        self.collected_at = now;
        let wish = |run: &mut Slot| (run.wish(span, now), run.weight);
        let wishes: Vec<((u64, u64), u32)> = self.runs.values_mut().map(wish).collect();
        let wanting = wishes.iter().filter(|(wish, _)| *wish != (0, 0));
        Demand {
            rates: Wishes::weighted(wishes.iter().map(|(wish, weight)| (wish.0, *weight))),
            slots: Wishes::weighted(
                wishes
                    .iter()
                    .map(|(wish, weight)| (wish.1.saturating_mul(SLOT_PARTS), *weight)),
            ),
            batch: self.batch(),
            runs: u32::try_from(wanting.count()).unwrap_or(u32::MAX),
        }
    }

    /// Returns the number of items of all runs in flight or about to be.
    pub fn in_flight(&self) -> u64 {
        self.runs.values().map(Slot::used).sum()
    }

    /// Returns true if dispatched items are counted against a rate.
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

    /// Returns the maximum number of items that could ever be available at once.
    fn most_ever(&self) -> u64 {
        let slots = self.part.slots.bound().unwrap_or(u64::MAX);
        let items = if self.is_paced() {
            self.bucket.items_max()
        } else {
            u64::MAX
        };
        items.min(slots).max(1)
    }

    /// Returns the number of slots that a run may take without keeping slots from others, in whole batches.
    fn slots_allowed(&self, no: SlotNo, now: Moment) -> u64 {
        let (Some(slots), Some(run)) = (self.part.slots.bound(), self.runs.get(&no)) else {
            return u64::MAX;
        };
        let others = self.others(no).map(|run| run.holding(now));
        match fair::allowed(slots, run.holding(now), others) {
            0 => 0,
            allowed => allowed.max(u64::from(run.batch)),
        }
    }

    /// Returns the number of items that a run may take without getting ahead of one that wants items too and doesn't
    /// wait for slots.
    fn items_allowed(&self, no: SlotNo, now: Moment) -> u64 {
        let rivals = self.rivals(no, now).filter(|run| !run.waits_for_slots);
        let least = rivals.map(|run| run.served).min().filter(|_| self.is_paced());
        let (Some(least), Some(run)) = (least, self.runs.get(&no)) else {
            return u64::MAX;
        };
        let (ahead, batch) = (self.bucket.items_in(AHEAD), u64::from(run.batch));
        let most = least.saturating_add(run.weighed(ahead.max(batch)));
        match most.saturating_sub(run.served) {
            0 => 0,
            allowed => run.items_of(allowed).max(batch),
        }
    }

    /// Keeps an idle run from saving up, and one that fell far behind from catching up all of it.
    fn catch_up(&mut self, no: SlotNo, now: Moment) {
        let served = self.rivals(no, now).map(|run| run.served);
        let span = served.fold(None, |span: Option<(u64, u64)>, served| {
            let (least, most) = span.unwrap_or((served, served));
            Some((least.min(served), most.max(served)))
        });
        let behind_max = self.bucket.items_in(BEHIND_MAX).max(u64::from(self.batch()) * 4);
        if let (Some((least, most)), Some(run)) = (span, self.runs.get_mut(&no)) {
            let floor = if run.hungry_until > now {
                most.saturating_sub(run.weighed(behind_max))
            } else {
                least
            };
            run.served = run.served.max(floor);
        }
    }

    fn others(&self, no: SlotNo) -> impl Iterator<Item = &Slot> + Clone {
        self.runs
            .iter()
            .filter(move |(other, _)| **other != no)
            .map(|(_, run)| run)
    }

    /// Iterates over the other runs that want something.
    fn rivals(&self, no: SlotNo, now: Moment) -> impl Iterator<Item = &Slot> {
        self.others(no).filter(move |run| run.hungry_until > now)
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
            .map_or(again, |next| next.max(now.plus(ASK_LEAST)))
    }

    /// Returns the other run that wants something and holds the least.
    fn next_hungry(&self, no: SlotNo, now: Moment) -> Option<SlotNo> {
        let hungry = self
            .runs
            .iter()
            .filter(|(other, run)| **other != no && run.hungry_until > now);
        hungry
            .min_by_key(|(_, run)| (run.weighed(run.used()), run.served))
            .map(|(other, _)| *other)
    }
}
