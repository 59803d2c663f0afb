//! Sources: their indexes, and those that were sent.

pub mod appended;
pub mod indexes;
pub mod upload_use;
pub mod uploads;
