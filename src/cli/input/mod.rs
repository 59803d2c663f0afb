//! Parsing of user input: items, times, typing errors.

pub mod attributes;
pub mod choice;
pub(crate) mod flags;
pub(crate) mod front;
pub mod metering;
pub(crate) mod misread;
pub(crate) mod moment;
pub(crate) mod nearest;
pub(crate) mod settings;
