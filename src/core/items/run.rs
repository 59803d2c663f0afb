//! A run of neighbouring indexes: what the core, the lanes and the window speak in, instead of single items.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::ids::ItemIndex;

/// `len` neighbouring indexes from `first` on; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IndexRun {
    first: ItemIndex,
    len: NonZeroU32,
}

impl IndexRun {
    /// The run `[first, first + len)`, or none when `len` is 0.
    #[inline]
    pub fn new(first: ItemIndex, len: u32) -> Option<IndexRun> {
        NonZeroU32::new(len).map(|len| IndexRun { first, len })
    }

    /// The run of one index.
    #[inline]
    pub fn one(index: ItemIndex) -> IndexRun {
        IndexRun {
            first: index,
            len: NonZeroU32::MIN,
        }
    }

    /// The lowest index.
    #[inline]
    pub fn first(self) -> ItemIndex {
        self.first
    }

    /// One past the highest index.
    #[inline]
    pub fn end(self) -> ItemIndex {
        ItemIndex(self.first.0 + u64::from(self.len.get()))
    }

    /// How many indexes, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a run is never empty")]
    #[inline]
    pub fn len(self) -> u32 {
        self.len.get()
    }

    /// Whether `index` lies in the run.
    #[inline]
    pub fn contains(self, index: ItemIndex) -> bool {
        index >= self.first && index < self.end()
    }

    /// Each index in order.
    pub fn iter(self) -> impl Iterator<Item = ItemIndex> {
        (self.first.0..self.end().0).map(ItemIndex)
    }

    /// Appends `next` when it begins where this run ends and the sum still fits; says whether it did.
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

    /// The first `len` indexes and the rest; `len` is at least 1.
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
