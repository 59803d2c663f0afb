//! Supply of an open task: items are appended while it runs, until it is sealed.

use crate::ids::{ItemCount, ItemIndex, TaskId};
use crate::task::lifecycle::Refusal;
use windrow_words::task as say;

/// Maximum number of items that may be appended at once.
pub const APPEND_ITEMS_MAX: u64 = 10_000;
/// Maximum size of the rows that may be appended at once. Unit: bytes of JSON text. (One row of the database; a
/// statement of MariaDB takes 16 MiB by default.)
pub const APPEND_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum number of waiting items in a task: a producer that is faster than the task is turned away before it fills
/// the disk.
pub const BACKLOG_ITEMS_MAX: u64 = 1_000_000;
/// Maximum size of the rows of waiting items in a task. Unit: bytes.
pub const BACKLOG_BYTES_MAX: u64 = 256 * 1024 * 1024;

crate::slugs! {
    /// State of the intake of a task that was made open.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Intake {
        /// Items may be appended.
        Open = "open",
        /// No more items are accepted: the task finishes once all are settled.
        Sealed = "sealed",
    }
}

/// End of the items of a task that was made open, and if these are all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// One past the last index.
    pub end: ItemIndex,
    /// True if no more items are accepted.
    pub is_sealed: bool,
}

/// Items to be appended to a task, and the size of those that already wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addition {
    /// Number of items to append.
    pub items: u64,
    /// Size of their rows. Unit: bytes.
    pub bytes: u64,
    /// Size of the rows of items that wait. Unit: bytes.
    pub bytes_waiting: u64,
}

/// Reason why items can't be appended to a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendRefusal {
    /// The items were fixed when the task was made.
    #[error("{}", say::not_open(.0.to_string()))]
    NotOpen(TaskId),
    /// The task was sealed, or finished early.
    #[error("{}", say::sealed(.0.to_string()))]
    Sealed(TaskId),
    /// Not possible in this status.
    #[error(transparent)]
    Status(#[from] Refusal),
    /// No items, or too many at once.
    #[error("{}", say::append_size(*items, *bytes, APPEND_ITEMS_MAX, APPEND_BYTES_MAX))]
    Size {
        /// Number of items in the request.
        items: u64,
        /// Size of their rows in bytes.
        bytes: u64,
    },
    /// Too many items would wait. Nothing was appended: try again when some are settled.
    #[error("{}", say::append_full(*items, *bytes, task.to_string(), BACKLOG_ITEMS_MAX, BACKLOG_BYTES_MAX))]
    Full {
        /// Id of the task.
        task: TaskId,
        /// Number of items that would wait.
        items: u64,
        /// Size of their rows in bytes.
        bytes: u64,
    },
}

impl Addition {
    /// Checks that the items may be appended to a task of which `waiting` items wait.
    ///
    /// # Errors
    /// Fails with `Size` or `Full`.
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
