//! Runs of a task, and the audit log.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A run: one period in which a node owned a shard.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// Number of the shard.
    pub shard: u32,
    /// Number of the run within the shard.
    pub run: u32,
    /// Fencing number of the run.
    pub epoch: u64,
    /// Node of the run; null if an older version started it and didn't record the node.
    pub node: Option<String>,
    /// Time when the run began.
    pub started_at: String,
    /// Time when it released the shard, or when the shard was taken from its dead node; null until then.
    pub ended_at: Option<String>,
    /// `released`, `done`, `stopped`, `recovering`, or `lost` together with its node.
    pub end_reason: Option<String>,
    /// Explanation of the end: the cause of a stop or recovery, or the node that took the shard over. Null if
    /// `end_reason` says everything.
    pub end_text: Option<String>,
    /// Watermark of the shard at the end; that of the last checkpoint while it runs.
    pub watermark: u64,
    /// Item counts of the shard at that point.
    pub counts: RunCounts,
}

/// Item counts of a shard at the end of a run; those of the last checkpoint while it runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RunCounts {
    /// Items settled with a success.
    pub succeeded: u64,
    /// Items with nothing to do.
    pub skipped: u64,
    /// Items that failed permanently.
    pub failed: u64,
    /// Retrying items outside the window.
    pub parked: u64,
}

/// Object that a change affected.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AuditObject {
    /// `task`, `schedule`, `limit`, `token`, `session`, `business`, `dataset`, `node` or `store`.
    pub kind: String,
    /// Name of the object: `t12` for a task, `business/name` for a schedule.
    pub name: String,
}

/// An entry of the audit log.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Entry number; grows from entry to entry.
    pub id: i64,
    /// Time of the change.
    pub at: String,
    /// Name of whoever made the change.
    pub actor: String,
    /// Role of a user behind a proxy, with its origin, such as `operator by group ops`; otherwise null.
    #[serde(default)]
    pub role: Option<String>,
    /// Origin of the change: `cli`, `api`, `ui`, `business` or `system`.
    pub source: String,
    /// Kind of change, e.g. `task.start`.
    pub action: String,
    /// Object of the change; null if an older version recorded none.
    pub object: Option<AuditObject>,
    /// Task of the change, if any.
    pub task: Option<String>,
    /// Business of the change, if any.
    pub business: Option<String>,
    /// Reason given for the change.
    pub reason: Option<String>,
    /// Value before the change.
    pub before: Value,
    /// Value after the change.
    pub after: Value,
    /// Id of the request that made the change.
    pub request_id: Option<String>,
}
