//! What is known of the items of an open task: one that they are added to while it runs, until it is sealed.

use crate::ids::{ItemCount, ItemIndex, TaskId};
use crate::task::lifecycle::Refusal;

/// Items that may be added at once.
pub const APPEND_ITEMS_MAX: u64 = 10_000;
/// The rows of items that may be added at once. Unit: bytes of JSON text. (One row of the database; a statement of MariaDB
/// takes 16 MiB by default.)
pub const APPEND_BYTES_MAX: u64 = 1024 * 1024;
/// Items of a task that may wait: a producer that nobody keeps up with is turned away before it fills the disk.
pub const BACKLOG_ITEMS_MAX: u64 = 1_000_000;
/// The rows of items of a task that may wait. Unit: bytes.
pub const BACKLOG_BYTES_MAX: u64 = 256 * 1024 * 1024;

crate::slugs! {
    /// Whether items are added to a task that was made open.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Intake {
        /// They are.
        Open = "open",
        /// No more are: it finishes once all are settled.
        Sealed = "sealed",
    }
}

/// How far the items go of a task that was made open, and whether these are all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// One past the last index.
    pub end: ItemIndex,
    /// Whether no more are added.
    pub is_sealed: bool,
}

/// What is added to a task, and what it holds already that isn't settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addition {
    /// Items that are added.
    pub items: u64,
    /// Their rows. Unit: bytes.
    pub bytes: u64,
    /// The rows of items that wait. Unit: bytes.
    pub bytes_waiting: u64,
}

/// Items can't be added to a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendRefusal {
    /// Its items were fixed when it was made.
    #[error("{0} takes no items: it was not made open")]
    NotOpen(TaskId),
    /// It was sealed, or finished early.
    #[error("{0} is sealed: it takes no more items")]
    Sealed(TaskId),
    /// Not in this state.
    #[error(transparent)]
    Status(#[from] Refusal),
    /// None, or too many at once.
    #[error(
        "{items} items of {bytes} bytes; at most {APPEND_ITEMS_MAX} items and {APPEND_BYTES_MAX} bytes are added at once"
    )]
    Size {
        /// Items.
        items: u64,
        /// Bytes.
        bytes: u64,
    },
    /// Too many wait. Nothing was added: try again when some are settled.
    #[error(
        "{items} items of {bytes} bytes would wait in {task}; at most {BACKLOG_ITEMS_MAX} items and {BACKLOG_BYTES_MAX} bytes do"
    )]
    Full {
        /// The task.
        task: TaskId,
        /// Items that would wait.
        items: u64,
        /// Bytes that would.
        bytes: u64,
    },
}

impl Addition {
    /// Whether it may be added to a task of which so many items wait.
    ///
    /// # Errors
    /// `Size` or `Full`.
    pub fn check(&self, task: TaskId, waiting: ItemCount) -> Result<(), AppendRefusal> {
        let Addition {
            items,
            bytes,
            bytes_waiting,
        } = *self;
        if items == 0 || items > APPEND_ITEMS_MAX || bytes > APPEND_BYTES_MAX {
            return Err(AppendRefusal::Size { items, bytes });
        }
        let (items, bytes) = (
            waiting.0.saturating_add(items),
            bytes_waiting.saturating_add(bytes),
        );
        match items > BACKLOG_ITEMS_MAX || bytes > BACKLOG_BYTES_MAX {
            true => Err(AppendRefusal::Full { task, items, bytes }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(items: u64, bytes: u64, waiting: u64, bytes_waiting: u64) -> Result<(), AppendRefusal> {
        let addition = Addition {
            items,
            bytes,
            bytes_waiting,
        };
        addition.check(TaskId(1), ItemCount(waiting))
    }

    #[test]
    fn an_addition_is_neither_empty_nor_too_large_and_finds_room() {
        assert_eq!(check(APPEND_ITEMS_MAX, APPEND_BYTES_MAX, 0, 0), Ok(()));
        for (items, bytes) in [(0, 0), (APPEND_ITEMS_MAX + 1, 1), (1, APPEND_BYTES_MAX + 1)] {
            assert_eq!(
                check(items, bytes, 0, 0),
                Err(AppendRefusal::Size { items, bytes })
            );
        }
        assert_eq!(check(1, 1, BACKLOG_ITEMS_MAX - 1, BACKLOG_BYTES_MAX - 1), Ok(()));
        assert!(matches!(
            check(1, 1, BACKLOG_ITEMS_MAX, 0),
            Err(AppendRefusal::Full { .. })
        ));
        assert!(matches!(
            check(1, 1, 0, BACKLOG_BYTES_MAX),
            Err(AppendRefusal::Full { .. })
        ));
    }
}
