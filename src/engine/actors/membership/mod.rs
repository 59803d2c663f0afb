//! Membership: the live nodes, their work without one another, and each node's share of the limits that all share.

pub mod allocator;
pub mod heartbeats;
pub mod hint_listener;
pub mod local_buckets;
pub mod orphans;
pub mod restorer;
pub mod seen_revision;
pub mod session;
pub mod unique_name;
