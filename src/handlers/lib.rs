//! Handlers: HTTP callbacks, worker subprocesses, one process per item, Rust traits.

pub mod answer;
pub mod classify;
mod closure;
pub mod command;
mod deadline;
pub mod exec;
pub mod http;
pub mod origin;
pub mod reduce;
pub mod request;
pub mod rust;
mod scrub;
pub mod sign;
mod usage;
pub mod wire;
