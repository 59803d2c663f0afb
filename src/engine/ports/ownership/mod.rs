//! Who owns what: sessions, leases, claims, limits that are shared, and the words between nodes.

pub mod gate;
pub mod hints;
pub mod lease_store;
pub mod limit_store;
pub mod peers;
pub mod run_store;
pub mod session_store;
