//! Takes in an upload: its bytes go into the store in parts while one pass counts, checks and indexes them.
//!
//! Memory is bounded by one part, a few chunks of the body, and what the pass holds. The pass runs on a thread for
//! blocking work and is fed through a short queue. Each part is a transaction of its own, so a sender that is slow, or
//! goes away, holds nothing.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::fault::IndexError;
use super::pass::{BlockLimits, Indexed, index_bytes};
use super::spec::Format;
use super::upload::{UploadSource, location};
use crate::domain::ids::{ItemIndex, WallMs};
use crate::ports::StoreError;
use crate::ports::source::{RowChunk, Source};
use crate::ports::source_store::SourceStore;
use crate::ports::uploads::{PART_BYTES, UploadDone, UploadId, UploadStore};

/// Chunks of the body that may wait for the pass.
const QUEUE: usize = 8;
/// Rows in a sample.
const SAMPLE_ROWS: u64 = 3;
/// The longest row that is shown in a sample. Unit: bytes.
const SAMPLE_ROW_BYTES: usize = 4096;

/// An upload was not taken in; nothing is kept of it.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// Its rows can't be items.
    #[error(transparent)]
    Rows(#[from] IndexError),
    /// It is longer than is taken. Unit: bytes.
    #[error("it is longer than {0} bytes")]
    TooLarge(u64),
    /// The sender stopped in the middle.
    #[error("it ended in the middle: {0}")]
    Broken(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes in a whole body and makes it a ready upload.
///
/// Cancel safe: an upload whose sender went away stays open, and is removed with the others that nobody took.
///
/// # Errors
/// See [`ReceiveError`].
pub async fn receive(
    uploads: &Arc<dyn UploadStore>,
    sources: &dyn SourceStore,
    (format, by): (&Format, &str),
    bytes_max: u64,
    now: WallMs,
    body: impl Stream<Item = Result<Bytes, String>> + Send + Unpin,
) -> Result<UploadId, ReceiveError> {
    format.check().map_err(IndexError::BadFormat)?;
    let id = uploads.begin(format.kind(), &format.to_text(), by, now).await?;
    let outcome = take_in(uploads, sources, (id, format), bytes_max, body).await;
    if outcome.is_err()
        && let Err(error) = uploads.discard(id).await
    {
        tracing::warn!(%id, %error, "a refused upload stays until it is too old");
    }
    outcome.map(|()| id)
}

async fn take_in(
    uploads: &Arc<dyn UploadStore>,
    sources: &dyn SourceStore,
    (id, format): (UploadId, &Format),
    bytes_max: u64,
    body: impl Stream<Item = Result<Bytes, String>> + Send + Unpin,
) -> Result<(), ReceiveError> {
    let mut pass = Pass::begin(format);
    let stored = store_parts(uploads.as_ref(), id, bytes_max, body, &mut pass).await;
    if stored.is_err() {
        pass.cancel.store(true, Ordering::Relaxed);
    }
    let passed = pass.end().await;
    match (stored, passed) {
        // The pass ended first, and that is why no more could be fed to it.
        (Ok(()) | Err(Stopped::ByPass), Err(error)) => Err(error.into()),
        (Err(Stopped::Because(error)), _) => Err(error),
        (Err(Stopped::ByPass), Ok(_)) => Err(ReceiveError::Broken("the pass ended early".to_owned())),
        (Ok(()), Ok((indexed, sha256))) => finish(uploads, sources, (id, format), indexed, sha256).await,
    }
}

/// Why no more parts are stored.
enum Stopped {
    ByPass,
    Because(ReceiveError),
}

impl<E: Into<ReceiveError>> From<E> for Stopped {
    fn from(error: E) -> Stopped {
        Stopped::Because(error.into())
    }
}

async fn store_parts(
    uploads: &dyn UploadStore,
    id: UploadId,
    bytes_max: u64,
    mut body: impl Stream<Item = Result<Bytes, String>> + Send + Unpin,
    pass: &mut Pass,
) -> Result<(), Stopped> {
    let (mut part, mut number, mut bytes) = (Vec::with_capacity(PART_BYTES), 0_u32, 0_u64);
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(ReceiveError::Broken)?;
        bytes += chunk.len() as u64;
        if bytes > bytes_max {
            return Err(ReceiveError::TooLarge(bytes_max).into());
        }
        if !pass.feed(chunk.clone()).await {
            return Err(Stopped::ByPass);
        }
        let mut rest = chunk;
        while part.len() + rest.len() >= PART_BYTES {
            let taken = rest.split_to(PART_BYTES - part.len());
            part.extend_from_slice(&taken);
            uploads.append(id, number, &part).await?;
            (part, number) = (Vec::with_capacity(PART_BYTES), number + 1);
        }
        part.extend_from_slice(&rest);
    }
    if !part.is_empty() {
        uploads.append(id, number, &part).await?;
    }
    Ok(())
}

async fn finish(
    uploads: &Arc<dyn UploadStore>,
    sources: &dyn SourceStore,
    (id, format): (UploadId, &Format),
    indexed: Indexed,
    sha256: String,
) -> Result<(), ReceiveError> {
    let (parts, bytes) = (indexed.index.to_parts(), indexed.bytes);
    let (source, _) = indexed.into_source(format, location(id), 0);
    let source = sources.save(&source, &parts).await?;
    let opened = UploadSource::open(uploads.clone(), sources, id, format).await;
    let opened = opened.map_err(|error| ReceiveError::Broken(error.because()))?;
    let first = opened.read(ItemIndex(0)).await;
    let first = first.map_err(|error| ReceiveError::Broken(error.to_string()))?;
    let done = UploadDone { source, bytes, sha256, sample: sample(&first) };
    Ok(uploads.finish(id, &done).await?)
}

/// The first rows as a JSON array; a long row is shown as its beginning, as a string.
fn sample(chunk: &RowChunk) -> String {
    let rows = (0..SAMPLE_ROWS).filter_map(|row| chunk.row(ItemIndex(row)));
    let shown = rows.map(|row| {
        if row.len() <= SAMPLE_ROW_BYTES {
            return row.to_owned();
        }
        let cut = crate::domain::verdict::cut(row, SAMPLE_ROW_BYTES);
        serde_json::Value::String(cut).to_string()
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(","))
}

/// The pass on its own thread.
struct Pass {
    sender: Option<mpsc::Sender<Bytes>>,
    cancel: Arc<AtomicBool>,
    work: JoinHandle<Result<(Indexed, String), IndexError>>,
}

impl Pass {
    fn begin(format: &Format) -> Pass {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let cancel = Arc::new(AtomicBool::new(false));
        let (format, ended) = (format.clone(), cancel.clone());
        let work = tokio::task::spawn_blocking(move || {
            let mut feed = Feed { receiver, rest: Bytes::new(), hash: Sha256::new() };
            let indexed = index_bytes(&mut feed, None, &format, BlockLimits::default(), &mut |_| {}, &ended)?;
            let sha256 = feed.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            Ok((indexed, sha256))
        });
        Pass { sender: Some(sender), cancel, work }
    }

    /// Whether the pass still takes bytes.
    async fn feed(&mut self, chunk: Bytes) -> bool {
        match &self.sender {
            Some(sender) => sender.send(chunk).await.is_ok(),
            None => false,
        }
    }

    async fn end(mut self) -> Result<(Indexed, String), IndexError> {
        self.sender = None;
        self.work.await.unwrap_or_else(|error| Err(IndexError::Unreadable(io::Error::other(error))))
    }
}

/// What the pass reads: the chunks of the body one after the other.
struct Feed {
    receiver: mpsc::Receiver<Bytes>,
    rest: Bytes,
    hash: Sha256,
}

impl Read for Feed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.receiver.blocking_recv() {
                Some(chunk) => self.rest = chunk,
                None => return Ok(0),
            }
        }
        let len = buffer.len().min(self.rest.len());
        buffer[..len].copy_from_slice(&self.rest[..len]);
        self.hash.update(&buffer[..len]);
        self.rest.advance(len);
        Ok(len)
    }
}
