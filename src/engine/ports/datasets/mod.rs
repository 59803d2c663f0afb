//! What finished tasks publish: kept for readers by the store, prepared by whoever owns the publication.

pub mod publication;
pub mod store;
