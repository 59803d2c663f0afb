//! Work that becomes due with time: deadlines, unanswered hooks, tasks that no node serves, and expired rows.

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::handler::elsewhere::Reaching;
use windrow_core::ids::{SessionId, ShardId, TaskId, WallMs};

/// Maximum number of rows that one transaction of a sweep removes.
pub const SWEEP_MAX: u64 = 2_000;

/// Kind of rows that a sweep removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Remembered answers of repeated requests.
    Answers,
    /// Hook calls that were delivered.
    Delivered,
    /// Hook calls that failed for good.
    GivenUp,
    /// Fenced sessions that no shard names, by their start.
    Sessions,
    /// Rows of failed items of ended tasks, by the task's end. They stay while a redrive of the task has not ended.
    Failures,
    /// Results of ended tasks, by the task's end; not those that a generation owns.
    Results,
    /// Results of generations that are no longer kept, at any time.
    Generations,
    /// Bytes of results outside the database that no row names, by the time they were written.
    ResultBytes,
    /// Totals of deleted tasks, by their day.
    Statistics,
    /// Rows of appended blocks in which every item is settled and none failed for good, by the time they were
    /// appended; the keys that they were appended with stay.
    Appended,
    /// Keys of appended blocks, by the time of their first use.
    AppendKeys,
    /// Half-written files in the archive that nobody is still writing, by the time of their last write.
    ArchiveHalves,
    /// Limits that autopilots found, by the time they were told.
    Found,
    /// Browser sign-ins, by the time they end.
    SignIns,
    /// Audit entries, by their time; those of a task stay as long as the task.
    Audit,
}

impl Sweep {
    /// All sweeps, in the order of a round.
    pub const ALL: [Sweep; 15] = [
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
        Sweep::Found,
        Sweep::SignIns,
        Sweep::Audit,
    ];
}

/// Store that finds due work and removes expired rows.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait UpkeepStore: Send + Sync {
    /// Returns tasks that wait or run although their deadline has passed.
    async fn past_deadline(&self, now: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError>;

    /// Returns tasks, with their current start, whose business has not answered in time.
    async fn unanswered(&self, now: WallMs, limit: u32) -> Result<Vec<(TaskId, u32)>, StoreError>;

    /// True if a waiting task's `start_at` lies after `after` and not after `upto`.
    async fn is_start_due(&self, after: WallMs, upto: WallMs) -> Result<bool, StoreError>;

    /// Returns tasks that wait although no node will claim them, since no shard of them was active, or set to wait,
    /// at or after `before`; without those that have this reason already.
    async fn dormant(&self, before: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError>;

    /// Returns tasks that wait, could run now, are not dormant, and belong to none of these pools, each with its
    /// pool.
    async fn unserved(
        &self,
        served: &[String],
        now: WallMs,
        limit: u32,
    ) -> Result<Vec<(TaskId, String)>, StoreError>;

    /// Returns shards whose rows name a session that is fenced, or one of `silent`, each with that session.
    async fn orphans(
        &self,
        silent: &[SessionId],
        limit: u32,
    ) -> Result<Vec<(ShardId, SessionId)>, StoreError>;

    /// Returns running shards of a business whose handler is not down and that another session than `besides` runs.
    async fn reaching(
        &self,
        business: &str,
        besides: SessionId,
        limit: u32,
    ) -> Result<Vec<Reaching>, StoreError>;

    /// Takes shards from their session if it is fenced or missing, and returns their tasks: these wait again, or stop
    /// if they were commanded to. No node may be left to claim them, and nothing runs without a live owner. A claim
    /// without progress still counts as one. With leases the caller holds those of the shards (a run may live on its
    /// lease although its session is fenced).
    async fn disown(&self, shards: &[ShardId], now: WallMs) -> Result<Vec<TaskId>, StoreError>;

    /// Removes rows older than `before`, at most [`SWEEP_MAX`], and returns their number; repeat while it is that
    /// many.
    async fn sweep(&self, what: Sweep, before: WallMs) -> Result<u64, StoreError>;

    /// Returns tasks that ended before a time, oldest first.
    async fn ended_before(&self, before: WallMs, limit: u32) -> Result<Vec<TaskId>, StoreError>;
}
