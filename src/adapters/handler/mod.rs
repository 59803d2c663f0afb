//! Handlers: HTTP callbacks, worker subprocesses, Rust traits.

pub mod classify;
pub mod egress;
pub mod sign;
pub mod wire;
