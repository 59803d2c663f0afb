//! Handling of items, and the records made of it.

pub mod alerts;
pub mod data_log;
pub mod dropped_lines;
pub mod handler;
pub mod hook;
pub mod meters;
pub mod outbox;
pub mod told;
mod unsaved;
