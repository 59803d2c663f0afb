//! Live state of a task: shards, nodes, and handler.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::page::SilentNode;

/// State of a task while it runs. For nodes that can't be asked, it falls back to the last saved values.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskLive {
    /// `live`; `partial` if some of its nodes can't be asked; `unreachable` if none can, and the numbers are null.
    pub state: String,
    /// Time when the runs were read. Without `live`, and for nodes that can't be asked, the numbers are those of the
    /// last checkpoint; after a takeover they may be lower than those shown before.
    #[schema(format = DateTime)]
    pub as_of: Option<String>,
    /// Nodes that run it and were asked.
    pub nodes: Vec<String>,
    /// Nodes that can't be asked.
    pub unreachable: Vec<SilentNode>,
    /// Highest dispatched index plus one.
    pub high_water: Option<u64>,
    /// Current window size, summed over shards.
    pub window: Option<u64>,
    /// Current limit on items in flight.
    pub concurrency: Option<u64>,
    /// 95th percentile of the call duration, in seconds.
    pub latency_p95_seconds: Option<f64>,
    /// Reason why nothing is dispatched, if so.
    pub stall: Option<String>,
    /// Limits that the autopilot has found; null without one.
    #[serde(default)]
    pub autopilot: Option<TaskAutopilot>,
}

/// Limits that the autopilot has found, and the measurements behind them. Of several runs, limits add up, and of the
/// rest the worse counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskAutopilot {
    /// Calls in flight that are allowed.
    pub in_flight: u32,
    /// Calls in flight above which the service refuses, if it refused some for that.
    pub refused_above: Option<u32>,
    /// Calls per second that are allowed; null if the service refused none.
    pub rate: Option<f64>,
    /// Share of the last few hundred calls that were refused, from 0 to 1.
    pub refused_share: f64,
    /// Smoothed duration of a call, in seconds.
    pub latency_seconds: Option<f64>,
    /// Smoothed duration of a call at its best, in seconds.
    pub best_latency_seconds: Option<f64>,
    /// Growth of the call duration with calls in flight: 1 % more of them makes calls this many percent slower. 0 is
    /// room, 1 is a queue, 2 is harm.
    pub slope: Option<f64>,
    /// Factor by which calls are slower than at their best; 1 if they aren't.
    pub slower: f64,
    /// Set while one call at a time is sent until the service takes calls again.
    pub scouting: Option<TaskScouting>,
    /// Reason for which calls are held back: `starting`, `slower`, `refused_above_rate`, `refused_in_flight`,
    /// `scouting` or `window_used`; null if none is.
    pub why: Option<String>,
    /// Seconds until that ends, if it ends by itself.
    pub held_for_seconds: Option<f64>,
}

/// One call at a time until the service takes calls again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskScouting {
    /// Seconds since the refusal that began it.
    pub since_seconds: f64,
    /// Seconds until the next call; 0 if it is due or in flight.
    pub next_seconds: f64,
    /// True if the service named that time and is believed.
    pub named: bool,
}

/// Items in flight when a stop didn't wait for them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CutOff {
    /// Number of these items.
    pub items: u64,
    /// First ranges of these items.
    pub runs: Vec<ItemRun>,
}

/// A range of consecutive items.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ItemRun {
    /// First index of the range.
    pub first: u64,
    /// Number of items in the range.
    pub items: u32,
}

/// Set while the handler is down. The task continues automatically once the handler responds; meanwhile no item is
/// charged an attempt.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HandlerDown {
    /// Class of the last failure: `unreachable`, `unavailable` or `unclear`. Null if only the node knows it and can't
    /// be asked.
    pub class: Option<String>,
    /// Code of the last failure.
    pub code: Option<String>,
    /// Message of the last failure.
    pub example: Option<String>,
    /// Time since which it is down.
    pub since: String,
    /// Time of the next probe; null during a probe or if unknown.
    pub next_probe: Option<String>,
    /// Number of probes since then.
    pub probes: u32,
    /// Nodes that can't reach the handler.
    pub nodes: Vec<String>,
}

/// Latest error of calls of a running task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LastError {
    /// Class of the failure: `answered`, `faulty`, `rejected`, `unreachable`, `unavailable` or `unclear`.
    pub class: String,
    /// Code of the failure.
    pub code: String,
    /// Message of the latest failure.
    pub example: String,
    /// Index of an affected item.
    pub index: u64,
    /// Number of calls that failed since `since`, with any code.
    pub count: u64,
    /// Time when calls began to fail.
    pub since: String,
    /// Time of the latest failure.
    pub at: String,
}

/// A shard of a task, owned by at most one node at a time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskShard {
    /// Name of the shard, e.g. `t42.0`.
    pub shard: String,
    /// `idle`, `running`, `recovering`, `stopped` or `done`.
    pub state: String,
    /// Node that owns it; null if none does, and in lists.
    pub node: Option<String>,
    /// Latest run; 0 before the first.
    pub run: u64,
    /// First index of the shard.
    pub first: u64,
    /// Last index to be done, plus one.
    pub end: u64,
    /// Watermark: the first index that is neither settled nor parked.
    pub watermark: u64,
    /// Number of items succeeded, skipped or failed.
    pub settled: u64,
    /// Share of the task's rate, burst and concurrency; 0 once the shard is done.
    pub rate_share: f64,
    /// Time of the next attempt to run, while recovering.
    pub next_at: Option<String>,
}

/// All items of a task that an operator asked to skip.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskSkips {
    /// Indexes, in order. Items settled before the request stay as they were.
    pub indexes: String,
    /// Number of these items.
    pub items: u64,
    /// Code of the items skipped on request: `skipped_by_operator`.
    pub code: String,
}
