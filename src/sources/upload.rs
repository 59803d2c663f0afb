//! Reads blocks of an upload out of its parts and compares them with the index, as `file` does with a file.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use xxhash_rust::xxh3::xxh3_64;

use super::block_index::{BlockIndex, Located};
use super::fault::IndexError;
use super::file::parse;
use super::open::index_of;
use super::open_error::OpenSourceError;
use super::spec::Format;
use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_engine::ports::sources::source::{RowChunk, Source, SourceError};
use windrow_engine::ports::sources::store::{IndexedSource, SourceStore};
use windrow_engine::ports::sources::uploads::{PART_BYTES, UploadId, UploadStore};

/// Where the index of an upload is kept in the store of sources.
pub(super) fn location(id: UploadId) -> String {
    format!("upload:{}", id.0)
}

/// The rows of an upload that is ready.
pub struct UploadSource {
    uploads: Arc<dyn UploadStore>,
    id: UploadId,
    indexed: Arc<IndexedSource>,
    format: Format,
    index: Arc<BlockIndex>,
}

impl UploadSource {
    /// Finds the index of an upload.
    ///
    /// # Errors
    /// `BadSpec` when there is no such upload, or it isn't ready.
    pub async fn open(
        uploads: Arc<dyn UploadStore>,
        sources: &dyn SourceStore,
        id: UploadId,
        format: &Format,
    ) -> Result<UploadSource, OpenSourceError> {
        let found = sources.find(&location(id), &format.to_text()).await?;
        let missing = || OpenSourceError::BadSpec(format!("there is no upload {id} that is ready"));
        let (source, indexed) = found.ok_or_else(missing)?;
        let index = index_of(source, &indexed, indexed.bytes, sources)
            .await?
            .map_err(|error| OpenSourceError::Index {
                name: id.to_string(),
                error: IndexError::Unreadable(std::io::Error::other(error)),
            })?;
        let (indexed, index, format) = (Arc::new(indexed), Arc::new(index), format.clone());
        Ok(UploadSource {
            uploads,
            id,
            indexed,
            format,
            index,
        })
    }

    /// What the pass found.
    pub fn indexed(&self) -> &IndexedSource {
        &self.indexed
    }

    async fn read_block(&self, block: &Located) -> Result<Vec<u8>, SourceError> {
        let mut bytes = Vec::new();
        let part = PART_BYTES as u64;
        for number in block.bytes.start / part..block.bytes.end.div_ceil(part) {
            let read = self
                .uploads
                .upload_part(self.id, u32::try_from(number).unwrap_or(u32::MAX))
                .await;
            let body = read.map_err(|error| SourceError::Unreadable(self.said(block, &error.to_string())))?;
            let body = body.ok_or_else(|| self.changed(block, "a part of it is gone"))?;
            let inside = |at: u64| usize::try_from(at.saturating_sub(number * part)).unwrap_or(usize::MAX);
            let (start, end) = (inside(block.bytes.start), inside(block.bytes.end).min(body.len()));
            bytes.extend_from_slice(body.get(start..end).unwrap_or_default());
        }
        Ok(bytes)
    }

    fn said(&self, block: &Located, what: &str) -> String {
        format!(
            "rows {} to {} of {}: {what}",
            block.rows.start,
            block.rows.end - 1,
            self.id
        )
    }

    fn changed(&self, block: &Located, because: &str) -> SourceError {
        let text = format!("they are not as they were sent; because {because}; try: upload it again");
        SourceError::Changed(self.said(block, &text))
    }

    async fn read_rows(&self, at: ItemIndex) -> Result<Arc<RowChunk>, SourceError> {
        let Some(block) = self.index.locate(at) else {
            let text = format!(
                "{} has {} rows, there is no item {}",
                self.id, self.indexed.rows, at.0
            );
            return Err(SourceError::BadRow(text));
        };
        let bytes = self.read_block(&block).await?;
        if xxh3_64(&bytes) != block.checksum {
            return Err(self.changed(&block, "their checksum differs"));
        }
        let (format, indexed, wanted) = (self.format.clone(), self.indexed.clone(), block.clone());
        let parsed =
            tokio::task::spawn_blocking(move || parse(&format, &indexed.columns, &bytes, &wanted)).await;
        match parsed {
            Ok(Ok(chunk)) => Ok(Arc::new(chunk)),
            Ok(Err(kind)) => Err(SourceError::BadRow(self.said(&block, &kind.to_string()))),
            Err(error) => Err(SourceError::Unreadable(format!("the reader ended: {error}"))),
        }
    }
}

impl Source for UploadSource {
    fn total(&self) -> ItemCount {
        ItemCount(self.indexed.rows)
    }

    fn has_data(&self) -> bool {
        true
    }

    fn columns(&self) -> &[String] {
        &self.indexed.columns
    }

    /// Cancel safe.
    fn read(&self, at: ItemIndex) -> BoxFuture<'_, Result<Arc<RowChunk>, SourceError>> {
        Box::pin(self.read_rows(at))
    }
}
