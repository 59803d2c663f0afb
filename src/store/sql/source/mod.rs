//! Sources of items: file indexes, uploads and appended blocks.

pub mod appended;
pub mod indexes;
pub mod upload_use;
pub mod uploads;
