//! L2b: the supervision tree. The only place that knows ractor; it sees ports, never adapters.
//!
//! ```text
//! Supervisor             owns the node's capacity ledger; admits, starts, stops, restarts; answers the façade
//! ├─ Session             heartbeat row, knows when this session was fenced
//! ├─ Restorer            finds runnable shards without a live owner and offers them
//! ├─ LeaseKeeper         lease I/O for all shards in few round trips
//! ├─ CheckpointWriter    group-commits what launchers report
//! ├─ DataLogWriter       batches data log lines
//! ├─ Courier             delivers hook calls from the outbox
//! ├─ Steward             does what time makes due: deadlines, unanswered hooks, retention
//! └─ Launcher            one per owned shard
//!    ├─ LeaseRenewer     guards this shard's trust; its end ends the run
//!    └─ WindowExecutor   owns the lanes, which pace, dispatch and settle
//! ```
//!
//! No message per item: items move between the core and the handler inside the lanes (`lane`), which share one
//! `run_cell` with their executor. Parents know children, children never name parents: they end, or report through
//! a closure that they were given. Nothing blocks a mailbox on the network or the database.

pub mod context;
pub mod handle;
pub mod heartbeats;
pub mod new_ids;
pub mod policy;
pub mod pots;
pub mod run_view;
pub mod tree;

pub(crate) mod checkpoint_writer;
pub(crate) mod claiming;
pub(crate) mod courier;
pub(crate) mod courier_delivery;
pub(crate) mod data_log_writer;
mod dealer;
mod estates;
mod hearing;
pub(crate) mod lane;
pub(crate) mod lane_reply;
pub(crate) mod launcher;
mod launcher_claim;
pub(crate) mod launcher_run;
mod launcher_share;
pub(crate) mod launcher_start;
pub(crate) mod lease_keeper;
pub(crate) mod lease_renewer;
pub(crate) mod lines;
mod namesake;
pub(crate) mod reply_lines;
pub(crate) mod restorer;
pub(crate) mod row_feed;
pub(crate) mod run_cell;
mod run_directory;
pub(crate) mod session;
mod sight;
pub(crate) mod steward;
pub(crate) mod steward_work;
pub(crate) mod supervisor;
mod supervisor_bars;
pub(crate) mod supervisor_children;
pub(crate) mod supervisor_runs;
mod supervisor_standby;
pub(crate) mod supervisor_waits;
mod takeover;
pub(crate) mod window_executor;
