//! Upload storage used by businesses, and the quota.

use super::families as f;
use super::text::Page;
use crate::http::front::App;

/// Most businesses reported with their uploads.
const UPLOADERS_MAX: u32 = 100;

/// Returns the upload storage used per business; empty if the store can't be read.
pub(super) async fn stored(app: &App) -> Vec<(String, u64)> {
    app.service
        .sources
        .stored_most(UPLOADERS_MAX)
        .await
        .unwrap_or_else(|error| {
            tracing::debug!(%error, "reading uploads for metrics failed");
            Vec::new()
        })
}

pub(super) fn write(page: &mut Page, app: &App, stored: &[(String, u64)]) {
    page.one(f::UPLOAD_QUOTA_BYTES, app.service.config().http.upload_quota.0);
    let stored = stored.iter().map(|(business, bytes)| (business.as_str(), *bytes));
    page.by(f::UPLOAD_STORED_BYTES, "business", stored);
}
