//! Reads blocks of an upload from its parts and checks them against the index, as `file` does for files. For a
//! compressed upload each block is a frame, and the frame table is read on opening.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::block_index::{BlockIndex, DamagedIndex, Located};
use super::fault::IndexError;
use super::file::parse;
use super::frames::{FOOT_BYTES, Frames, unpack};
use super::open::index_of;
use super::open_error::OpenSourceError;
use super::packing::Packing;
use super::spec::Format;
use windrow_core::ids::{ItemCount, ItemIndex};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::sources::source::{RowChunk, Source, SourceError};
use windrow_engine::ports::sources::store::{IndexedSource, SourceStore};
use windrow_engine::ports::sources::uploads::{PART_BYTES, Upload, UploadId, UploadStore};

/// Returns the location under which the source store keeps an upload's index.
pub(super) fn location(id: UploadId) -> String {
    format!("upload:{}", id.0)
}

/// Member of an upload's format with the compression.
const PACKING: &str = "compressed";

/// Returns the row format and compression of an upload as stored.
pub(super) fn format_text(format: &Format, packing: Option<Packing>) -> String {
    let text = format.to_text();
    match (packing, serde_json::from_str(&text)) {
        (Some(packing), Ok(Value::Object(mut options))) => {
            options.insert(PACKING.to_owned(), packing.to_string().into());
            Value::Object(options).to_string()
        }
        _ => text,
    }
}

/// Parses a stored format into the row format and the compression; `None` if invalid.
pub(super) fn stored_format(upload: &Upload) -> Option<(Format, Option<String>)> {
    let mut options: Value = serde_json::from_str(&upload.format).ok()?;
    let packing = options.as_object_mut()?.remove(PACKING);
    let packing = packing.and_then(|name| name.as_str().map(str::to_owned));
    let format = match upload.kind.as_str() {
        "csv" => Format::Csv(serde_json::from_value(options).ok()?),
        "ndjson" => Format::Ndjson,
        "lines" => Format::Lines,
        "nul" => Format::Nul,
        _ => return None,
    };
    Some((format, packing))
}

/// Rows of a ready upload.
pub struct UploadSource {
    bytes: Stored,
    indexed: Arc<IndexedSource>,
    format: Format,
    index: Arc<BlockIndex>,
    /// Frames of the blocks, for a compressed upload.
    frames: Option<Frames>,
}

impl UploadSource {
    /// Opens an upload with its index.
    ///
    /// # Errors
    /// `BadSpec` if the upload doesn't exist or isn't ready.
    pub async fn open(
        uploads: Arc<dyn UploadStore>,
        sources: &dyn SourceStore,
        id: UploadId,
        format: &Format,
    ) -> Result<UploadSource, OpenSourceError> {
        let missing =
            || OpenSourceError::BadSpec(format!("the upload {id} does not exist or is not complete"));
        let upload = uploads.upload(id).await?.ok_or_else(missing)?;
        let found = sources.find(&location(id), &format.to_text()).await?;
        let (source, indexed) = found.ok_or_else(missing)?;
        let bytes = Stored { uploads, id };
        let frames = match stored_format(&upload) {
            Some((_, Some(_))) => Some(bytes.frames(indexed.bytes).await?),
            _ => None,
        };
        let unpacked = frames.as_ref().map_or(indexed.bytes, Frames::unpacked);
        let index = index_of(source, &indexed, unpacked, sources).await?;
        let index = index.and_then(|index| match &frames {
            Some(frames) => frames.fit(&index).map(|()| index),
            None => Ok(index),
        });
        let index = index.map_err(|error| damaged(id, error))?;
        let (indexed, index, format) = (Arc::new(indexed), Arc::new(index), format.clone());
        Ok(UploadSource {
            bytes,
            indexed,
            format,
            index,
            frames,
        })
    }

    /// Returns the result of the pass.
    pub fn indexed(&self) -> &IndexedSource {
        &self.indexed
    }

    /// Reads the bytes of a block as stored.
    async fn read_block(&self, block: &Located) -> Result<Vec<u8>, SourceError> {
        let place = match &self.frames {
            Some(frames) => frames.place(block),
            None => block.bytes.clone(),
        };
        let read = self.bytes.read(place).await;
        let bytes = read.map_err(|error| SourceError::Unreadable(self.said(block, &error.to_string())))?;
        bytes.ok_or_else(|| self.changed(block, "part of it is missing"))
    }

