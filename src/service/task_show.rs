//! Tasks as people see them: what is stored, with the live progress of what runs here; lists, runs, audit.

use std::time::Duration;

use super::{Service, ServiceError};
use crate::domain::counters::Counters;
use crate::domain::execution::Progress;
use crate::domain::ids::{ItemIndex, RunNo, ShardId, TaskId, WallMs};
use crate::domain::lifecycle::{ShardState, Status};
use crate::ports::task_list::{AuditFilter, AuditRow, RunRecord, TaskFilter};
use crate::ports::task_store::TaskView;

/// How often a waiting look asks the store. (Status is at most a second old on every surface.)
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A task with its live progress.
#[derive(Clone, Debug)]
pub struct TaskPicture {
    /// The task; where it runs here, with the counters and the low water of this moment.
    pub task: TaskView,
    /// What else is known of it while it runs here.
    pub live: Option<Live>,
}

/// The rate that is shown is that of this span: long enough for slow tasks, short enough to follow a change. Unit: seconds.
const RATE_SECONDS: u64 = 10;
/// Before, there is no telling. The sampler is never quite on time.
const RATE_KNOWN_AFTER: Duration = Duration::from_millis(900);

/// What is known of a task that runs here.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Items settled each second of the last ten; none before the first second is over.
    pub actual_rate: Option<f64>,
    /// One past the highest index dispatched.
    pub high_water: ItemIndex,
    /// The windows' sizes together.
    pub window: u64,
    /// The items that may be in flight.
    pub concurrency: u64,
    /// The slowest shard's 95th percentile of how long calls take.
    pub latency_p95: Option<Duration>,
    /// Why nothing leaves, if so.
    pub stall: Option<&'static str>,
}

/// A page of pictures.
#[derive(Clone, Debug)]
pub struct PicturePage {
    /// The tasks.
    pub tasks: Vec<TaskPicture>,
    /// After which task the next page begins; none on the last page.
    pub next: Option<TaskId>,
}

/// The task with what its runs here have counted in place of what is saved of their shards. What runs elsewhere, waits
/// or is done is as it is saved, so that the terms always add up to the total.
fn with_live(mut task: TaskView, live: &[(ShardId, Progress)]) -> TaskView {
    let mut shards = std::mem::take(&mut task.shards);
    for (id, progress) in live {
        // A run that is over is still here for a moment: what is saved is newer.
        let known = shards.iter_mut().find(|shard| shard.no == id.no && shard.state == ShardState::Running);
        if let Some(shard) = known {
            shard.counters = progress.counters;
            (shard.low_water, shard.high_water) = (progress.low_water, progress.high_water);
        }
    }
    let head = task.skip_first.0.min(task.total.0);
    let sum = shards.iter().fold(Counters::default(), |sum, shard| sum.plus(&shard.counters));
    let open = shards.iter().find(|shard| shard.state != ShardState::Done).or(shards.last());
    let low_water = open.map_or(task.low_water, |shard| shard.low_water);
    TaskView { counters: Counters { excluded: sum.excluded + head, ..sum }, low_water, shards, ..task }
}

impl Service {
    /// A task with its live progress.
    pub fn picture(&self, task: TaskView) -> TaskPicture {
        let live = self.supervisor().progress(task.id);
        if live.is_empty() || task.status.is_terminal() {
            return TaskPicture { task, live: None };
        }
        let task = with_live(task, &live);
        let shards: Vec<Progress> = live.into_iter().map(|(_, progress)| progress).collect();
        let live = Live {
            actual_rate: self.actual_rate(task.id),
            high_water: shards.iter().map(|shard| shard.high_water).max().unwrap_or_default(),
            window: shards.iter().map(|shard| u64::from(shard.window)).sum(),
            concurrency: shards.iter().map(|shard| u64::from(shard.concurrency)).sum(),
            latency_p95: shards.iter().filter_map(|shard| shard.latency_p95).max(),
            stall: shards.iter().find_map(|shard| shard.stall).map(|stall| stall.as_str()),
        };
        TaskPicture { task, live: Some(live) }
    }

    fn actual_rate(&self, id: TaskId) -> Option<f64> {
        let span = self.stats().span(id, RATE_SECONDS).filter(|span| span.running >= RATE_KNOWN_AFTER)?;
        Some(span.point.settled() as f64 / span.running.as_secs_f64())
    }

    /// A task, as soon as it has another version than `unless`, or when `patience` is over.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn await_change(
        &self,
        id: TaskId,
        unless: u64,
        patience: Duration,
    ) -> Result<TaskView, ServiceError> {
        let end = tokio::time::Instant::now() + patience;
        loop {
            let task = self.task(id).await?;
            if task.version != unless || tokio::time::Instant::now() >= end {
                return Ok(task);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// A page of tasks.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn list_tasks(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<PicturePage, ServiceError> {
        let page = self.parts.lists.tasks(filter, after, limit).await?;
        let tasks = page.tasks.into_iter().map(|task| self.picture(task)).collect();
        Ok(PicturePage { tasks, next: page.next })
    }

    /// How many tasks have each status, counted up to `most` each.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn count_tasks(&self, most: u32) -> Result<Vec<(Status, u64)>, ServiceError> {
        Ok(self.parts.lists.status_counts(most).await?)
    }

    /// The runs of a task, newest first.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn task_runs(
        &self,
        id: TaskId,
        after: Option<(WallMs, ShardId, RunNo)>,
        limit: u32,
    ) -> Result<Vec<RunRecord>, ServiceError> {
        Ok(self.parts.lists.runs(id, after, limit).await?)
    }

    /// One run.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn task_run(&self, shard: ShardId, run: RunNo) -> Result<RunRecord, ServiceError> {
        let found = self.parts.lists.run(shard, run).await?;
        found.ok_or_else(|| ServiceError::NotFound { what: "run", name: format!("{shard}.{}", run.0) })
    }

    /// Audit entries, newest first.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn list_audit(
        &self,
        filter: &AuditFilter,
        after: Option<i64>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, ServiceError> {
        Ok(self.parts.lists.audits(filter, after, limit).await?)
    }
}
