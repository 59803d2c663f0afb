//! L2a: implements the ports.
//!
//! | port | adapters |
//! |---|---|
//! | `clock` | `clock` |
//! | `handler` | `handler::{http, command, rust}` |
//! | `source` | `source::{range, inline, csv, ndjson}` |
//! | `task_store`, `run_store`, `session_store`, `source_store`, `data_log` | `sql`, `memory` |
//! | `lease_store`, `hints` | `redis`, `memory` |
//! | `business_store`, `token_store` | `sql` |
//! | `vault` | `vault` |
//! | `hook` | `handler::http` |
//! | `shard_map` | `sql` |
//! | `peers` | `peers` |

pub mod clock;
pub mod handler;
pub mod memory;
pub mod peers;
pub mod redis;
pub mod source;
pub mod sql;
pub mod start_token;
pub mod state_dir;
pub mod vault;
