//! What time makes due: deadlines, hooks that were not answered, tasks that no node serves, and what isn't kept longer.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::handler::elsewhere::Reaching;
use windrow_core::ids::{SessionId, ShardId, TaskId, WallMs};

/// Rows that one transaction of a sweep removes, at most.
pub const SWEEP_MAX: u64 = 2_000;

/// What a sweep removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Remembered answers of repeated requests.
    Answers,
    /// Hook calls that were delivered.
    Delivered,
    /// Hook calls that were given up.
    GivenUp,
    /// Sessions that are fenced and that no shard names, by their start.
    Sessions,
    /// Rows of failed items of tasks that ended, by their end. Not while a redrive of the task has not ended.
    Failures,
    /// Results of tasks that ended, by their end; not those that a generation owns.
    Results,
    /// Results of generations that are no longer kept, whenever.
    Generations,
    /// Bytes of results beside the database that no row names, by when they were written.
    ResultBytes,
    /// What deleted tasks did, by its day.
    Statistics,
    /// Rows of appended blocks in which every item is settled and none was failed, by when they were appended; the keys
    /// that they were appended with stay.
    Appended,
    /// Those keys, by when they were used first.
    AppendKeys,
    /// Halves of files that nobody goes on writing, among the tasks that are archived, by when they were written last.
    ArchiveHalves,
    /// Sign-ins of browsers, by when they are over.
    SignIns,
    /// Entries of the audit, by their time; those of a task stay as long as it does.
    Audit,
}

impl Sweep {
    /// All of them.
    pub const ALL: [Sweep; 14] = [
        Sweep::Answers,
        Sweep::Delivered,
        Sweep::GivenUp,
        Sweep::Sessions,
        Sweep::Failures,
        Sweep::Results,
        Sweep::Generations,
        Sweep::ResultBytes,
        Sweep::Statistics,
        Sweep::Appended,
        Sweep::AppendKeys,
        Sweep::ArchiveHalves,
        Sweep::SignIns,
        Sweep::Audit,
    ];
}

/// Finds what is due and removes what isn't kept.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait UpkeepStore: Send + Sync {
    /// Tasks that wait or run although their deadline has passed.
    async fn past_deadline(&self, now: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError>;

    /// Tasks, with their present start, whose business has not answered in time.
    async fn unanswered(&self, now: WallMs, limit: u32) -> Result<Vec<(TaskId, u32)>, StoreError>;

    /// Whether a waiting task's `start_at` lies after `after` and not after `upto`.
    async fn is_start_due(&self, after: WallMs, upto: WallMs) -> Result<bool, StoreError>;

    /// Tasks that wait although nobody will claim them, since no shard of them was active, or was told to wait, at or
    /// after `before`; without those that say so already.
    async fn dormant(&self, before: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError>;

    /// Tasks that wait, could run now, are not dormant, and belong to none of these pools, each with its pool.
    async fn unserved(
        &self,
        served: &[String],
        now: WallMs,
        limit: u32,
    ) -> Result<Vec<(TaskId, String)>, StoreError>;

    /// Shards that the rows give to a session that is fenced, or to one of `silent`, each with that session.
    async fn orphans(
        &self,
        silent: &[SessionId],
        limit: u32,
    ) -> Result<Vec<(ShardId, SessionId)>, StoreError>;

    /// Running shards of a business whose handler is not down, that another session than `besides` runs.
    async fn reaching(
        &self,
        business: &str,
        besides: SessionId,
        limit: u32,
    ) -> Result<Vec<Reaching>, StoreError>;

    /// Takes those of these shards whose session is fenced or missing from it, and says of which tasks: they wait again,
    /// or are stopped as they were told. Nobody may be there who claims them, and nothing runs without a live owner. A
    /// claim without progress counts as one all the same. Where there are leases the caller holds the shards' (a run may
    /// live on its lease although its session is fenced).
    async fn disown(&self, shards: &[ShardId], now: WallMs) -> Result<Vec<TaskId>, StoreError>;

    /// Removes what is older than `before`, at most [`SWEEP_MAX`] rows, and says how many it were; ask again while it
    /// removed so many.
    async fn sweep(&self, what: Sweep, before: WallMs) -> Result<u64, StoreError>;

    /// Tasks that ended before a time, the oldest first.
    async fn ended_before(&self, before: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError>;
}
