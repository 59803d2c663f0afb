//! Snapshot of the window for people: the state of each index, or of each bucket of them. It is copied in
//! microseconds; slower work is done on the copy.

use crate::execution::items::Items;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::execution::Execution;
use crate::ids::{ItemIndex, Moment};
use crate::items::run::IndexRun;
use crate::items::waiting::{Doing, Place, RetryingItem};

/// State of an index. A bucket shows the last one of this list that any of its indexes has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Cell {
    /// The item is settled.
    Settled,
    /// Not dispatched, or came back unsent.
    Free,
    /// In flight with the handler.
    InFlight,
    /// Failed or took too long, and waits outside the window for another attempt.
    Parked,
    /// Failed and waits for another attempt; the watermark waits for it.
    Retry,
    /// Failed without another attempt.
    Failed,
}

/// Item at the watermark, which everything behind it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Index of the item.
    pub index: ItemIndex,
    /// Attempt in flight, or the last one; 0 if none was made.
    pub attempt: u32,
    /// Time for which it has held the watermark.
    pub age: Duration,
    /// State of the item.
    pub cell: Cell,
}

/// Copy of a window at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowPicture {
    /// Lowest index that is neither settled nor parked.
    pub watermark: ItemIndex,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// Width of the window in items; 0 for a saved one.
    pub size: u32,
    /// One past the last index shown: everything that may be or was dispatched.
    pub until: ItemIndex,
    /// Number of indexes per cell, at least 1.
    pub per_cell: u64,
    /// Item that holds the watermark; `None` if nothing above it was dispatched.
    pub head: Option<Head>,
    cursor: ItemIndex,
    /// Bit `j` is index `watermark + 1 + j`.
    above: Vec<u64>,
    /// Items below the cursor that are not with the handler.
    again: Vec<IndexRun>,
    /// Retrying items, as many as needed to know the worst of each cell.
    marks: Vec<(ItemIndex, Cell)>,
}

impl Execution {
    /// Returns a snapshot of the window in at most `cells_max` cells. The work is bounded: it copies the bitmap, and
    /// looks up the retrying items a cell at a time.
    pub fn window_picture(&self, cells_max: NonZeroU32, now: Moment) -> WindowPicture {
        let low = self.items.window.watermark();
        let until = self.items.window.limit().min(self.items.end).max(self.items.high);
        let per_cell = per_cell(low, until, cells_max);
        let mut above = Vec::new();
        self.items.window.copy_above(self.items.high, &mut above);
        WindowPicture {
            watermark: low,
            high_water: self.items.high,
            size: self.items.window.size(),
            until,
            per_cell,
            head: (low < self.items.high).then(|| self.items.head(self.head_age(now))),
            cursor: self.items.cursor,
            above,
            again: self.items.again.iter().copied().collect(),
            marks: self.items.marks(low, until, per_cell),
        }
    }
}

impl Items {
    fn head(&self, age: Duration) -> Head {
        let index = self.window.watermark();
        let retrying = self.retrying_items.get(index);
        let is_free = index >= self.cursor || self.again.iter().any(|run| run.contains(index));
        let cell = match retrying {
            Some(retrying) => cell_of(retrying),
            None if is_free => Cell::Free,
            None => Cell::InFlight,
        };
        let made = retrying.map_or(0, |retrying| retrying.attempts);
        Head {
            index,
            attempt: made + u32::from(cell == Cell::InFlight),
            age,
            cell,
        }
    }

    pub(in crate::execution) fn marks(
        &self,
        low: ItemIndex,
        until: ItemIndex,
        per_cell: u64,
    ) -> Vec<(ItemIndex, Cell)> {
        let (mut marks, mut from) = (Vec::new(), low);
        while let Some((index, retrying)) = self.retrying_items.next_in(from, until) {
            let cell = cell_of(retrying);
            marks.push((index, cell));
            // Nothing known here is worse than a wait: the rest of its cell adds nothing.
            let past = (index.0 - low.0) / per_cell + 1;
            from = if cell == Cell::Retry {
                low.plus(past.saturating_mul(per_cell))
            } else {
                index.plus(1)
            };
        }
        marks
    }
}

fn per_cell(low: ItemIndex, until: ItemIndex, cells_max: NonZeroU32) -> u64 {
    until
        .0
        .saturating_sub(low.0)
        .div_ceil(u64::from(cells_max.get()))
        .max(1)
}

fn cell_of(retrying: &RetryingItem) -> Cell {
    match (retrying.doing, retrying.place) {
        (Doing::InFlight, _) => Cell::InFlight,
        (Doing::Waiting(_) | Doing::Held(_), Place::Window) => Cell::Retry,
        (Doing::Waiting(_) | Doing::Held(_), Place::Outside) => Cell::Parked,
    }
}

impl WindowPicture {
    /// Creates the snapshot of a saved window: nothing in it is with the handler. Bit `j` of `above` is index
    /// `watermark + 1 + j`.
    pub fn saved(
        watermark: ItemIndex,
        high_water: ItemIndex,
        above: Vec<u64>,
        cells_max: NonZeroU32,
    ) -> WindowPicture {
        WindowPicture {
            watermark,
            high_water,
            size: 0,
            until: high_water,
            per_cell: per_cell(watermark, high_water, cells_max),
            head: None,
            cursor: watermark,
            above,
            again: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Returns the cells from the watermark on. The core doesn't know which items failed, so the caller passes them.
    pub fn cells(&self, failed: &[ItemIndex]) -> Vec<Cell> {
        let mut each: Vec<Cell> = (self.watermark.0..self.until.0)
            .map(|index| self.cell(index))
            .collect();
        let mut mark = |index: ItemIndex, cell: Cell| {
            let at = index
                .0
                .checked_sub(self.watermark.0)
                .and_then(|at| usize::try_from(at).ok());
            if let Some(slot) = at.and_then(|at| each.get_mut(at)) {
                *slot = cell;
            }
        };
        self.again
            .iter()
            .flat_map(|run| run.iter())
            .for_each(|index| mark(index, Cell::Free));
        failed
            .iter()
            .filter(|index| self.is_settled(index.0))
            .for_each(|index| mark(*index, Cell::Failed));
        self.marks.iter().for_each(|(index, cell)| mark(*index, *cell));
        let per_cell = usize::try_from(self.per_cell).unwrap_or(usize::MAX);
        each.chunks(per_cell)
            .filter_map(|cells| cells.iter().copied().max())
            .collect()
    }

    fn cell(&self, index: u64) -> Cell {
        if self.is_settled(index) {
            Cell::Settled
        } else if index < self.cursor.0 {
            Cell::InFlight
        } else {
            Cell::Free
        }
    }

    fn is_settled(&self, index: u64) -> bool {
        let Some(bit) = index.checked_sub(self.watermark.0 + 1) else {
            return false;
        };
        let word = usize::try_from(bit / 64).ok().and_then(|at| self.above.get(at));
        word.is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }
}
