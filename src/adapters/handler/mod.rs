//! Handlers: HTTP callbacks, worker subprocesses, Rust traits.

pub mod wire;
