//! Items that are added to open tasks: stored in blocks as they were sent, and read again by index.

use async_trait::async_trait;
use windrow_words::engine as say;

use crate::ports::StoreError;
use crate::ports::access::actor::Write;
use windrow_core::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use windrow_core::task::supply::AppendRefusal;

/// Items that are added together: all of them or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewBlock {
    /// One JSON value per line, each with its line end and no other.
    rows: String,
    items: u64,
    /// Key of the block: a block sent again with the same key is not added again.
    pub key: Option<String>,
}

impl NewBlock {
    /// Returns an empty block of a key.
    pub fn new(key: Option<String>) -> NewBlock {
        NewBlock {
            key,
            ..NewBlock::default()
        }
    }

    /// Adds an item: JSON text, whose line breaks can only stand between its tokens.
    pub fn push(&mut self, row: &str) {
        let is_break = |c| matches!(c, '\n' | '\r');
        match row.contains(is_break) {
            true => self.rows.push_str(&row.replace(is_break, " ")),
            false => self.rows.push_str(row),
        }
        self.rows.push('\n');
        self.items += 1;
    }

    /// Returns the rows, one per line.
    pub fn rows(&self) -> &str {
        &self.rows
    }

    /// Returns the number of items.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Returns the length of the rows in bytes.
    pub fn bytes(&self) -> u64 {
        self.rows.len() as u64
    }
}

/// Position of a block's items in the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Index of the first item.
    pub first: ItemIndex,
    /// Number of items in the block.
    pub items: u64,
    /// True if they were added by an earlier request with the same key.
    pub is_repeat: bool,
    /// Number of items that the task has.
    pub total: ItemCount,
}

/// Error of adding a block. Nothing was added, unless the outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// No task has this id.
    #[error("{}", say::no_task(.0.to_string()))]
    NotFound(TaskId),
    /// The task takes no items, or not these.
    #[error(transparent)]
    Refused(#[from] AppendRefusal),
    /// Other items were added with this key.
    #[error("{}", say::other_items(.0.to_string()))]
    KeyReused(TaskId),
    /// The store failed, and the outcome is unknown: send the block again with its key.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Block of items as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlock {
    /// Index of its first item.
    pub first: ItemIndex,
    /// Rows of the block, one per line.
    pub rows: String,
}

/// Store that adds items to tasks and reads them.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait AppendStore: Send + Sync {
    /// Adds a block behind a task's last item, in one transaction with the task's new end. A repeat of the same block
    /// with the same key gets the first answer.
    ///
    /// # Errors
    /// See [`AppendError`]; `Unavailable` with an unknown outcome.
    async fn append_items(
        &self,
        task: TaskId,
        block: &NewBlock,
        write: &Write,
        now: WallMs,
    ) -> Result<Appended, AppendError>;

    /// Returns the block that holds an item, and some of those behind it without a gap, together about `bytes_max`
    /// long but at least the first; empty if the block is not stored (any more).
    async fn blocks(
        &self,
        task: TaskId,
        at: ItemIndex,
        bytes_max: usize,
    ) -> Result<Vec<StoredBlock>, StoreError>;

    /// Returns the size in bytes of a task's blocks in which not every item is settled, as far as is saved.
    async fn bytes_waiting(&self, task: TaskId) -> Result<u64, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line_whatever_was_sent() {
        let mut block = NewBlock::new(None);
        block.push("{\"a\":\r\n 1}");
        block.push("2");
        assert_eq!(block.rows(), "{\"a\":   1}\n2\n");
        assert_eq!((block.items(), block.bytes()), (2, 13));
    }
}
