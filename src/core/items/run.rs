//! Run of consecutive indexes: the unit in which the core, the lanes and the window work, instead of single items.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::ids::ItemIndex;

/// `len` consecutive indexes from `first` on; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IndexRun {
    first: ItemIndex,
    len: NonZeroU32,
}

impl IndexRun {
    /// Creates the run `[first, first + len)`, or returns `None` when `len` is 0.
    #[inline]
    pub fn new(first: ItemIndex, len: u32) -> Option<IndexRun> {
        NonZeroU32::new(len).map(|len| IndexRun { first, len })
    }

    /// Creates the run of a single index.
    #[inline]
    pub fn one(index: ItemIndex) -> IndexRun {
        IndexRun {
            first: index,
            len: NonZeroU32::MIN,
        }
    }

    /// Returns the lowest index of the run.
    #[inline]
    pub fn first(self) -> ItemIndex {
        self.first
    }

    /// Returns one past the highest index.
    #[inline]
    pub fn end(self) -> ItemIndex {
        ItemIndex(self.first.0 + u64::from(self.len.get()))
    }

    /// Returns the number of indexes, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a run is never empty")]
    #[inline]
    pub fn len(self) -> u32 {
        self.len.get()
    }

    /// Returns true if `index` is in the run.
    #[inline]
    pub fn contains(self, index: ItemIndex) -> bool {
        index >= self.first && index < self.end()
    }

    /// Iterates over the indexes in ascending order.
    pub fn iter(self) -> impl Iterator<Item = ItemIndex> {
        (self.first.0..self.end().0).map(ItemIndex)
    }

    /// Appends `next` and returns true if it begins where this run ends and the sum of the lengths still fits.
    #[inline]
    pub fn try_extend(&mut self, next: IndexRun) -> bool {
        let joined = self.len.checked_add(next.len.get());
        match joined {
            Some(len) if self.end() == next.first => {
                self.len = len;
                true
            }
            _ => false,
        }
    }

    /// Splits off the first `len` indexes; the second value is the rest, if any.
    #[inline]
    pub fn split(self, len: NonZeroU32) -> (IndexRun, Option<IndexRun>) {
        if len >= self.len {
            return (self, None);
        }
        let rest = IndexRun::new(self.first.plus(u64::from(len.get())), self.len.get() - len.get());
        (
            IndexRun {
                first: self.first,
                len,
            },
            rest,
        )
    }
}
