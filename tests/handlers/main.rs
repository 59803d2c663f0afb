//! Handlers against real counterparts: worker processes, HTTP servers, Rust code.

mod command_answers;
mod command_endings;
mod command_faults;
mod command_hello;
mod command_support;
mod rust_handler;
