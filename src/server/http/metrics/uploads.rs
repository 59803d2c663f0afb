//! What businesses store as uploads, and may store.

use super::families as f;
use super::text::Page;
use crate::http::front::App;

/// Businesses whose uploads are told.
const UPLOADERS_MAX: u32 = 100;

/// What businesses store; none when the store can't be read.
pub(super) async fn stored(app: &App) -> Vec<(String, u64)> {
    app.service
        .sources
        .stored_most(UPLOADERS_MAX)
        .await
        .unwrap_or_else(|error| {
            tracing::debug!(%error, "uploads were not read for metrics");
            Vec::new()
        })
}

pub(super) fn write(page: &mut Page, app: &App, stored: &[(String, u64)]) {
    page.one(f::UPLOAD_QUOTA_BYTES, app.service.config().http.upload_quota.0);
    let stored = stored.iter().map(|(business, bytes)| (business.as_str(), *bytes));
    page.by(f::UPLOAD_STORED_BYTES, "business", stored);
}
