//! Handlers: HTTP callbacks, worker subprocesses, Rust traits.

pub mod command;
pub mod rust;
pub mod wire;
