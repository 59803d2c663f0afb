//! Retrying items: unsettled ones that failed at least once, or that were evicted from the window.
//!
//! Only this module tracks single items; everything else works in runs. An item is here exactly as long as it is
//! unsettled and retrying, so a cursor over the window must never grant one that is here. Uses ordered maps only,
//! because the order of iteration is part of the core's determinism.

mod suspicion;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

pub use self::suspicion::{Others, Suspicion, Turns};
use crate::ids::{ItemIndex, Moment, WallMs};
use crate::items::run::IndexRun;
use crate::items::verdict::{AttemptNote, Failure, FailureClass, NOTES_MAX};

/// Position of a retrying item relative to the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// The item's bit is clear: it holds the watermark.
    #[default]
    Window,
    /// The item's bit is set: it is parked, durably once a checkpoint has recorded it.
    Outside,
}

/// Current activity of a retrying item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Waiting until this time.
    Waiting(Moment),
    /// Sent to the handler, not answered yet.
    InFlight,
    /// All attempts are used without a verdict, the last one at this time. The item waits until another one shows
    /// that the handler answers.
    Held(Moment),
}

/// State of one retrying item.
#[derive(Clone, Debug, Default)]
pub struct RetryingItem {
    /// Number of finished attempts.
    pub attempts: u32,
    /// Attempts that count against the item; see [`crate::items::verdict::FailingItem::charged`].
    pub charged: u32,
    /// Consecutive attempts that don't count, from which the next wait is computed.
    pub uncharged: u32,
    /// Maximum size of its next call, set after a call failed as a whole; 0 for no bound.
    pub call_max: u32,
    /// Class of its last attempt of this run, if no other items shared the call.
    pub last: Option<FailureClass>,
    /// Evidence against the item, written by the judge.
    pub suspicion: Suspicion,
    /// Inside or outside the window.
    pub place: Place,
    /// Waiting, in flight or held.
    pub doing: Doing,
    /// Failure of the last attempt, if one failed.
    pub failure: Option<Failure>,
    /// The latest failed attempts, oldest first, at most [`NOTES_MAX`].
    pub history: Vec<AttemptNote>,
    /// Time at which the last attempt failed.
    pub at: WallMs,
    /// Time at which the item is due, for the store.
    pub due_at: WallMs,
    /// Set once a checkpoint was given a row of this item.
    pub has_row: bool,
}

impl RetryingItem {
    /// Creates the state of an item that hasn't failed yet.
    pub fn fresh(at: WallMs) -> RetryingItem {
        RetryingItem {
            at,
            due_at: at,
            ..RetryingItem::default()
        }
    }

    /// Returns true if the item was turned away but has not failed so far.
    pub fn is_only_turned_away(&self) -> bool {
        self.attempts == 0 && self.suspicion.turns.all > 0
    }

    /// Returns true if the item already failed in an earlier run.
    pub fn is_restored(&self) -> bool {
        self.suspicion.first.is_none() && self.attempts > 0
    }

    /// Charges the refusals that didn't count so far.
    pub fn charge_refusals(&mut self) {
        self.charged = self
            .charged
            .saturating_add(std::mem::take(&mut self.suspicion.refused));
    }

    /// Adds a failed attempt to the history, dropping the oldest when it is full.
    pub fn note(&mut self, note: AttemptNote) {
        if self.history.len() >= NOTES_MAX {
            self.history.remove(0);
        }
        self.history.push(note);
    }
}

impl Default for Doing {
    fn default() -> Doing {
        Doing::Waiting(Moment(0))
    }
}

/// Set of all retrying items of a shard.
#[derive(Clone, Debug, Default)]
pub struct RetryingItems {
    items: BTreeMap<ItemIndex, RetryingItem>,
    due_window: BinaryHeap<Reverse<(Moment, ItemIndex)>>,
    due_outside: BinaryHeap<Reverse<(Moment, ItemIndex)>>,
    held: BTreeSet<(Moment, ItemIndex)>,
    outside: u64,
    outside_in_flight: u64,
    in_flight: u64,
}

impl RetryingItems {
    /// Returns true if no item is retrying.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the number of retrying items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the number of items outside the window, in flight or not.
    pub fn outside(&self) -> u64 {
        self.outside
    }

    /// Returns the number of waiting items outside the window.
    pub fn outside_waiting(&self) -> u64 {
        self.outside - self.outside_in_flight
    }

    /// Returns the number of retrying items that are in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns the state of one item, if it is retrying.
    pub fn get(&self, index: ItemIndex) -> Option<&RetryingItem> {
        self.items.get(&index)
    }

    /// Returns the lowest retrying index.
    pub fn lowest(&self) -> Option<ItemIndex> {
        self.items.keys().next().copied()
    }

    /// Returns the first retrying item in `[from, to)`.
    pub fn next_in(&self, from: ItemIndex, to: ItemIndex) -> Option<(ItemIndex, &RetryingItem)> {
        let found = if from < to {
            self.items.range(from..to).next()
        } else {
            None
        };
        found.map(|(index, retrying)| (*index, retrying))
    }

    /// Returns the lowest retrying index inside a run.
    #[inline]
    pub fn lowest_in(&self, run: IndexRun) -> Option<ItemIndex> {
        if self.items.is_empty() {
            return None;
        }
        self.items
            .range(run.first()..run.end())
            .next()
            .map(|(index, _)| *index)
    }

