//! Tasks as shown to people: stored data combined with live progress from all nodes; lists and runs.

pub mod costs;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::service::ServiceError;
use crate::service::failures::net::NetResult;
use crate::service::stats::live::Lives;
use crate::service::tasks::Tasks;
use windrow_core::execution::MeterPicture;
use windrow_core::handler::sight::HandlerSight;
use windrow_core::ids::{ItemCount, ItemIndex, RunNo, ShardId, TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::HandlerState;
use windrow_core::pilot::Picture;
use windrow_core::stats::completion::{self, Completion};
use windrow_core::stats::speed::Speed;
use windrow_core::task::lifecycle::{ShardState, Status};
use windrow_core::task::supply::Intake;
use windrow_engine::ports::handling::handler::Workers;
use windrow_engine::ports::ownership::peers::Unreachable;
use windrow_engine::ports::tasks::list::{RunRecord, TaskFilter};
use windrow_engine::ports::tasks::shard_map::StoredShard;
use windrow_engine::ports::tasks::store::{ShardLife, TaskView};

/// Interval at which a waiting request polls the store. Status is at most one second old on every surface.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Most tasks whose workers are counted: each node is asked about all of them at once.
const WORKERS_OF_TASKS_MAX: u32 = 500;

/// Task with its live progress.
#[derive(Clone, Debug)]
pub struct TaskPicture {
    /// Task; while it runs, with the current counters and watermark.
    pub task: TaskView,
    /// Additional live data while the task runs.
    pub live: Option<Live>,
    /// Nodes that run a part of the task but can't be reached; their parts show saved data.
    pub silent: Vec<Unreachable>,
    /// True if the store didn't tell where the task runs, so that saved data is shown.
    pub is_blind: bool,
    /// Handler state while the task runs.
    pub handler: HandlerSight,
    /// Use of each meter, as far as it was read.
    pub costs: Vec<MeterPicture>,
}

/// Live data of a running task.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Time of the data; parts on unreachable nodes are as old as their last checkpoint.
    pub as_of: WallMs,
    /// Actual rates; `None` during the first second, or if a part can't be reached.
    pub speed: Option<Speed>,
    /// End of the dispatched indexes, exclusive.
    pub high_water: ItemIndex,
    /// Sum of the windows' sizes.
    pub window: u64,
    /// Maximum number of items in flight.
    pub concurrency: u64,
    /// 95th percentile of the call duration, on the slowest shard.
    pub latency_p95: Option<Duration>,
    /// Reason why nothing is dispatched, if it isn't.
    pub stall: Option<&'static str>,
    /// Limits that the autopilot has found, of all runs.
    pub autopilot: Option<Picture>,
    /// Nodes that run the task and could be reached.
    pub nodes: Vec<String>,
}

impl TaskPicture {
    /// Returns the completed share of the items.
    pub fn completion(&self) -> Completion {
        Completion::of(&self.task.counters, self.task.total)
    }

    /// Returns the attempts per second; zero while the task isn't running, `None` if unknown.
    pub fn actual_rate(&self) -> Option<f64> {
        match &self.live {
            Some(live) => live.speed.map(|speed| speed.sent),
            None => (self.task.status != Status::Running).then_some(0.0),
        }
    }

    /// Returns the time left at the current rate; `None` while the task isn't running, or if items may still be
    /// added.
    pub fn eta(&self) -> Option<Duration> {
        let is_open = self.task.intake == Some(Intake::Open);
        let runs = self.task.status == Status::Running && !is_open;
        let speed = self.live.as_ref().filter(|_| runs)?.speed?;
        completion::eta(
            &self.task.counters,
            self.task.total,
            self.task.tuning.rate,
            speed.settled,
        )
    }
}

/// Page of tasks with live progress.
#[derive(Clone, Debug)]
pub struct PicturePage {
    /// Tasks shown on the page.
    pub tasks: Vec<TaskPicture>,
    /// Last task of this page, if another page follows.
    pub next: Option<TaskId>,
}

