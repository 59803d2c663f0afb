//! Troubled items: unsettled ones that failed at least once, or that were evicted from the window.
//!
//! The only place that knows an item by itself; everything else speaks in runs. An item is here exactly as long as
//! it is unsettled and troubled, so a cursor over the window must never grant one that is here. Ordered maps only:
//! the order of iteration is part of the core's determinism.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::ids::{ItemIndex, Moment, WallMs};
use super::run::IndexRun;
use super::verdict::{AttemptNote, Failure, NOTES_MAX};

/// Whether an item still holds low water.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Its bit is clear: it holds low water.
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
}

/// A troubled item.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// Finished attempts.
    pub attempts: u32,
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
    /// Remembers a failed attempt, and forgets the oldest when there are too many.
    pub fn note(&mut self, note: AttemptNote) {
        if self.history.len() >= NOTES_MAX {
            self.history.remove(0);
        }
        self.history.push(note);
    }
}

/// All troubled items of a shard.
#[derive(Clone, Debug, Default)]
pub struct Troubles {
    items: BTreeMap<ItemIndex, Trouble>,
    due_window: BinaryHeap<Reverse<(Moment, ItemIndex)>>,
    due_outside: BinaryHeap<Reverse<(Moment, ItemIndex)>>,
    outside: u64,
    outside_in_flight: u64,
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

    /// One item.
    pub fn get(&self, index: ItemIndex) -> Option<&Trouble> {
        self.items.get(&index)
    }

    /// The lowest troubled index.
    pub fn lowest(&self) -> Option<ItemIndex> {
        self.items.keys().next().copied()
    }

    /// The first item in `[from, to)`.
    pub fn next_in(&self, from: ItemIndex, to: ItemIndex) -> Option<(ItemIndex, &Trouble)> {
        let found = if from < to { self.items.range(from..to).next() } else { None };
        found.map(|(index, trouble)| (*index, trouble))
    }

    /// The lowest troubled index inside a run.
    #[inline]
    pub fn lowest_in(&self, run: IndexRun) -> Option<ItemIndex> {
        if self.items.is_empty() {
            return None;
        }
        self.items.range(run.first()..run.end()).next().map(|(index, _)| *index)
    }

    /// Puts an item in, or replaces it, and queues it when it waits.
    pub fn put(&mut self, index: ItemIndex, trouble: Trouble) {
        self.uncount(index);
        if let Doing::Waiting(due) = trouble.doing {
            self.heap(trouble.place).push(Reverse((due, index)));
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
        self.heap(place).pop();
        let trouble = self.items.get_mut(&index)?;
        trouble.doing = Doing::InFlight;
        self.outside_in_flight += u64::from(place == Place::Outside);
        Some((index, trouble.attempts))
    }

    /// When the next waiting item of a place is due.
    pub fn next_due(&mut self, place: Place) -> Option<Moment> {
        self.peek(place).map(|(due, _)| due)
    }

    /// The lanes are gone: what was in flight waits and is due now.
    pub fn lose_flights(&mut self, now: Moment) {
        let lost: Vec<ItemIndex> =
            self.items.iter().filter(|(_, t)| t.doing == Doing::InFlight).map(|(index, _)| *index).collect();
        for index in lost {
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
        if let Some(old) = self.items.get(&index).filter(|old| old.place == Place::Outside) {
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
