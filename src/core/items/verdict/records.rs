//! Per-item records that checkpoints keep.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Failure;
use crate::ids::{ItemIndex, WallMs};

/// Maximum number of failed attempts in an item's timeline; the latest are kept.
pub const NOTES_MAX: usize = 8;

/// Change of one item in a checkpoint, in addition to the bitmap. The last record of an item wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideRecord {
    /// Unsettled, failed at least once, waiting in the window. The record lets its attempts survive a restart.
    Retrying(FailingItem),
    /// Waiting outside the window until a given time.
    Parked {
        /// Attempts so far and the last failure.
        retrying: FailingItem,
        /// Time at which the item is due again.
        due_at: WallMs,
    },
    /// Failed for good, with the last failure.
    Failed(FailingItem),
    /// Settled well after failing earlier: its row is deleted.
    Cleared(ItemIndex),
}

impl SideRecord {
    /// Returns the index of the item that the record is about.
    pub fn index(&self) -> ItemIndex {
        match self {
            SideRecord::Retrying(retrying) | SideRecord::Failed(retrying) => retrying.index,
            SideRecord::Parked { retrying, .. } => retrying.index,
            SideRecord::Cleared(index) => *index,
        }
    }
}

/// Failed attempt in an item's timeline. The field names are those of the stored JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptNote {
    /// Attempt number, starting at 1.
    pub attempt: u32,
    /// Time at which the failure was received. Unit: milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Duration of the call. Unit: milliseconds.
    pub duration_ms: u64,
    /// Failure code, in its stored form.
    pub code: Cow<'static, str>,
    /// Number of the run that made the attempt.
    pub run: u32,
}

/// Item that failed at least once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingItem {
    /// Index of the item.
    pub index: ItemIndex,
    /// Attempts made; an evicted item may have 0 finished ones.
    pub attempts: u32,
    /// Attempts that count against the item. Those explained by the handler being down don't.
    pub charged: u32,
    /// Set when the item failed for good and nothing showed if the handler fails for it alone.
    pub is_unconfirmed: bool,
    /// Lower bound of the calls for other items answered since this item's first failure, in the run that failed it;
    /// 0 before that.
    pub others_answered: u64,
    /// Failure of the last attempt, or `None` for an item that was parked while its first call was still out.
    pub failure: Option<Failure>,
    /// Time at which the last attempt failed.
    pub at: WallMs,
    /// The latest failed attempts, oldest first, at most [`NOTES_MAX`].
    pub history: Vec<AttemptNote>,
}

/// Parked item that is due, read back from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedItem {
    /// Index of the item.
    pub index: ItemIndex,
    /// Number of attempts made so far.
    pub attempts: u32,
    /// Attempts that count against the item; see [`FailingItem::charged`].
    pub charged: u32,
    /// Failure of the last attempt, if one failed.
    pub failure: Option<Failure>,
    /// Time at which the last attempt failed.
    pub at: WallMs,
    /// Time at which the item is due again.
    pub due_at: WallMs,
    /// Latest failed attempts; see [`FailingItem::history`].
    pub history: Vec<AttemptNote>,
}
