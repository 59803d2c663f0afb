//! Receives an upload: stores its bytes in parts while one pass counts, checks and indexes the rows.
//!
//! Memory is bounded by one part, a chunk of the body, and the state of the pass. Each part is its own transaction,
//! and the pass works in short jobs, so a sender that is slow or disconnects holds neither locks nor threads.
//! Compressed uploads are unpacked on arrival (`receive_packed`), which occupies a thread for as long as they take.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::fault::IndexError;
use super::packing::{MAGIC_BYTES, Packing};
use super::pass::{FedPass, Indexed};
use super::receive_packed::take_in_packed;
use super::spec::Format;
use super::upload::{UploadSource, format_text, location};
use windrow_core::ids::{ItemIndex, WallMs};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::sources::resolver::Sender;
use windrow_engine::ports::sources::source::{RowChunk, Source};
use windrow_engine::ports::sources::store::SourceStore;
use windrow_engine::ports::sources::uploads::{PART_BYTES, UploadDone, UploadId, UploadStore};

/// Maximum concurrent jobs of all passes.
pub(super) static JOBS: Semaphore = Semaphore::const_new(2);
/// Number of rows in a sample.
const SAMPLE_ROWS: u64 = 3;
/// Maximum length of a row in a sample, in bytes.
const SAMPLE_ROW_BYTES: usize = 4096;

/// Reason why an upload failed; nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// Some rows can't be items.
    #[error(transparent)]
    Rows(#[from] IndexError),
    /// The upload exceeds the limit, given in bytes.
    #[error("it is longer than {0} bytes")]
    TooLarge(u64),
    /// The unpacked data exceeds the limit, given in bytes.
    #[error("unpacked, it is longer than {0} bytes (http.upload_limit)")]
    UnpacksTooLarge(u64),
    /// The sender has used up the storage quota.
    #[error("the uploads of this business take {stored} bytes; its quota is {quota} (http.upload_quota)")]
    OverQuota {
        /// Bytes stored by the sender.
        stored: u64,
        /// Quota of the sender, in bytes.
        quota: u64,
    },
    /// The sender disconnected before the end.
    #[error("it ended early: {0}")]
    Broken(String),
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Receives a whole body and turns it into a ready upload.
///
/// Cancel safe: if the sender disconnects, the upload stays open and is deleted with other unused ones.
///
/// # Errors
/// See [`ReceiveError`].
pub async fn receive(
    uploads: &Arc<dyn UploadStore>,
    sources: &dyn SourceStore,
    format: &Format,
    sender: &Sender<'_>,
    now: WallMs,
    body: impl Stream<Item = Result<Bytes, String>> + Send + Unpin,
) -> Result<UploadId, ReceiveError> {
    format.check().map_err(IndexError::BadFormat)?;
    refuse_full(uploads.as_ref(), sender, 1).await?;
    let (first, body) = begin(body).await?;
    let packing = Packing::of(&first);
    let id = uploads
        .begin(format.kind(), &format_text(format, packing), sender.by, now)
        .await?;
    let body = stream::iter([Ok(first)]).chain(body);
    let outcome = take_in(uploads, sources, (id, format, packing), sender, body).await;
    if outcome.is_err()
        && let Err(error) = uploads.discard(id).await
    {
        tracing::warn!(%id, %error, "can't delete a rejected upload; it stays until it expires");
    }
    outcome.map(|()| id)
}

/// Returns the first bytes, enough to detect the format, and the rest of the body.
async fn begin<B>(mut body: B) -> Result<(Bytes, B), ReceiveError>
where
    B: Stream<Item = Result<Bytes, String>> + Unpin,
{
    let mut first = Bytes::new();
    while first.len() < MAGIC_BYTES
        && let Some(chunk) = body.next().await
    {
        let chunk = chunk.map_err(ReceiveError::Broken)?;
        first = match first.is_empty() {
            true => chunk,
            false => [first, chunk].concat().into(),
        };
    }
    Ok((first, body))
}

async fn take_in(
    uploads: &Arc<dyn UploadStore>,
    sources: &dyn SourceStore,
    (id, format, packing): (UploadId, &Format, Option<Packing>),
    sender: &Sender<'_>,
    body: impl Stream<Item = Result<Bytes, String>> + Send + Unpin,
) -> Result<(), ReceiveError> {
    let mut parts = Parts::new(uploads, id, sender);
    let (indexed, sha256) = match packing {
        None => take_in_plain(&mut parts, format, body).await?,
        Some(packing) => take_in_packed(&mut parts, (format, packing), body).await?,
    };
    let bytes = parts.end().await?;
    let indexed = Indexed { bytes, ..indexed };
    finish(uploads, sources, (id, format), indexed, sha256).await
}

async fn take_in_plain(
    parts: &mut Parts<'_>,
    format: &Format,
    mut body: impl Stream<Item = Result<Bytes, String>> + Send + Unpin,
) -> Result<(Indexed, String), ReceiveError> {
    let (mut pass, mut bytes, most) = (Pass::begin(format)?, 0_u64, parts.sender.bytes_max);
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(ReceiveError::Broken)?;
        bytes += chunk.len() as u64;
        if bytes > most {
            return Err(ReceiveError::TooLarge(most));
        }
        pass.feed(&chunk).await?;
        parts.add(chunk).await?;
    }
    Ok(pass.end().await?)
}

