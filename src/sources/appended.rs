//! Items appended to an open task, read from their blocks.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use windrow_core::ids::{ItemCount, ItemIndex, TaskId};
use windrow_engine::ports::sources::append::{AppendStore, StoredBlock};
use windrow_engine::ports::sources::source::{RowChunk, Source, SourceError};

/// Size of a read, in bytes; small blocks are read together.
const READ_BYTES: usize = 256 * 1024;

/// Items appended to one open task.
pub struct AppendedSource {
    blocks: Arc<dyn AppendStore>,
    task: TaskId,
    total: ItemCount,
}

impl AppendedSource {
    /// Creates the source of a task with `total` items at this time. Later items can be read as well.
    pub fn new(blocks: Arc<dyn AppendStore>, task: TaskId, total: ItemCount) -> AppendedSource {
        AppendedSource { blocks, task, total }
    }

    async fn read_blocks(&self, at: ItemIndex) -> Result<Arc<RowChunk>, SourceError> {
        let read = self.blocks.blocks(self.task, at, READ_BYTES).await;
        let found = read.map_err(|error| SourceError::Unreadable(error.to_string()))?;
        let chunk = joined(&found).filter(|chunk| chunk.first() <= at && at < chunk.end());
        chunk.map(Arc::new).ok_or_else(|| {
            SourceError::Changed(format!(
                "item {} of {} is no longer kept: settled items are deleted after `retention.appended`",
                at.0, self.task
            ))
        })
    }
}

/// Joins neighbouring blocks in one buffer, without the line ends.
fn joined(blocks: &[StoredBlock]) -> Option<RowChunk> {
    let first = blocks.first()?.first;
    let (mut buffer, mut ends) = (Vec::new(), Vec::new());
    for row in blocks.iter().flat_map(|block| block.rows.lines()) {
        buffer.extend_from_slice(row.as_bytes());
        ends.push(u32::try_from(buffer.len()).ok()?);
    }
    Some(RowChunk::new(first, Bytes::from(buffer), ends))
}

impl Source for AppendedSource {
    fn total(&self) -> ItemCount {
        self.total
    }

    fn has_data(&self) -> bool {
        true
    }

    /// Cancel safe: a dropped read has no effect.
    fn read(&self, at: ItemIndex) -> BoxFuture<'_, Result<Arc<RowChunk>, SourceError>> {
        Box::pin(self.read_blocks(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_blocks_are_one_chunk_of_rows_without_line_ends() {
        let block = |first, rows: &str| StoredBlock {
            first: ItemIndex(first),
            rows: rows.to_owned(),
        };
        let chunk = joined(&[block(5, "1\n{\"a\":2}\n"), block(7, "3\n")]).expect("there are rows");
        assert_eq!((chunk.first(), chunk.end()), (ItemIndex(5), ItemIndex(8)));
        assert_eq!(chunk.row(ItemIndex(6)), Some("{\"a\":2}"));
        assert_eq!(chunk.row(ItemIndex(7)), Some("3"));
        assert!(joined(&[]).is_none());
    }
}
