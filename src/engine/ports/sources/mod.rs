//! Where items come from.

pub mod append;
pub mod provision;
pub mod resolver;
pub mod source;
pub mod store;
pub mod uploads;
