//! Lists for people: tasks, runs, audit. Keyset pages; nothing is counted beyond a bound. SQL only.

use async_trait::async_trait;

use crate::ports::StoreError;
use crate::ports::access::audit_object::AuditObject;
use crate::ports::tasks::store::{AuditEntry, TaskView};
use windrow_core::ids::{Epoch, ItemIndex, RunNo, ShardId, TaskId, WallMs};
use windrow_core::task::lifecycle::Status;

/// Which tasks; what is none or empty doesn't narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// The business's slug.
    pub business: Option<String>,
    /// The name.
    pub name: Option<String>,
    /// One of these.
    pub statuses: Vec<Status>,
    /// Has this label with this value.
    pub label: Option<(String, String)>,
    /// The name or the business's slug contains this, whatever the case of ASCII letters.
    pub text: Option<String>,
    /// Made at or after.
    pub created_after: Option<WallMs>,
    /// Made before.
    pub created_before: Option<WallMs>,
    /// A redrive of this task.
    pub parent: Option<TaskId>,
    /// The oldest first; else the newest.
    pub oldest_first: bool,
}

/// A page of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPage {
    /// At most as many as were asked for; a page may be short although more follow.
    pub tasks: Vec<TaskView>,
    /// After which task the next page begins; none on the last page.
    pub next: Option<TaskId>,
}

/// One ownership of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// The shard.
    pub shard: ShardId,
    /// Its number within the shard.
    pub run: RunNo,
    /// Its fencing number.
    pub epoch: Epoch,
    /// Name of the node; none when its session was forgotten before the run began.
    pub node: Option<String>,
    /// When it claimed the shard.
    pub started_at: WallMs,
    /// When it gave it back, or when another took it from its dead owner; none until then.
    pub ended_at: Option<WallMs>,
    /// `released`, `done`, `stopped`, `recovering`, or `lost` with its node.
    pub end_reason: Option<String>,
    /// Why, for people: what made it stop or recover, or who took the shard from its node.
    pub end_text: Option<String>,
    /// The shard's saved watermark when it ended, or when it began; the service shows the last checkpoint's while it runs.
    pub watermark: ItemIndex,
    /// The shard's settled items then: succeeded, skipped, failed.
    pub settled: [u64; 3],
    /// The shard's parked items then.
    pub parked: u64,
}

/// Which audit entries; what is none doesn't narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of this task.
    pub task: Option<TaskId>,
    /// Of this business itself.
    pub business: Option<String>,
    /// By this actor.
    pub actor: Option<String>,
    /// This action, such as `task.start`.
    pub action: Option<String>,
    /// Of this object.
    pub object: Option<AuditObject>,
    /// At or after.
    pub since: Option<WallMs>,
    /// Before.
    pub until: Option<WallMs>,
}

/// An audit entry with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Grows from entry to entry.
    pub id: i64,
    /// Thing that was touched; none for a kind that only a newer program knows.
    pub object: Option<AuditObject>,
    /// The task, if it is about one.
    pub task: Option<TaskId>,
    /// The business, if it is about one.
    pub business: Option<String>,
    /// The request that asked for it.
    pub request_id: Option<String>,
    /// What happened.
    pub entry: AuditEntry,
}

/// Finds what lists show.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait TaskList: Send + Sync {
    /// A page of tasks after one, at most `limit`.
    async fn tasks(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<TaskPage, StoreError>;

    /// How many tasks have each status, counted up to `most` each.
    async fn status_counts(&self, most: u32) -> Result<Vec<(Status, u64)>, StoreError>;

    /// The runs of a task, newest first, after one, at most `limit`.
    async fn runs(
        &self,
        task: TaskId,
        after: Option<(WallMs, ShardId, RunNo)>,
        limit: u32,
    ) -> Result<Vec<RunRecord>, StoreError>;

    /// One run.
    async fn run(&self, shard: ShardId, run: RunNo) -> Result<Option<RunRecord>, StoreError>;

    /// Audit entries, newest first, after (older than) the one of this time and id, at most `limit`.
    async fn audits(
        &self,
        filter: &AuditFilter,
        after: Option<(WallMs, i64)>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError>;
}
