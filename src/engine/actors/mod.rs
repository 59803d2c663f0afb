//! Supervision tree. This is the only place that knows ractor; it sees ports, never their implementations.
//!
//! ```text
//! Supervisor             owns the node's capacity ledger; admits, starts, stops, restarts; answers the API server
//! ├─ Session             heartbeat row, knows when this session was fenced
//! ├─ Restorer            finds runnable shards without a live owner and offers them
//! ├─ LeaseKeeper         lease I/O for all shards in few round trips
//! ├─ CheckpointWriter    group-commits what launchers report
//! ├─ DataLogWriter       batches data log lines
//! ├─ OutboxDispatcher    delivers hook calls from the outbox
//! ├─ Maintenance         does what time makes due: deadlines, unanswered hooks, retention
//! └─ Launcher            one per owned shard
//!    ├─ LeaseRenewer     keeps this shard's lease valid; its end ends the run
//!    └─ WindowExecutor   owns the lanes, which pace, dispatch and settle
//! ```
//!
//! No message per item: items move between the core and the handler inside the lanes (`lane`), which share one
//! `run_cell` with their executor. Parents know children, children never name parents: they end, or report through a
//! closure given to them. Nothing blocks a mailbox on the network or the database.

pub mod executor;
pub mod launcher;
pub mod membership;
pub mod runtime;
pub mod supervisor;
pub mod upkeep;
pub mod writers;
