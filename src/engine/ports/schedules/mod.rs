//! Schedules and their fires: who keeps them, and who makes the tasks of what fires.

pub mod error;
pub mod maker;
pub mod store;
pub mod tries;
