//! Ownership: sessions, leases, claims, shared limits, and the messages between nodes.

pub mod found_store;
pub mod gate;
pub mod hints;
pub mod lease_store;
pub mod limit_store;
pub mod peers;
pub mod run_store;
pub mod session_store;