    /// Inserts or replaces an item, and queues it if it waits.
    pub fn put(&mut self, index: ItemIndex, retrying: RetryingItem) {
        self.uncount(index);
        match retrying.doing {
            Doing::Waiting(due) => self.heap(retrying.place).push(Reverse((due, index))),
            Doing::Held(since) => drop(self.held.insert((since, index))),
            Doing::InFlight => self.in_flight += 1,
        }
        if retrying.place == Place::Outside {
            self.outside += 1;
            self.outside_in_flight += u64::from(retrying.doing == Doing::InFlight);
        }
        self.items.insert(index, retrying);
    }

    /// Removes an item because it is settled.
    pub fn take(&mut self, index: ItemIndex) -> Option<RetryingItem> {
        self.uncount(index);
        self.items.remove(&index)
    }

    /// Pops the next waiting item of `place` that is due at `now`, and marks it as in flight.
    pub fn pop_due(&mut self, place: Place, now: Moment) -> Option<(ItemIndex, u32)> {
        let (due, index) = self.peek(place)?;
        if due > now {
            return None;
        }
        self.pop(place, index)
    }

    /// Returns the earliest waiting item of `place`, if it is due at `now`.
    pub fn first_due(&mut self, place: Place, now: Moment) -> Option<&RetryingItem> {
        let (due, index) = self.peek(place)?;
        self.items.get(&index).filter(|_| due <= now)
    }

    /// Pops the next waiting item of `place`, due or not, and marks it as in flight.
    pub fn pop_earliest(&mut self, place: Place) -> Option<(ItemIndex, u32)> {
        let (_, index) = self.peek(place)?;
        self.pop(place, index)
    }

    /// Returns the item that has been held longest.
    pub fn held_first(&self) -> Option<(Moment, ItemIndex)> {
        self.held.first().copied()
    }

    /// Iterates over all held items, the longest held first.
    pub fn held(&self) -> impl Iterator<Item = ItemIndex> {
        self.held.iter().map(|(_, index)| *index)
    }

    fn pop(&mut self, place: Place, index: ItemIndex) -> Option<(ItemIndex, u32)> {
        self.heap(place).pop();
        let retrying = self.items.get_mut(&index)?;
        retrying.doing = Doing::InFlight;
        self.in_flight += 1;
        self.outside_in_flight += u64::from(place == Place::Outside);
        Some((index, retrying.attempts))
    }

    /// Returns when the next waiting item of `place` is due.
    pub fn next_due(&mut self, place: Place) -> Option<Moment> {
        self.peek(place).map(|(due, _)| due)
    }

    /// Returns when the next waiting item is due, without dropping stale entries: too early if that item no longer
    /// waits.
    pub fn soonest(&self) -> Option<Moment> {
        let tops = [self.due_window.peek(), self.due_outside.peek()];
        tops.into_iter().flatten().map(|Reverse((due, _))| *due).min()
    }

    /// Makes all in-flight items wait, due now, because the lanes are gone.
    pub fn lose_flights(&mut self, now: Moment) {
        for index in self.which(|t| t.doing == Doing::InFlight) {
            if let Some(mut retrying) = self.take(index) {
                retrying.doing = Doing::Waiting(now);
                self.put(index, retrying);
            }
        }
    }

    /// Iterates over all retrying items by index.
    pub fn iter(&self) -> impl Iterator<Item = (ItemIndex, &RetryingItem)> {
        self.items.iter().map(|(index, retrying)| (*index, retrying))
    }

    /// Returns the items for which `is_so` is true.
    pub fn which(&self, is_so: impl Fn(&RetryingItem) -> bool) -> Vec<ItemIndex> {
        let found = self.iter().filter(|(_, retrying)| is_so(retrying));
        found.map(|(index, _)| index).collect()
    }

    /// Records that a checkpoint was given a row of this item.
    pub fn mark_row(&mut self, index: ItemIndex) {
        if let Some(retrying) = self.items.get_mut(&index) {
            retrying.has_row = true;
        }
    }

    /// Returns the top of a heap after dropping stale entries.
    fn peek(&mut self, place: Place) -> Option<(Moment, ItemIndex)> {
        loop {
            let Reverse((due, index)) = *self.heap(place).peek()?;
            let current = self.items.get(&index);
            if current.is_some_and(|t| t.place == place && t.doing == Doing::Waiting(due)) {
                return Some((due, index));
            }
            self.heap(place).pop();
        }
    }

    fn uncount(&mut self, index: ItemIndex) {
        let Some(old) = self.items.get(&index) else { return };
        if let Doing::Held(since) = old.doing {
            self.held.remove(&(since, index));
        }
        self.in_flight -= u64::from(old.doing == Doing::InFlight);
        if old.place == Place::Outside {
            self.outside -= 1;
            self.outside_in_flight -= u64::from(old.doing == Doing::InFlight);
        }
    }

    fn heap(&mut self, place: Place) -> &mut BinaryHeap<Reverse<(Moment, ItemIndex)>> {
        match place {
            Place::Window => &mut self.due_window,
            Place::Outside => &mut self.due_outside,
        }
    }
}
