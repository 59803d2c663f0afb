//! Handlers: HTTP callbacks, worker subprocesses, Rust traits.

pub mod classify;
pub mod command;
mod deadline;
pub mod http;
pub mod origin;
pub mod request;
pub mod rust;
pub mod sign;
pub mod wire;
