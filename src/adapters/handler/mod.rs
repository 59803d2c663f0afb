//! Handlers: HTTP callbacks, worker subprocesses, Rust traits.

pub mod command;
pub mod wire;
