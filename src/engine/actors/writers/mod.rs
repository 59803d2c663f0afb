//! Writers for all shards of a node, in few round trips.

pub mod checkpoint_writer;
pub mod data_log_writer;
pub mod lease_keeper;
