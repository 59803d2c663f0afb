//! Handlers: HTTP callbacks, worker subprocesses, Rust traits.

pub mod classify;
pub mod egress;
pub mod http;
pub mod sign;
pub mod command;
pub mod wire;
