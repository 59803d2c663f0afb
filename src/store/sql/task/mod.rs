//! Tasks: their lives, the commands of people, and ways to find them.

pub mod command;
pub mod create;
pub mod delete;
pub mod handover;
pub mod life;
pub mod list;
pub mod record;
pub(crate) mod spec;
pub mod tasks;
pub mod view;
pub mod wait;
