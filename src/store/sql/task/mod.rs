//! Tasks: their lives, what people do to them, and how they are found.

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
