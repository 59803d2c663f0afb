//! Where items come from.

pub mod desk;
pub mod provision;
pub mod source;
pub mod store;
pub mod uploads;
