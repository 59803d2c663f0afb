//! Handlers: HTTP callbacks, worker subprocesses, Rust traits.
