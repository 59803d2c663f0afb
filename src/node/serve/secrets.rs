//! Check at startup that the key matches the stored secrets. A lost key is reported then, and not when the first call
//! of each business fails.

use windrow_core::business::secrets::BusinessSecrets;
use windrow_engine::actors::runtime::begin;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::business_store::BusinessStore;
use windrow_engine::ports::access::vault::Unopenable;
use windrow_server::service::Parts;
use windrow_store::sql::Store;

/// Number of businesses read per page.
const PAGE: u32 = 200;

/// Logs the businesses that can't be called with this key. The node starts nevertheless: tasks of others can run, and
/// its API is needed for the repair.
pub(super) async fn check(parts: &Parts<Store>) -> Result<(), StoreError> {
    let mut lost: Vec<String> = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = begin::asked(|| parts.store.businesses(false, after.as_deref(), PAGE)).await?;
        for business in &page {
            let place = BusinessSecrets::place(&business.slug);
            let opened = business
                .sealed
                .as_ref()
                .map(|sealed| parts.vault.open(&place, sealed));
            if matches!(opened, Some(Err(Unopenable::OtherKey { .. }))) {
                lost.push(business.slug.clone());
            }
        }
        after = page.last().map(|business| business.slug.clone());
        if page.len() < PAGE as usize {
            break;
        }
    }
    if !lost.is_empty() {
        tracing::error!(
            businesses = lost.join(", "),
            "stored secrets are sealed with another key, so these businesses can't be called; restore the \
             old key (auth.key_file, or `key` in the data directory) or register them again under other \
             names"
        );
    }
    Ok(())
}
