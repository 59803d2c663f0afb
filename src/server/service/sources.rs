//! Item sources: resolving those in requests into a stored form, and uploads.

pub use crate::service::node::ThisNode;
use std::sync::Arc;

use windrow_engine::ports::sources::resolver::{
    Received, ResolveError, ResolvedSource, RowFormat, Sender, SourceRequest, SourceResolver, UploadBytes,
};
use windrow_engine::ports::sources::uploads::{Upload, UploadId, UploadStore};

use super::{FieldFault, ServiceError};
use crate::service::tasks::settings::check_depth;
use windrow_engine::ports::tasks::store::Write;

/// Time for which an unused upload is kept, long enough to create the task the next day.
const UNUSED_UPLOADS_KEPT: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// Prefix of a business as the owner of uploads; any other owner is a person's name.
const BUSINESS: &str = "business:";

/// Returns the account that owns a business's uploads, whichever token sends them.
pub fn account(business: &str) -> String {
    format!("{BUSINESS}{business}")
}

/// Service for item sources and uploads.
pub struct Sources {
    pub(super) node: Arc<ThisNode>,
    pub(super) resolver: Arc<dyn SourceResolver>,
    pub(super) uploads: Arc<dyn UploadStore>,
}

impl Sources {
    pub(super) fn new(
        node: Arc<ThisNode>,
        resolver: Arc<dyn SourceResolver>,
        uploads: Arc<dyn UploadStore>,
    ) -> Sources {
        Sources {
            node,
            resolver,
            uploads,
        }
    }

    /// Resolves the source of a create request into its stored form: description, number of items and meaning. A URL
    /// is fetched now. An upload counts as taken from now on, except in a dry run, which doesn't support URLs.
    ///
    /// # Errors
    /// `Unprocessable` at `/source` if it isn't usable for a task, `TooLarge` if it exceeds the node's limits.
    pub async fn resolve(
        &self,
        request: &SourceRequest,
        business: &str,
        write: &Write,
    ) -> Result<ResolvedSource, ServiceError> {
        if let SourceRequest::Inline { items } = request {
            // Check the depth of each item, without the surrounding list.
            let inner = items
                .get()
                .strip_prefix('[')
                .and_then(|text| text.strip_suffix(']'));
            check_depth("/source/items", inner.unwrap_or_default())?;
        }
        let account = if write.actor.source == "business" {
            account(business)
        } else {
            write.actor.name.clone()
        };
        let resolver = &self.resolver;
        let resolved = match request {
            SourceRequest::Upload { upload } if write.dry_run => resolver.look_at_upload(*upload).await,
            SourceRequest::Url { .. } if write.dry_run => {
                let text = "a URL is fetched when the task is created, so a dry run isn't possible";
                let fault = FieldFault::new("/source/url", text).advise("upload it first: POST /v1/uploads");
                return Err(ServiceError::Invalid(vec![fault]));
            }
            _ => {
                resolver
                    .resolve(request, &self.sender(&account), self.node.now())
                    .await
            }
        };
        resolved.map_err(|error| refused(error, "/source"))
    }

    /// Receives an upload.
    ///
    /// # Errors
    /// `Unprocessable` if its rows can't be items (names the lines), `TooLarge`, `UploadQuota`.
    pub async fn receive(
        &self,
        format: &RowFormat,
        by: &str,
        body: UploadBytes<'_>,
    ) -> Result<Received, ServiceError> {
        let received = self
            .resolver
            .receive(format, &self.sender(by), self.node.now(), body)
            .await;
        received.map_err(|error| refused(error, "body"))
    }

    fn sender<'a>(&self, by: &'a str) -> Sender<'a> {
        let http = &self.node.config().http;
        let quota = by.starts_with(BUSINESS).then_some(http.upload_quota.0);
        Sender {
            by,
            bytes_max: http.upload_limit.0,
            quota,
        }
    }

    /// Returns the upload storage used by a business and its quota; `None` for other owners, who have no quota.
    pub async fn room(&self, by: &str) -> Result<Option<(u64, u64)>, ServiceError> {
        let Some(quota) = self.sender(by).quota else {
            return Ok(None);
        };
        Ok(Some((self.uploads.stored_by(by).await?, quota)))
    }

    /// Returns the businesses with the largest uploads, at most `limit`, and the bytes they use.
    pub async fn stored_most(&self, limit: u32) -> Result<Vec<(String, u64)>, ServiceError> {
        let found = self.uploads.stored_most(BUSINESS, limit).await?;
        let business = |by: String| by.strip_prefix(BUSINESS).map(str::to_owned).unwrap_or(by);
        Ok(found
            .into_iter()
            .map(|(by, bytes)| (business(by), bytes))
            .collect())
    }

    /// Returns an upload, and its details once it is ready.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn show(&self, id: UploadId) -> Result<(Upload, Option<Received>), ServiceError> {
        let missing = || ServiceError::not_found("upload", id);
        let upload = self.uploads.upload(id).await?.ok_or_else(missing)?;
        let received = self
            .resolver
            .received(id)
            .await
            .map_err(|error| refused(error, ""))?;
        Ok((upload, received))
    }

    /// Deletes an upload that isn't used by a task.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if a task uses it.
    pub async fn discard(&self, id: UploadId) -> Result<(), ServiceError> {
        let (upload, _) = self.show(id).await?;
        if upload.used_at.is_some() {
            let why = format!("{id} is the source of a task, or was used for one in the last 24 hours");
            let advice = "DELETE the task; unused uploads are removed automatically within 24 hours";
            return Err(ServiceError::conflict(why, advice));
        }
        Ok(self.uploads.discard(id).await?)
    }

    /// Deletes uploads that were unfinished or unused for 24 hours, and returns their number.
    pub async fn expire(&self) -> Result<u64, ServiceError> {
        let kept_ms = i64::try_from(UNUSED_UPLOADS_KEPT.as_millis()).unwrap_or(i64::MAX);
        let before = windrow_core::ids::WallMs(self.node.now().0.saturating_sub(kept_ms));
        Ok(self.uploads.expire_uploads(before).await?)
    }
}

fn refused(error: ResolveError, pointer: &str) -> ServiceError {
    match error {
        ResolveError::Refused(text) => ServiceError::unprocessable(pointer, text),
        ResolveError::NotUnpacked { reason, text } => {
            let detail = text;
            ServiceError::NotUnpacked { reason, detail }
        }
        ResolveError::TooLarge(text) => ServiceError::TooLarge(text),
        ResolveError::OverQuota(text) => ServiceError::UploadQuota(text),
        ResolveError::Store(error) => error.into(),
    }
}
