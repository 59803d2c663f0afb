//! Records of single items that checkpoints keep.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Failure;
use crate::ids::{ItemIndex, WallMs};

/// Failed attempts that an item's timeline keeps: the latest ones.
pub const NOTES_MAX: usize = 8;

/// Change of one item in a checkpoint, beside the bitmap. The last record of an item wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideRecord {
    /// Unsettled, failed at least once, waits in the window: its attempts survive a restart.
    Retrying(ItemTrouble),
    /// Waits outside the window until a time.
    Parked {
        /// Attempts so far and why the last failed.
        trouble: ItemTrouble,
        /// When it is due again.
        due_at: WallMs,
    },
    /// Failed for good.
    Failed(ItemTrouble),
    /// Settled well after trouble: its row goes away.
    Cleared(ItemIndex),
}

impl SideRecord {
    /// The item that the record is about.
    pub fn index(&self) -> ItemIndex {
        match self {
            SideRecord::Retrying(trouble) | SideRecord::Failed(trouble) => trouble.index,
            SideRecord::Parked { trouble, .. } => trouble.index,
            SideRecord::Cleared(index) => *index,
        }
    }
}

/// A failed attempt as an item's timeline keeps it. The field names are those of the stored JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptNote {
    /// Which attempt, 1-based.
    pub attempt: u32,
    /// When its failure was heard of. Unit: milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Time that the call took. Unit: milliseconds.
    pub duration_ms: u64,
    /// The failure's code.
    pub code: Cow<'static, str>,
    /// The run that made it.
    pub run: u32,
}

/// An item that failed at least once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemTrouble {
    /// The item.
    pub index: ItemIndex,
    /// Attempts made (an evicted item may have 0 finished ones).
    pub attempts: u32,
    /// Those that count against the item: those that an outage explains don't.
    pub charged: u32,
    /// Given up, and nothing showed whether the handler fails for it alone.
    pub is_unconfirmed: bool,
    /// Calls for others that were answered since its first failure in the run that gave it up, at least; 0 before that.
    pub others_answered: u64,
    /// Why the last one failed; none for an item that was parked while its first call was still out.
    pub failure: Option<Failure>,
    /// When the last attempt failed.
    pub at: WallMs,
    /// The latest failed attempts, oldest first, at most [`NOTES_MAX`].
    pub history: Vec<AttemptNote>,
}

/// A parked item that is due, read back from the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedItem {
    /// The item.
    pub index: ItemIndex,
    /// Attempts made so far.
    pub attempts: u32,
    /// See [`ItemTrouble::charged`].
    pub charged: u32,
    /// Why the last one failed.
    pub failure: Option<Failure>,
    /// When it failed.
    pub at: WallMs,
    /// When it is due.
    pub due_at: WallMs,
    /// See [`ItemTrouble::history`].
    pub history: Vec<AttemptNote>,
}
