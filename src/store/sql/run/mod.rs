//! Runs of shards: claims, checkpoints, ends, and their retrying and failed items.

pub mod checkpoint;
pub mod claim;
mod claim_batch;
pub mod close;
pub mod history;
pub mod items;
mod progress;
pub mod result_place;
pub mod results;
pub mod runnable;
pub mod runs;
