//! Schedules and their fires: the store that keeps them, and the maker of their tasks.

pub mod error;
pub mod maker;
pub mod store;
pub mod tries;
