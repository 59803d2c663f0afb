//! What people may do to a node, and the façade by which they do it.

// Short, since hundreds of names are said with it.
extern crate windrow_api as api;

pub mod http;
pub mod service;
pub mod telemetry;
