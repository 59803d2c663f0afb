//! What businesses store as uploads, and may store.

use super::text::{Kind, Page};
use crate::http::App;

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
    let quota = app.service.config().http.upload_quota.0;
    let help = "What the uploads of a business may take";
    page.single("windrow_upload_quota_bytes", Kind::Gauge, help, quota as f64);
    let help = "What the uploads of a business take, of those who store most";
    let mut family = page.family("windrow_upload_stored_bytes", Kind::Gauge, help);
    stored
        .iter()
        .for_each(|(business, bytes)| family.sample(&[("business", business)], *bytes as f64));
}