/// Combines live data with saved data. The terms add up to the total only if the shards cover the whole task.
fn drawn(task: TaskView, mut lives: Lives, now: WallMs) -> TaskPicture {
    lives.silent.dedup();
    let mut picture = TaskPicture {
        handler: handler(&task, &lives, now),
        silent: std::mem::take(&mut lives.silent),
        is_blind: lives.is_blind,
        live: None,
        costs: costs::live(&lives),
        task,
    };
    let task = &mut picture.task;
    let head = task.spec.skip_first.0.min(task.total.0);
    let is_saved = |stored: &&StoredShard| lives.shards.iter().all(|(_, live)| live.shard != stored.shard);
    let saved: Vec<&ShardLife> = lives
        .stored
        .iter()
        .filter(is_saved)
        .map(|stored| &stored.life)
        .collect();
    let live = || lives.shards.iter().map(|(_, live)| live);
    let length = |shard: &&ShardLife| shard.range_end.0.saturating_sub(shard.first.0);
    let covered = live().map(|live| live.total.0).sum::<u64>() + saved.iter().map(length).sum::<u64>();
    if task.intake.is_some() {
        // An open task has one shard, whose run may know more items than were read, or not yet the latest ones.
        task.life.total = task.total.max(ItemCount(covered));
    } else if covered + head != task.total.0 {
        return picture;
    }
    if lives.shards.is_empty() || task.status.is_terminal() {
        return picture;
    }
    let counters = live().map(|live| live.counters);
    let counters = counters.chain(saved.iter().map(|shard| shard.counted()));
    let sum = counters.fold(Counters::default(), |sum, part| sum.plus(&part));
    task.counters = Counters {
        excluded: sum.excluded + head,
        ..sum
    };
    let open = saved.iter().filter(|shard| shard.state != ShardState::Done);
    let watermarks = live().map(|live| live.watermark);
    let watermark = watermarks.chain(open.map(|shard| shard.watermark)).min();
    task.watermark = watermark.unwrap_or(task.watermark);
    let saved_to = saved.iter().map(|shard| shard.high_water).max();
    picture.live = Some(together(lives, saved_to, picture.silent.is_empty(), now));
    picture
}

