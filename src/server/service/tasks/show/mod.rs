//! Tasks as people see them: what is stored, with the live progress of what runs, here and on other nodes; lists,
//! runs, audit.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::service::ServiceError;
use crate::service::failures::net::NetResult;
use crate::service::stats::live::Lives;
use crate::service::tasks::Tasks;
use windrow_core::handler::sight::HandlerSight;
use windrow_core::ids::{ItemCount, ItemIndex, RunNo, ShardId, TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::HandlerState;
use windrow_core::stats::completion::{self, Completion};
use windrow_core::stats::speed::Speed;
use windrow_core::task::lifecycle::{ShardState, Status};
use windrow_core::task::supply::Intake;
use windrow_engine::ports::ownership::peers::Unreachable;
use windrow_engine::ports::tasks::list::{RunRecord, TaskFilter};
use windrow_engine::ports::tasks::shard_map::StoredShard;
use windrow_engine::ports::tasks::store::{ShardLife, TaskView};

/// How often a waiting look asks the store. (Status is at most a second old on every surface.)
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A task with its live progress.
#[derive(Clone, Debug)]
pub struct TaskPicture {
    /// The task; while it runs, with the counters and the watermark of this moment.
    pub task: TaskView,
    /// What else is known of it while it runs.
    pub live: Option<Live>,
    /// Nodes that run a part of it and can't be asked: of their parts it has what was saved.
    pub silent: Vec<Unreachable>,
    /// Whether the store didn't tell where it runs: it has what was saved when it was read.
    pub is_blind: bool,
    /// How its handler fares, while it runs.
    pub handler: HandlerSight,
}

/// What is known of a task that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// When its runs were looked at; a part that can't be asked is as old as its last checkpoint.
    pub as_of: WallMs,
    /// The speed; none before the first second is over, and where a part of it can't be asked.
    pub speed: Option<Speed>,
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
    /// The nodes that run it, and were asked.
    pub nodes: Vec<String>,
}

impl TaskPicture {
    /// The progress.
    pub fn completion(&self) -> Completion {
        Completion::of(&self.task.counters, self.task.total)
    }

    /// Attempts sent each second; zero while it doesn't run, none where that isn't known.
    pub fn actual_rate(&self) -> Option<f64> {
        match &self.live {
            Some(live) => live.speed.map(|speed| speed.sent),
            None => (self.task.status != Status::Running).then_some(0.0),
        }
    }

    /// When it will be done at its present pace; none while it doesn't run, or items may be added.
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

/// A page of pictures.
#[derive(Clone, Debug)]
pub struct PicturePage {
    /// The tasks.
    pub tasks: Vec<TaskPicture>,
    /// After which task the next page begins; none on the last page.
    pub next: Option<TaskId>,
}

/// Lays what is live over what was saved. Only where the shards are all of the task do their terms add up to its total.
fn drawn(task: TaskView, mut lives: Lives, now: WallMs) -> TaskPicture {
    lives.silent.dedup();
    let mut picture = TaskPicture {
        handler: handler(&task, &lives, now),
        silent: std::mem::take(&mut lives.silent),
        is_blind: lives.is_blind,
        live: None,
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
        // One shard: its run may have heard of more than was read, or not yet of the last items.
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

/// What is known of the runs, together; what is saved of the other shards reaches up to `saved_to`.
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
        nodes,
    }
}

/// The speed of all nodes together: a sum that lacks a part is none.
fn whole_speed(speeds: &[Option<Speed>]) -> Option<Speed> {
    let mut parts = speeds.iter().copied();
    parts.try_fold(Speed::default(), |sum, part| Some(sum.plus(part?)))
}

/// What the runs see of the handler. Of one whose owner can't be asked it is known since when the handler is down, if the
/// last checkpoint said so.
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

/// The node that runs a shard, as it is stored.
fn owner(task: &TaskView, shard: ShardId) -> String {
    let found = task.owners.get(&shard.no).cloned();
    found.unwrap_or_else(|| "a node".to_owned())
}

impl Tasks {
    /// A task with its live progress, wherever it runs.
    pub async fn picture(&self, task: TaskView) -> TaskPicture {
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

    /// Tasks with their live progress, wherever they run: each owner is asked once.
    pub async fn pictures(&self, tasks: Vec<TaskView>) -> Vec<TaskPicture> {
        let mut lives = self.stats.lives(&tasks).await;
        let draw = |task: TaskView| {
            let live = lives.remove(&task.id).unwrap_or_default();
            self.draw(task, live)
        };
        tasks.into_iter().map(draw).collect()
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
            let task = self.get(id).await?;
            if task.version != unless || tokio::time::Instant::now() >= end {
                return Ok(task);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// A page of tasks.
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

    /// What redrives made of the failures of those of these tasks that have redrives. What can't be read now is left out.
    pub async fn redriven(&self, tasks: &[&TaskView]) -> BTreeMap<TaskId, NetResult> {
        self.failures.nets(tasks).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "what redrives recovered isn't known now");
            BTreeMap::new()
        })
    }

    /// The runs of a task, newest first; those that go on with the numbers of the last checkpoint.
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

    /// One run.
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

/// Of a run that goes on its row has the numbers of its beginning: those of its shard's last checkpoint take their place.
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
