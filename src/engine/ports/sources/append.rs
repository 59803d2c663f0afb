//! Items that are added to open tasks: kept in blocks, as they were sent, and read again by index.

use async_trait::async_trait;
use windrow_words::engine as say;

use crate::ports::StoreError;
use crate::ports::access::actor::Write;
use windrow_core::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use windrow_core::task::supply::AppendRefusal;

/// Items that are added together: all of them or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewBlock {
    /// One JSON value a line, each with its line end and no other.
    rows: String,
    items: u64,
    /// Two blocks of one key are one: what is sent again is not added again.
    pub key: Option<String>,
}

impl NewBlock {
    /// An empty block of a key.
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

    /// The rows, one a line.
    pub fn rows(&self) -> &str {
        &self.rows
    }

    /// How many items.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// How long the rows are. Unit: bytes.
    pub fn bytes(&self) -> u64 {
        self.rows.len() as u64
    }
}

/// Where the items of a block are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The index of the first.
    pub first: ItemIndex,
    /// How many.
    pub items: u64,
    /// Whether they were added by an earlier request of the same key.
    pub is_repeat: bool,
    /// How many items the task has.
    pub total: ItemCount,
}

/// A block was not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// There is no such task.
    #[error("{}", say::no_task(.0.to_string()))]
    NotFound(TaskId),
    /// It takes none, or not these.
    #[error(transparent)]
    Refused(#[from] AppendRefusal),
    /// Other items were added with this key.
    #[error("{}", say::other_items(.0.to_string()))]
    KeyReused(TaskId),
    /// The store failed; whether the block was added isn't known: send it again with its key.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A block as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlock {
    /// The index of its first item.
    pub first: ItemIndex,
    /// Its rows, one a line.
    pub rows: String,
}

/// Adds items to tasks, and reads them.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait AppendStore: Send + Sync {
    /// Adds a block behind a task's last item, in one transaction with the task's new end. A repeat of the same block under
    /// the same key is answered as the first one was.
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

    /// The block that holds an item, and some of those behind it without a gap, together about `bytes_max` long but at least
    /// the first; none where it is not kept (any more).
    async fn blocks(
        &self,
        task: TaskId,
        at: ItemIndex,
        bytes_max: usize,
    ) -> Result<Vec<StoredBlock>, StoreError>;

    /// The rows of a task's blocks of which not every item is settled, as far as is saved. Unit: bytes.
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
