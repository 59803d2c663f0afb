//! Results that finished tasks publish: kept for readers by the store, prepared by the owner of the publication,
//! copied to where readers have them nearer.

pub mod publication;
pub mod sink;
pub mod store;
