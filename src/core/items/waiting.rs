//! Retrying items: unsettled ones that failed at least once, or that were evicted from the window.
//!
//! The only place that knows an item by itself; everything else speaks in runs. An item is here exactly as long as
//! it is unsettled and retrying, so a cursor over the window must never grant one that is here. Ordered maps only:
//! the order of iteration is part of the core's determinism.

mod suspicion;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

pub use self::suspicion::{Others, Suspicion, Turns};
use crate::ids::{ItemIndex, Moment, WallMs};
use crate::items::run::IndexRun;
use crate::items::verdict::{AttemptNote, Failure, FailureClass, NOTES_MAX};

/// Whether an item still holds watermark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Its bit is clear: it holds watermark.
    #[default]
    Window,
    /// Its bit is set: it is parked, durably once a checkpoint says so.
    Outside,
}

/// What the item does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Waits until it is due.
    Waiting(Moment),
    /// Is with the handler.
    InFlight,
    /// Used all its attempts without a verdict, the last one then: waits until another item shows that the handler
    /// answers.
    Held(Moment),
}

/// A retrying item.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    /// Finished attempts.
    pub attempts: u32,
    /// Those that count against it; see [`crate::items::verdict::ItemTrouble::charged`].
    pub charged: u32,
    /// Attempts in a row that don't count: what its next wait is made of.
    pub uncharged: u32,
    /// Most items of its next call, after one that failed as a whole; 0 without a bound.
    pub call_max: u32,
    /// Class of its last attempt of this run, where no others shared the call.
    pub last: Option<FailureClass>,
    /// Evidence against it.
    pub suspicion: Suspicion,
    /// Where.
    pub place: Place,
    /// What.
    pub doing: Doing,
    /// Why the last attempt failed.
    pub failure: Option<Failure>,
    /// The latest failed attempts, oldest first, at most [`NOTES_MAX`].
    pub history: Vec<AttemptNote>,
    /// When the last attempt failed.
    pub at: WallMs,
    /// When it is due, for the store.
    pub due_at: WallMs,
    /// Whether a row of it was ever given to a checkpoint.
    pub has_row: bool,
}

impl Trouble {
    /// Trouble of an item that hasn't failed yet.
    pub fn fresh(at: WallMs) -> Trouble {
        Trouble {
            at,
            due_at: at,
            ..Trouble::default()
        }
    }

    /// Whether it has not failed so far, but was turned away.
    pub fn is_only_turned_away(&self) -> bool {
        self.attempts == 0 && self.suspicion.turns.all > 0
    }

    /// Whether an earlier run saw it fail.
    pub fn is_restored(&self) -> bool {
        self.suspicion.first.is_none() && self.attempts > 0
    }

    /// Its refusals that didn't count so far do.
    pub fn charge_refusals(&mut self) {
        self.charged = self
            .charged
            .saturating_add(std::mem::take(&mut self.suspicion.refused));
    }

    /// Remembers a failed attempt, and forgets the oldest when there are too many.
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

/// All retrying items of a shard.
#[derive(Clone, Debug, Default)]
pub struct Troubles {
    items: BTreeMap<ItemIndex, Trouble>,
    due_window: BinaryHeap<Reverse<(Moment, ItemIndex)>>,
    due_outside: BinaryHeap<Reverse<(Moment, ItemIndex)>>,
    held: BTreeSet<(Moment, ItemIndex)>,
    outside: u64,
    outside_in_flight: u64,
    in_flight: u64,
}

impl Troubles {
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Items outside the window, in flight or not.
    pub fn outside(&self) -> u64 {
        self.outside
    }

    /// Items outside the window that wait.
    pub fn outside_waiting(&self) -> u64 {
        self.outside - self.outside_in_flight
    }

    /// Items that are with the handler.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// One item.
    pub fn get(&self, index: ItemIndex) -> Option<&Trouble> {
        self.items.get(&index)
    }

    /// The lowest retrying index.
    pub fn lowest(&self) -> Option<ItemIndex> {
        self.items.keys().next().copied()
    }

