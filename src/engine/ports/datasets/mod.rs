//! What finished tasks publish: kept for readers by the store, prepared by whoever owns the publication, copied to where
//! readers have it nearer.

pub mod publication;
pub mod sink;
pub mod store;