    fn said(&self, block: &Located, what: &str) -> String {
        format!(
            "rows {} to {} of {}: {what}",
            block.rows.start,
            block.rows.end - 1,
            self.bytes.id
        )
    }

    fn changed(&self, block: &Located, because: &str) -> SourceError {
        let text = format!("they differ from what was uploaded: {because}; try: upload the file again");
        SourceError::Changed(self.said(block, &text))
    }

    async fn read_rows(&self, at: ItemIndex) -> Result<Arc<RowChunk>, SourceError> {
        let Some(block) = self.index.locate(at) else {
            let text = format!(
                "{} has {} rows; there is no item {}",
                self.bytes.id, self.indexed.rows, at.0
            );
            return Err(SourceError::BadRow(text));
        };
        let bytes = self.read_block(&block).await?;
        let (format, indexed, wanted) = (self.format.clone(), self.indexed.clone(), block.clone());
        let is_packed = self.frames.is_some();
        let parsed = tokio::task::spawn_blocking(move || {
            let len = usize::try_from(wanted.bytes.end - wanted.bytes.start).unwrap_or(usize::MAX);
            let bytes = if is_packed { unpack(&bytes, len)? } else { bytes };
            let is_same = xxh3_64(&bytes) == wanted.checksum;
            is_same.then(|| parse(&format, &indexed.columns, &bytes, &wanted))
        });
        match parsed.await {
            Ok(Some(Ok(chunk))) => Ok(Arc::new(chunk)),
            Ok(Some(Err(kind))) => Err(SourceError::BadRow(self.said(&block, &kind.to_string()))),
            Ok(None) => Err(self.changed(&block, "their checksum differs")),
            Err(error) => Err(SourceError::Unreadable(format!("the reader ended: {error}"))),
        }
    }
}

/// Bytes of an upload, stored in parts.
struct Stored {
    uploads: Arc<dyn UploadStore>,
    id: UploadId,
}

impl Stored {
    /// Reads a range; `None` if a part is missing. Shorter than requested at the end of the last part.
    async fn read(&self, place: Range<u64>) -> Result<Option<Vec<u8>>, StoreError> {
        let (mut bytes, size) = (Vec::new(), PART_BYTES as u64);
        for number in place.start / size..place.end.div_ceil(size) {
            let part = u32::try_from(number).unwrap_or(u32::MAX);
            let Some(part) = self.uploads.upload_part(self.id, part).await? else {
                return Ok(None);
            };
            let inside = |at: u64| usize::try_from(at.saturating_sub(number * size)).unwrap_or(usize::MAX);
            let (start, end) = (inside(place.start), inside(place.end).min(part.len()));
            bytes.extend_from_slice(part.get(start..end).unwrap_or_default());
        }
        Ok(Some(bytes))
    }

    /// Reads the frame table at the end of a compressed upload with `len` bytes.
    async fn frames(&self, len: u64) -> Result<Frames, OpenSourceError> {
        let last = |most: u64| len.saturating_sub(most)..len;
        let gone = || damaged(self.id, DamagedIndex("its block table is missing".to_owned()));
        let foot = self.read(last(FOOT_BYTES as u64)).await?.ok_or_else(gone)?;
        let place = last(Frames::tail_bytes(&foot).ok_or_else(gone)?);
        let tail = self.read(place.clone()).await?.ok_or_else(gone)?;
        let frames = Frames::read(len, |bytes, at| {
            let at = at
                .checked_sub(place.start)
                .and_then(|at| usize::try_from(at).ok());
            let found = at.and_then(|at| tail.get(at..at.checked_add(bytes.len())?));
            bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        });
        frames.ok().flatten().ok_or_else(gone)
    }
}

fn damaged(id: UploadId, error: DamagedIndex) -> OpenSourceError {
    OpenSourceError::Index {
        name: id.to_string(),
        error: IndexError::Unreadable(io::Error::other(error)),
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

    /// Cancel safe: a dropped read has no effect.
    fn read(&self, at: ItemIndex) -> BoxFuture<'_, Result<Arc<RowChunk>, SourceError>> {
        Box::pin(self.read_rows(at))
    }
}