    /// The first item in `[from, to)`.
    pub fn next_in(&self, from: ItemIndex, to: ItemIndex) -> Option<(ItemIndex, &Trouble)> {
        let found = if from < to {
            self.items.range(from..to).next()
        } else {
            None
        };
        found.map(|(index, trouble)| (*index, trouble))
    }

    /// The lowest retrying index inside a run.
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

    /// Puts an item in, or replaces it, and queues it when it waits.
    pub fn put(&mut self, index: ItemIndex, trouble: Trouble) {
        self.uncount(index);
        match trouble.doing {
            Doing::Waiting(due) => self.heap(trouble.place).push(Reverse((due, index))),
            Doing::Held(since) => drop(self.held.insert((since, index))),
            Doing::InFlight => self.in_flight += 1,
        }
        if trouble.place == Place::Outside {
            self.outside += 1;
            self.outside_in_flight += u64::from(trouble.doing == Doing::InFlight);
        }
        self.items.insert(index, trouble);
    }

    /// Takes an item out: it is settled.
    pub fn take(&mut self, index: ItemIndex) -> Option<Trouble> {
        self.uncount(index);
        self.items.remove(&index)
    }

    /// The next waiting item of a place that is due at `now`; it is in flight from here on.
    pub fn pop_due(&mut self, place: Place, now: Moment) -> Option<(ItemIndex, u32)> {
        let (due, index) = self.peek(place)?;
        if due > now {
            return None;
        }
        self.pop(place, index)
    }

    /// The waiting item of a place that is due first, if it is due at `now`.
    pub fn first_due(&mut self, place: Place, now: Moment) -> Option<&Trouble> {
        let (due, index) = self.peek(place)?;
        self.items.get(&index).filter(|_| due <= now)
    }

    /// The next waiting item of a place, due or not; it is in flight from here on.
    pub fn pop_earliest(&mut self, place: Place) -> Option<(ItemIndex, u32)> {
        let (_, index) = self.peek(place)?;
        self.pop(place, index)
    }

    /// The item that has been held for longest.
    pub fn held_first(&self) -> Option<(Moment, ItemIndex)> {
        self.held.first().copied()
    }

    /// Every held item, those that have been for longest first.
    pub fn held(&self) -> impl Iterator<Item = ItemIndex> {
        self.held.iter().map(|(_, index)| *index)
    }

    fn pop(&mut self, place: Place, index: ItemIndex) -> Option<(ItemIndex, u32)> {
        self.heap(place).pop();
        let trouble = self.items.get_mut(&index)?;
        trouble.doing = Doing::InFlight;
        self.in_flight += 1;
        self.outside_in_flight += u64::from(place == Place::Outside);
        Some((index, trouble.attempts))
    }

    /// When the next waiting item of a place is due.
    pub fn next_due(&mut self, place: Place) -> Option<Moment> {
        self.peek(place).map(|(due, _)| due)
    }

    /// When the next waiting item is due, by what was asked of each place last: earlier where it no longer waits by now.
    pub fn soonest(&self) -> Option<Moment> {
        let tops = [self.due_window.peek(), self.due_outside.peek()];
        tops.into_iter().flatten().map(|Reverse((due, _))| *due).min()
    }

    /// The lanes are gone: what was in flight waits and is due now.
    pub fn lose_flights(&mut self, now: Moment) {
        for index in self.which(|t| t.doing == Doing::InFlight) {
            if let Some(mut trouble) = self.take(index) {
                trouble.doing = Doing::Waiting(now);
                self.put(index, trouble);
            }
        }
    }

    /// Every item, by index.
    pub fn iter(&self) -> impl Iterator<Item = (ItemIndex, &Trouble)> {
        self.items.iter().map(|(index, trouble)| (*index, trouble))
    }

    /// The items that are so.
    pub fn which(&self, is_so: impl Fn(&Trouble) -> bool) -> Vec<ItemIndex> {
        let found = self.iter().filter(|(_, trouble)| is_so(trouble));
        found.map(|(index, _)| index).collect()
    }

    /// Marks that a checkpoint was given a row of this item.
    pub fn mark_row(&mut self, index: ItemIndex) {
        if let Some(trouble) = self.items.get_mut(&index) {
            trouble.has_row = true;
        }
    }

    /// The top of a heap, once entries that no longer say the truth are dropped.
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
