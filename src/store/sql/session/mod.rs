//! Sessions of nodes, the shards that they own, and the limits that they share.

pub mod limits;
pub mod named_limits;
pub mod sessions;
pub mod shard_map;
