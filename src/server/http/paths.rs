//! Paths that guards treat apart.

/// Bytes of an upload are limited by the route itself.
pub(crate) const UPLOADS: &str = "/v1/uploads";
/// Whoever signs in is nobody yet, who could have a key.
pub(crate) const SESSION: &str = "/v1/session";
/// Appended items are kept once a key by the store itself.
pub(crate) const APPENDS: &str = "/v1/tasks/{task}/items";
