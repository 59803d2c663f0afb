//! The tables as sea-orm entities: rows in and out, no logic. Conversion to domain types is in `sql::words`.
#![allow(
    missing_docs,
    unreachable_pub,
    reason = "one line per column; the migration describes them"
)]

pub mod appended;
pub mod audit;
pub mod business;
pub mod business_day;
pub mod data_log;
pub mod data_log_drop;
pub mod dataset;
pub mod dataset_sink;
pub mod failure_group;
pub mod fire;
pub mod generation;
pub mod generation_key;
pub mod idempotency;
pub mod item;
pub mod limit_part;
pub mod meta;
pub mod named_limit;
pub mod outbox;
pub mod result_segment;
pub mod run;
pub mod schedule;
pub mod session;
pub mod shard;
pub mod shard_day;
pub mod shard_head;
pub mod shared_limit;
pub mod sign_in;
pub mod source;
pub mod source_index;
pub mod start_token;
pub mod task;
pub mod token;
pub mod upload;
pub mod upload_chunk;
