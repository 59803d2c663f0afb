//! Store over SQL, with leases and hints over Redis.
//!
//! | port | here |
//! |---|---|
//! | `task_store`, `run_store`, `session_store`, `source_store`, `data_log`, `shard_map` and all that is kept | `sql` |
//! | `lease_store`, `hints` | `redis` |

mod folder;
mod packed;
#[cfg(feature = "redis")]
pub mod redis;
pub mod sql;
