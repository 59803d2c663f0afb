//! Turns the source of a request into the description stored with a task.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;
use serde_json::value::RawValue;

use super::fault::IndexError;
use super::inline::InlineSource;
use super::open_error::OpenSourceError;
use super::receive::{ReceiveError, receive};
use super::spec::{CsvFormat, Format, Input, SourceSpec};
use super::upload::{UploadSource, stored_format};
use windrow_core::ids::{INDEX_MAX, ItemCount, WallMs};
use windrow_engine::ports::sources::resolver::{
    INLINE_BYTES_MAX, Received, RedriveSpec, ResolveError, ResolvedSource, RowFormat, Sender, SourceRequest,
    SourceResolver, UploadBytes,
};
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::sources::store::SourceStore;
use windrow_engine::ports::sources::uploads::{Upload, UploadId, UploadState, UploadStore};
use windrow_net::Fetcher;

/// Resolver of requested sources.
pub struct Resolver {
    /// Store of the indexes.
    pub sources: Arc<dyn SourceStore>,
    /// Store of the uploads.
    pub uploads: Arc<dyn UploadStore>,
    /// Downloads files from URLs.
    pub fetcher: Fetcher,
}

#[async_trait]
impl SourceResolver for Resolver {
    async fn look_at_upload(&self, id: UploadId) -> Result<ResolvedSource, ResolveError> {
        let refused = |why: &str| ResolveError::Refused(format!("{id} {why}"));
        let upload = self
            .uploads
            .upload(id)
            .await?
            .ok_or_else(|| refused("does not exist; upload it again"))?;
        if upload.state != UploadState::Ready {
            return Err(refused("is not complete; send the rest of it"));
        }
        let (format, _, source) = self.open(&upload).await?;
        let spec = SourceSpec::File {
            input: Input::Upload(id),
            format,
        };
        finish(&spec, source.indexed().checksum, source.total())
    }

    async fn resolve(
        &self,
        request: &SourceRequest,
        sender: &Sender<'_>,
        now: WallMs,
    ) -> Result<ResolvedSource, ResolveError> {
        match request {
            SourceRequest::Range { total } => finish(&SourceSpec::Range { total: *total }, 0, *total),
            SourceRequest::Inline { items } => {
                let items = items.clone();
                // Parsing millions of short items takes tens of milliseconds.
                let read = tokio::task::spawn_blocking(move || of_list(items)).await;
                read.unwrap_or_else(|error| {
                    Err(ResolveError::Refused(format!("the list was not read: {error}")))
                })
            }
            SourceRequest::Upload { upload } => self.of_upload(*upload, now).await,
            SourceRequest::Url {
                url,
                format,
                is_guarded,
            } => {
                let body = self
                    .fetcher
                    .get(url, *is_guarded)
                    .await
                    .map_err(ResolveError::Refused)?;
                let id = self.take_in(&row_format(format), sender, now, body).await?;
                self.of_upload(id, now).await
            }
            SourceRequest::Appended => Ok(ResolvedSource {
                json: SourceSpec::Appended.to_text(),
                total: ItemCount(0),
                meaning: SourceSpec::Appended.meaning(0, ItemCount(0)),
            }),
            SourceRequest::Redrive(spec) => {
                let total = spec.parts.iter().map(|part| part.count()).sum();
                finish(&SourceSpec::Redrive(spec.clone()), 0, ItemCount(total))
            }
        }
    }

    async fn receive(
        &self,
        format: &RowFormat,
        sender: &Sender<'_>,
        now: WallMs,
        body: UploadBytes<'_>,
    ) -> Result<Received, ResolveError> {
        let id = self.take_in(&row_format(format), sender, now, body).await?;
        let received = self.received(id).await?;
        received.ok_or_else(|| ResolveError::Refused(format!("{id} is gone")))
    }

