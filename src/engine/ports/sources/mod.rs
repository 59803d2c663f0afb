//! Sources of items, and the handlers that work on them.

pub mod append;
pub mod provision;
pub mod resolver;
pub mod source;
pub mod store;
pub mod uploads;