/// Writer of an upload's parts.
pub(super) struct Parts<'a> {
    uploads: &'a dyn UploadStore,
    id: UploadId,
    /// Owner of the upload.
    pub(super) sender: &'a Sender<'a>,
    part: Vec<u8>,
    number: u32,
    bytes: u64,
}

impl<'a> Parts<'a> {
    fn new(uploads: &'a Arc<dyn UploadStore>, id: UploadId, sender: &'a Sender<'a>) -> Parts<'a> {
        Parts {
            uploads: uploads.as_ref(),
            id,
            sender,
            part: Vec::new(),
            number: 0,
            bytes: 0,
        }
    }

    /// Adds bytes, and stores each part that is complete.
    ///
    /// # Errors
    /// `OverQuota`, or an error of the store.
    pub(super) async fn add(&mut self, mut rest: Bytes) -> Result<(), ReceiveError> {
        self.bytes += rest.len() as u64;
        while self.part.len() + rest.len() >= PART_BYTES {
            self.part
                .extend_from_slice(&rest.split_to(PART_BYTES - self.part.len()));
            self.uploads.append(self.id, self.number, &self.part).await?;
            (self.part, self.number) = (Vec::new(), self.number + 1);
            // Other uploads of the same sender may be arriving at the same time.
            refuse_full(self.uploads, self.sender, 0).await?;
        }
        self.part.extend_from_slice(&rest);
        Ok(())
    }

    /// Stores the rest and returns the total number of bytes.
    async fn end(self) -> Result<u64, ReceiveError> {
        if !self.part.is_empty() {
            self.uploads.append(self.id, self.number, &self.part).await?;
        }
        refuse_full(self.uploads, self.sender, 0).await?;
        Ok(self.bytes)
    }
}

/// Refuses a sender whose uploads, with `more` bytes, exceed the quota.
async fn refuse_full(uploads: &dyn UploadStore, sender: &Sender<'_>, more: u64) -> Result<(), ReceiveError> {
    let Some(quota) = sender.quota else { return Ok(()) };
    let stored = uploads.stored_by(sender.by).await?;
    if stored.saturating_add(more) > quota {
        return Err(ReceiveError::OverQuota { stored, quota });
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
    let sample = match opened.indexed().rows {
        0 => "[]".to_owned(),
        _ => {
            let first = opened.read(ItemIndex(0)).await;
            sample(&*first.map_err(|error| ReceiveError::Broken(error.to_string()))?)
        }
    };
    let done = UploadDone {
        source,
        bytes,
        sha256,
        sample,
    };
    Ok(uploads.finish(id, &done).await?)
}

/// Formats the first rows as a JSON array. A long row is cut and shown as a string.
fn sample(chunk: &RowChunk) -> String {
    let rows = (0..SAMPLE_ROWS).filter_map(|row| chunk.row(ItemIndex(row)));
    let shown = rows.map(|row| {
        if row.len() <= SAMPLE_ROW_BYTES {
            return row.to_owned();
        }
        let cut = windrow_core::items::verdict::cut(row, SAMPLE_ROW_BYTES);
        serde_json::Value::String(cut).to_string()
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(","))
}

/// Pass over arriving bytes. It works in short jobs on blocking threads, never while waiting for the network: a slow
/// sender holds some memory but no thread.
struct Pass {
    state: Option<State>,
    /// Bytes that the pass doesn't accept yet.
    pending: Vec<u8>,
}

/// State handed from job to job.
struct State {
    pass: FedPass,
    hash: Sha256,
}

impl Pass {
    fn begin(format: &Format) -> Result<Pass, IndexError> {
        let state = State {
            pass: FedPass::begin(format)?,
            hash: Sha256::new(),
        };
        Ok(Pass {
            state: Some(state),
            pending: Vec::new(),
        })
    }

    async fn feed(&mut self, chunk: &[u8]) -> Result<(), IndexError> {
        self.pending.extend_from_slice(chunk);
        while let Some(state) = self
            .state
            .take_if(|state| state.pass.wanted() <= self.pending.len())
        {
            let rest = self.pending.split_off(state.pass.wanted());
            let bytes = std::mem::replace(&mut self.pending, rest);
            let work = move || {
                let State { pass, mut hash } = state;
                hash.update(&bytes);
                Ok(State {
                    pass: pass.feed(&bytes)?,
                    hash,
                })
            };
            self.state = Some(job(work).await?);
        }
        Ok(())
    }

    async fn end(self) -> Result<(Indexed, String), IndexError> {
        let gone = || IndexError::Unreadable(io::Error::other("the pass has ended already"));
        let (State { pass, mut hash }, bytes) = (self.state.ok_or_else(gone)?, self.pending);
        let work = move || {
            hash.update(&bytes);
            let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            Ok((pass.end(&bytes)?, sha256))
        };
        job(work).await
    }
}

/// Runs a short job of a pass. Their number is limited, so that many fast senders leave threads for others.
async fn job<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, IndexError> + Send + 'static,
) -> Result<T, IndexError> {
    // Never fails: the semaphore is never closed.
    let _turn = JOBS.acquire().await;
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(IndexError::Unreadable(io::Error::other(error))))
}
