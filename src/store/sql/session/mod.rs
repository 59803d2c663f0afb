//! Sessions of nodes, with the shards they own and the limits they share.

pub mod found;
pub mod limits;
pub mod named_limits;
pub mod sessions;
pub mod shard_map;
