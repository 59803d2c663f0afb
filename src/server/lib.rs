//! What people may do to a node, and the façade by which they do it.

pub mod http;
pub mod service;
pub mod telemetry;
