//! Paths that the guards handle specially.

/// Uploads limit the size of their bodies themselves.
pub(crate) const UPLOADS: &str = "/v1/uploads";
/// A caller that signs in has no identity yet, so it can't have a key.
pub(crate) const SESSION: &str = "/v1/session";
/// Appended items are deduplicated by key in the store itself.
pub(crate) const APPENDS: &str = "/v1/tasks/{task}/items";
