//! The runs of a task: its shards, its nodes, and how its handler does.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::page::SilentNode;

/// What is known of a task while it runs. Of nodes that can't be asked the task has what was saved last.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskLive {
    /// `live`; `partial` when some of its nodes can't be asked; `unreachable` when none can, and the numbers are null.
    pub state: String,
    /// When its runs were looked at. Without `live`, and of nodes that can't be asked, the numbers are those of the last
    /// checkpoint: after a take-over they may be lower than what was shown before.
    #[schema(format = DateTime)]
    pub as_of: Option<String>,
    /// The nodes that run it, and were asked.
    pub nodes: Vec<String>,
    /// Those that can't be asked.
    pub unreachable: Vec<SilentNode>,
    /// One past the highest index dispatched.
    pub high_water: Option<u64>,
    /// The windows' sizes now.
    pub window: Option<u64>,
    /// Items that may be in flight now.
    pub concurrency: Option<u64>,
    /// The 95th percentile of how long calls take.
    pub latency_p95_seconds: Option<f64>,
    /// Why nothing leaves, if so.
    pub stall: Option<String>,
}

/// Items that were in flight when a stop didn't wait for them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CutOff {
    /// How many.
    pub items: u64,
    /// The first of them.
    pub runs: Vec<ItemRun>,
}

/// Neighbouring items.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ItemRun {
    /// The first index.
    pub first: u64,
    /// How many.
    pub items: u32,
}

/// The handler doesn't answer. The task goes on by itself once it does; nothing is charged for it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HandlerDown {
    /// Of whom the last failure speaks: `unreachable`, `unavailable` or `unclear`. Null where only its node knows, and
    /// can't be asked.
    pub class: Option<String>,
    /// The code of the last failure.
    pub code: Option<String>,
    /// Its message.
    pub example: Option<String>,
    /// Since when.
    pub since: String,
    /// When it is tried next; null while it is being tried, or where that isn't known.
    pub next_probe: Option<String>,
    /// How often it was tried since.
    pub probes: u32,
    /// The nodes from which it is down.
    pub nodes: Vec<String>,
}

/// What last went wrong with calls of a task that runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LastError {
    /// Of whom it speaks: `answered`, `faulty`, `rejected`, `unreachable`, `unavailable` or `unclear`.
    pub class: String,
    /// The failure's code.
    pub code: String,
    /// The message of the latest one.
    pub example: String,
    /// An item that it happened to.
    pub index: u64,
    /// How many calls failed since then, with whichever code.
    pub count: u64,
    /// When calls began to fail.
    pub since: String,
    /// When it last happened.
    pub at: String,
}

/// One part of a task, that one node owns at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskShard {
    /// Its name, `t42.0`.
    pub shard: String,
    /// `idle`, `running`, `recovering`, `stopped` or `done`.
    pub state: String,
    /// The node that owns it; null where none does, and in lists.
    pub node: Option<String>,
    /// Its newest run; 0 before the first.
    pub run: u64,
    /// Its first index.
    pub first: u64,
    /// One past the last index that is to be done.
    pub end: u64,
    /// First index that is neither settled nor parked.
    pub watermark: u64,
    /// Items succeeded, skipped or failed.
    pub settled: u64,
    /// Its part of the task's rate, burst and concurrency; 0 once it is done.
    pub rate_share: f64,
    /// When it may run again, where it recovers.
    pub next_at: Option<String>,
}

/// All items of a task that people want skipped.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskSkips {
    /// Which, in order: those among them that were settled before stay as they were.
    pub indexes: String,
    /// How many these are.
    pub items: u64,
    /// The code of those that were skipped for it: `skipped_by_operator`.
    pub code: String,
}
