//! Lists for people: tasks, runs, audit. Keyset pages; counts are bounded. SQL only.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::access::audit_object::AuditObject;
use crate::ports::tasks::store::{AuditEntry, TaskView};
use windrow_core::ids::{Epoch, ItemIndex, RunNo, ShardId, TaskId, WallMs};
use windrow_core::task::lifecycle::Status;

/// Filter for tasks; `None` and empty values match all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Slug of the business.
    pub business: Option<String>,
    /// Exact name of the task.
    pub name: Option<String>,
    /// Any of these statuses.
    pub statuses: Vec<Status>,
    /// Label and value that the task has.
    pub label: Option<(String, String)>,
    /// Text contained in the name or the business's slug, ignoring the case of ASCII letters.
    pub text: Option<String>,
    /// Made at or after this time.
    pub created_after: Option<WallMs>,
    /// Made before this time.
    pub created_before: Option<WallMs>,
    /// Task of which it is a redrive.
    pub parent: Option<TaskId>,
    /// True lists the oldest first, false the newest.
    pub oldest_first: bool,
}

/// Page of tasks in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPage {
    /// At most as many tasks as requested; a page may be short although more follow.
    pub tasks: Vec<TaskView>,
    /// Task after which the next page begins; `None` on the last page.
    pub next: Option<TaskId>,
}

/// Record of one ownership of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// Shard that was owned.
    pub shard: ShardId,
    /// Number of the run within the shard.
    pub run: RunNo,
    /// Fencing number of the run.
    pub epoch: Epoch,
    /// Name of the node; `None` if its session was forgotten before the run began.
    pub node: Option<String>,
    /// Time at which it claimed the shard.
    pub started_at: WallMs,
    /// Time at which it gave the shard back, or another took it from its dead owner; `None` until then.
    pub ended_at: Option<WallMs>,
    /// Reason of the end: `released`, `done`, `stopped`, `recovering`, or `lost` with its node.
    pub end_reason: Option<String>,
    /// Text for people: what made it stop or recover, or who took the shard from its node.
    pub end_text: Option<String>,
    /// Saved watermark of the shard at its end, or at its start; the service shows the last checkpoint's while it
    /// runs.
    pub watermark: ItemIndex,
    /// Settled items of the shard then: succeeded, skipped, failed.
    pub settled: [u64; 3],
    /// Parked items of the shard then.
    pub parked: u64,
}

/// Filter for audit entries; `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Entries of this task.
    pub task: Option<TaskId>,
    /// Entries of this business itself.
    pub business: Option<String>,
    /// Entries by this actor.
    pub actor: Option<String>,
    /// Entries of this action, such as `task.start`.
    pub action: Option<String>,
    /// Entries of this object.
    pub object: Option<AuditObject>,
    /// Entries at or after this time.
    pub since: Option<WallMs>,
    /// Entries before this time.
    pub until: Option<WallMs>,
}

/// Audit entry with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Number that grows from entry to entry.
    pub id: i64,
    /// Thing that was touched; `None` for a kind that only a newer program knows.
    pub object: Option<AuditObject>,
    /// Task that it is about, if any.
    pub task: Option<TaskId>,
    /// Business that it is about, if any.
    pub business: Option<String>,
    /// Role of the author behind a proxy, with its origin.
    pub role: Option<String>,
    /// Request that asked for it.
    pub request_id: Option<String>,
    /// Content of the entry.
    pub entry: AuditEntry,
}

/// Store that finds the rows of lists.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait TaskList: Send + Sync {
    /// Returns a page of tasks after one, at most `limit`.
    async fn tasks(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<TaskPage, StoreError>;

    /// Returns the number of tasks of each status, counted up to `most` each.
    async fn status_counts(&self, most: u32) -> Result<Vec<(Status, u64)>, StoreError>;

    /// Returns the runs of a task, newest first, after one, at most `limit`.
    async fn runs(
        &self,
        task: TaskId,
        after: Option<(WallMs, ShardId, RunNo)>,
        limit: u32,
    ) -> Result<Vec<RunRecord>, StoreError>;

    /// Returns the record of one run.
    async fn run(&self, shard: ShardId, run: RunNo) -> Result<Option<RunRecord>, StoreError>;

    /// Returns audit entries, newest first, after (older than) the one of this time and id, at most `limit`.
    async fn audits(
        &self,
        filter: &AuditFilter,
        after: Option<(WallMs, i64)>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError>;
}
