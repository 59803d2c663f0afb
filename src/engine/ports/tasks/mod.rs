//! Requests to the store about tasks: made, commanded, listed, shown, kept up.

pub mod command;
pub mod create;
pub mod failure_list;
pub mod list;
pub mod report_store;
pub mod result_bytes;
pub mod results;
pub mod shard_map;
pub mod statistics;
pub mod store;
pub mod upkeep;
pub mod view;