    async fn received(&self, id: UploadId) -> Result<Option<Received>, ResolveError> {
        let Some(upload) = self.uploads.upload(id).await? else {
            return Ok(None);
        };
        let Upload {
            state: UploadState::Ready,
            sha256: Some(sha256),
            sample: Some(sample),
            ..
        } = &upload
        else {
            return Ok(None);
        };
        let (_, compression, source) = self.open(&upload).await?;
        let indexed = source.indexed();
        Ok(Some(Received {
            id,
            rows: indexed.rows,
            bytes: indexed.bytes,
            columns: indexed.columns.clone(),
            sample: sample.clone(),
            sha256: sha256.clone(),
            compression,
        }))
    }

    fn redrive_of(&self, json: &str) -> Result<Option<RedriveSpec>, ResolveError> {
        match SourceSpec::parse(json) {
            Ok(SourceSpec::Redrive(spec)) => Ok(Some(spec)),
            Ok(_) => Ok(None),
            Err(why) => Err(ResolveError::Refused(format!(
                "the stored source can't be parsed: {why}"
            ))),
        }
    }
}

impl Resolver {
    async fn of_upload(&self, id: UploadId, now: WallMs) -> Result<ResolvedSource, ResolveError> {
        let resolved = self.look_at_upload(id).await?;
        self.uploads.take(id, now).await?;
        Ok(resolved)
    }

    async fn open(&self, upload: &Upload) -> Result<(Format, Option<String>, UploadSource), ResolveError> {
        let damaged = || ResolveError::Refused(format!("the format of {} can't be parsed", upload.id));
        let (format, packing) = stored_format(upload).ok_or_else(damaged)?;
        let opened =
            UploadSource::open(self.uploads.clone(), self.sources.as_ref(), upload.id, &format).await;
        opened
            .map(|source| (format, packing, source))
            .map_err(|error| match error {
                OpenSourceError::Store(error) => ResolveError::Store(error),
                other => ResolveError::Refused(other.because()),
            })
    }

    async fn take_in(
        &self,
        format: &Format,
        sender: &Sender<'_>,
        now: WallMs,
        body: impl Stream<Item = Result<Bytes, String>> + Send + Unpin,
    ) -> Result<UploadId, ResolveError> {
        let (uploads, sources) = (&self.uploads, self.sources.as_ref());
        let received = receive(uploads, sources, format, sender, now, body).await;
        received.map_err(|error| match error {
            ReceiveError::Store(error) => ResolveError::Store(error),
            ReceiveError::OverQuota { .. } => ResolveError::OverQuota(error.to_string()),
            ReceiveError::TooLarge(_) | ReceiveError::UnpacksTooLarge(_) => {
                ResolveError::TooLarge(error.to_string())
            }
            ReceiveError::Rows(IndexError::Packed(packed)) => ResolveError::NotUnpacked {
                reason: packed.reason(),
                text: format!("{packed}; {}", packed.hint()),
            },
            ReceiveError::Rows(rows) => ResolveError::Refused(format!("{rows}; {}", rows.hint())),
            ReceiveError::Broken(_) => ResolveError::Refused(error.to_string()),
        })
    }
}

fn of_list(items: Box<RawValue>) -> Result<ResolvedSource, ResolveError> {
    let too_long = || {
        ResolveError::TooLarge(format!(
            "the list is longer than {INLINE_BYTES_MAX} bytes; upload it"
        ))
    };
    let source = InlineSource::new(&items).ok_or_else(too_long)?;
    finish(&SourceSpec::Inline { items }, source.checksum(), source.total())
}

fn finish(spec: &SourceSpec, checksum: u64, total: ItemCount) -> Result<ResolvedSource, ResolveError> {
    if total.0 > INDEX_MAX {
        let text = format!("the source has {} items; a task has at most {INDEX_MAX}", total.0);
        return Err(ResolveError::Refused(text));
    }
    Ok(ResolvedSource {
        json: spec.to_text(),
        total,
        meaning: spec.meaning(checksum, total),
    })
}

fn row_format(format: &RowFormat) -> Format {
    match *format {
        RowFormat::Csv {
            delimiter,
            header,
            quote,
            lenient,
        } => Format::Csv(CsvFormat {
            delimiter,
            header,
            quote,
            lenient,
        }),
        RowFormat::Ndjson => Format::Ndjson,
        RowFormat::Lines => Format::Lines,
        RowFormat::Nul => Format::Nul,
    }
}
