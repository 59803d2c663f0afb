//! What people type, read: items, times, slips.

pub mod choice;
pub(crate) mod misread;
pub(crate) mod moment;