/// Combines the live data of all runs; the saved data of the other shards extends to `saved_to`.
fn together(lives: Lives, saved_to: Option<ItemIndex>, is_whole: bool, now: WallMs) -> Live {
    let mut nodes: Vec<String> = lives.shards.iter().map(|(node, _)| node.clone()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let live = || lives.shards.iter().map(|(_, live)| live);
    let high_water = live().map(|live| live.high_water).chain(saved_to).max();
    Live {
        as_of: now,
        speed: whole_speed(&lives.speeds).filter(|_| is_whole),
        high_water: high_water.unwrap_or_default(),
        window: live().map(|live| u64::from(live.window)).sum(),
        concurrency: live().map(|live| u64::from(live.concurrency)).sum(),
        latency_p95: live().filter_map(|live| live.latency_p95).max(),
        stall: live().find_map(|live| live.stall).map(|stall| stall.as_str()),
        autopilot: live().filter_map(|live| live.autopilot).reduce(Picture::join),
        nodes,
    }
}

/// Returns the rates of all nodes together; `None` if any is missing.
fn whole_speed(speeds: &[Option<Speed>]) -> Option<Speed> {
    let mut parts = speeds.iter().copied();
    parts.try_fold(Speed::default(), |sum, part| Some(sum.plus(part?)))
}

/// Combines the handler states of the runs. For a shard whose owner can't be reached, an outage is taken from its
/// last checkpoint.
fn handler(task: &TaskView, lives: &Lives, now: WallMs) -> HandlerSight {
    if task.status != Status::Running {
        return HandlerSight::default();
    }
    let live = lives
        .shards
        .iter()
        .map(|(node, live)| (node.clone(), live.handler.clone()));
    let is_dark = |stored: &&StoredShard| {
        stored.life.session.is_some() && lives.shards.iter().all(|(_, live)| live.shard != stored.shard)
    };
    let dark = lives.stored.iter().filter(is_dark).filter_map(|stored| {
        let state = HandlerState {
            outage: Some(stored.outage?),
            ..HandlerState::default()
        };
        Some((owner(task, stored.shard), state))
    });
    let runs: Vec<(String, HandlerState)> = live.chain(dark).collect();
    HandlerSight::of(runs.iter().map(|(node, state)| (node.as_str(), state)), now)
}

/// Returns the stored owner of a shard.
fn owner(task: &TaskView, shard: ShardId) -> String {
    let found = task.owners.get(&shard.no).cloned();
    found.unwrap_or_else(|| "a node".to_owned())
}

impl Tasks {
    /// Returns a task with its live progress from all nodes, and the saved use of the shards that don't run.
    pub async fn picture(&self, task: TaskView) -> TaskPicture {
        let lives = self.stats.lives_of(&task).await;
        let running: Vec<ShardId> = lives.shards.iter().map(|(_, live)| live.shard).collect();
        let mut picture = self.draw(task, lives);
        let saved = costs::saved(&*self.failures.reports, &picture.task, &running).await;
        picture.costs = MeterPicture::sum(picture.costs.into_iter().chain(saved));
        picture
    }

    /// Returns a task with its live progress from all nodes, without what only checkpoints say.
    pub async fn live_picture(&self, task: TaskView) -> TaskPicture {
        let lives = self.stats.lives_of(&task).await;
        self.draw(task, lives)
    }

    fn draw(&self, mut task: TaskView, lives: Lives) -> TaskPicture {
        if task.status == Status::Running
            && let Some(full) = self.node.store_full(task.id)
        {
            task.status_text = Some(full);
        }
        drawn(task, lives, self.node.now())
    }

    /// Returns tasks with their live progress from all nodes; each owner is asked once. Saved use isn't read.
    pub async fn pictures(&self, tasks: Vec<TaskView>) -> Vec<TaskPicture> {
        let mut lives = self.stats.lives(&tasks).await;
        let draw = |task: TaskView| {
            let live = lives.remove(&task.id).unwrap_or_default();
            self.draw(task, live)
        };
        tasks.into_iter().map(draw).collect()
    }

    /// Returns a task as soon as its version differs from `unless`, or after `patience`.
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
            let task = self.get(id).await?;
            if task.version != unless || tokio::time::Instant::now() >= end {
                return Ok(task);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Returns a page of tasks with their live progress.
    pub async fn list(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<PicturePage, ServiceError> {
        let page = self.lists.tasks(filter, after, limit).await?;
        Ok(PicturePage {
            tasks: self.pictures(page.tasks).await,
            next: page.next,
        })
    }

    /// Returns the workers of the live runs of these tasks on all reachable nodes; `None` if no run has any.
    pub async fn workers(&self, filter: &TaskFilter) -> Result<Option<Workers>, ServiceError> {
        let page = self.lists.tasks(filter, None, WORKERS_OF_TASKS_MAX).await?;
        let lives = self.stats.lives(&page.tasks).await;
        let shards = lives.values().flat_map(|lives| &lives.shards);
        Ok(shards
            .filter_map(|(_, shard)| shard.workers)
            .reduce(Workers::plus))
    }

    /// Returns the remaining failures for those of the tasks that have redrives; empty if they can't be read right
    /// now.
    pub async fn redriven(&self, tasks: &[&TaskView]) -> BTreeMap<TaskId, NetResult> {
        self.failures.nets(tasks).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "outcome of redrives not available");
            BTreeMap::new()
        })
    }

    /// Returns the runs of a task, newest first; unfinished runs have the numbers of the last checkpoint.
    pub async fn runs(
        &self,
        task: &TaskView,
        after: Option<(WallMs, ShardId, RunNo)>,
        limit: u32,
    ) -> Result<Vec<RunRecord>, ServiceError> {
        let mut runs = self.lists.runs(task.id, after, limit).await?;
        for run in &mut runs {
            as_saved(run, &task.shards);
        }
        Ok(runs)
    }

    /// Returns one run of a task.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn run(&self, task: &TaskView, shard: u32, run: RunNo) -> Result<RunRecord, ServiceError> {
        let shard = ShardId {
            task: task.id,
            no: shard,
        };
        let found = self.lists.run(shard, run).await?;
        let mut found = found.ok_or_else(|| ServiceError::not_found("run", format!("{shard}.{}", run.0)))?;
        as_saved(&mut found, &task.shards);
        Ok(found)
    }
}

/// Fills in the numbers of a shard's last checkpoint for an unfinished run, whose row has only those of its start.
pub(super) fn as_saved(run: &mut RunRecord, shards: &[ShardLife]) {
    let own = shards.iter().find(|shard| shard.no == run.shard.no);
    if let Some(shard) = own.filter(|_| run.ended_at.is_none()) {
        let counters = &shard.counters;
        run.watermark = shard.watermark;
        run.settled = [counters.succeeded, counters.skipped, counters.failed];
        run.parked = counters.parked;
    }
}

#[cfg(test)]
mod tests;
