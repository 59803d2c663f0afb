//! Operations that people perform on a node, and the API server that exposes them.

// Short alias, since hundreds of names are prefixed with it.
extern crate windrow_api as api;

pub mod http;
pub mod service;
pub mod telemetry;
