//! Runs of a task, and the audit.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// One ownership of a shard.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Run {
    /// The shard's number.
    pub shard: u32,
    /// The run's number within the shard.
    pub run: u32,
    /// Its fencing number.
    pub epoch: u64,
    /// The node; null when an older program began it and has forgotten.
    pub node: Option<String>,
    /// When it began.
    pub started_at: String,
    /// When it gave the shard back, or when it was taken from its dead node; null until then.
    pub ended_at: Option<String>,
    /// `released`, `done`, `stopped`, `recovering`, or `lost` with its node.
    pub end_reason: Option<String>,
    /// Why, for people: what made it stop or recover, or who took the shard from its node; null where `end_reason` says
    /// it all.
    pub end_text: Option<String>,
    /// The shard's watermark at its end; that of the last checkpoint while it runs.
    pub watermark: u64,
    /// The shard's items then.
    pub counts: RunCounts,
}

/// Items of a shard when a run of it ended; as of the last checkpoint while it runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RunCounts {
    /// Settled well.
    pub succeeded: u64,
    /// Nothing to do.
    pub skipped: u64,
    /// Failed for good.
    pub failed: u64,
    /// Waiting outside the window.
    pub parked: u64,
}

/// The thing that a change touched.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AuditObject {
    /// `task`, `schedule`, `limit`, `token`, `session`, `business`, `dataset`, `node` or `store`.
    pub kind: String,
    /// Its name: `t12` of a task, `business/name` of a schedule.
    pub name: String,
}

/// One entry of the audit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Grows from entry to entry.
    pub id: i64,
    /// When.
    pub at: String,
    /// By whom.
    pub actor: String,
    /// `cli`, `api`, `ui`, `business` or `system`.
    pub source: String,
    /// What, such as `task.start`.
    pub action: String,
    /// The thing that was touched; null where an older program noted it without.
    pub object: Option<AuditObject>,
    /// The task, if it is about one.
    pub task: Option<String>,
    /// The business, if it is about one.
    pub business: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// What was.
    pub before: Value,
    /// What is.
    pub after: Value,
    /// The request that asked for it.
    pub request_id: Option<String>,
}
