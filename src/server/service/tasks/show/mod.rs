//! Tasks as people see them: what is stored, with the live progress of what runs, here and on other nodes; lists,
//! runs, audit.

use std::time::Duration;

use crate::service::cluster::lives::Lives;
use crate::service::{Service, ServiceError};
use windrow_core::handler::sight::HandlerSight;
use windrow_core::ids::{ItemIndex, RunNo, ShardId, TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::HandlerState;
use windrow_core::task::lifecycle::{ShardState, Status};
use windrow_engine::ports::ownership::peers::Silent;
use windrow_engine::ports::tasks::list::{AuditFilter, AuditRow, RunRecord, TaskFilter};
use windrow_engine::ports::tasks::report_store::ShardFacts;
use windrow_engine::ports::tasks::shard_map::OwnedFacts;
use windrow_engine::ports::tasks::store::TaskView;

/// How often a waiting look asks the store. (Status is at most a second old on every surface.)
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A task with its live progress.
#[derive(Clone, Debug)]
pub struct TaskPicture {
    /// The task; while it runs, with the counters and the low water of this moment.
    pub task: TaskView,
    /// What else is known of it while it runs.
    pub live: Option<Live>,
    /// Nodes that run a part of it and can't be asked: of their parts it has what was saved.
    pub silent: Vec<Silent>,
    /// How its handler fares, while it runs.
    pub handler: HandlerSight,
}

/// The rate that is shown is that of this span: long enough for slow tasks, short enough to follow a change. Unit: seconds.
pub(crate) const RATE_SECONDS: u64 = 10;
/// Before, there is no telling. The sampler is never quite on time.
pub(crate) const RATE_KNOWN_AFTER: Duration = Duration::from_millis(900);

/// What is known of a task that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// When its runs were looked at; a part that can't be asked is as old as its last checkpoint.
    pub as_of: WallMs,
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
    /// The nodes that run it, and were asked.
    pub nodes: Vec<String>,
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
fn drawn(task: TaskView, lives: Lives, now: WallMs) -> TaskPicture {
    let handler = handler(&task, &lives, now);
    let Lives {
        shards,
        rates,
        stored,
        mut silent,
    } = lives;
    silent.dedup();
    let head = task.skip_first.0.min(task.total.0);
    let is_live = |stored: &&OwnedFacts| shards.iter().all(|(_, live)| live.shard != stored.facts.shard);
    let saved: Vec<&ShardFacts> = stored
        .iter()
        .filter(is_live)
        .map(|stored| &stored.facts)
        .collect();
    let covered: u64 = shards.iter().map(|(_, live)| live.total.0).sum::<u64>()
        + saved
            .iter()
            .map(|facts| facts.range_end.0.saturating_sub(facts.first.0))
            .sum::<u64>();
    if shards.is_empty() || covered + head != task.total.0 || task.status.is_terminal() {
        return TaskPicture {
            task,
            live: None,
            silent,
            handler,
        };
    }
    let lives = || shards.iter().map(|(_, live)| live);
    let sum = lives().fold(Counters::default(), |sum, live| sum.plus(&live.counters));
    let sum = saved.iter().fold(sum, |sum, facts| sum.plus(&terms(facts)));
    let open = saved
        .iter()
        .filter(|facts| facts.state != ShardState::Done)
        .map(|facts| facts.low_water);
    let low_water = lives()
        .map(|live| live.low_water)
        .chain(open)
        .min()
        .unwrap_or(task.low_water);
    let high_water = lives()
        .map(|live| live.high_water)
        .chain(saved.iter().map(|facts| facts.high_water))
        .max();
    let mut nodes: Vec<String> = shards.iter().map(|(node, _)| node.clone()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let live = Live {
        as_of: now,
        // A sum that lacks a part is none.
        actual_rate: rates
            .into_iter()
            .sum::<Option<f64>>()
            .filter(|_| silent.is_empty()),
        high_water: high_water.unwrap_or_default(),
        window: lives().map(|live| u64::from(live.window)).sum(),
        concurrency: lives().map(|live| u64::from(live.concurrency)).sum(),
        latency_p95: lives().filter_map(|live| live.latency_p95).max(),
        stall: lives().find_map(|live| live.stall).map(|stall| stall.as_str()),
        nodes,
    };
    let counters = Counters {
        excluded: sum.excluded + head,
        ..sum
    };
    TaskPicture {
        task: TaskView {
            counters,
            low_water,
            ..task
        },
        live: Some(live),
        silent,
        handler,
    }
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
    let is_dark = |stored: &&OwnedFacts| {
        stored.session.is_some()
            && lives
                .shards
                .iter()
                .all(|(_, live)| live.shard != stored.facts.shard)
    };
    let dark = lives.stored.iter().filter(is_dark).filter_map(|stored| {
        let state = HandlerState {
            outage: Some(stored.outage?),
            ..HandlerState::default()
        };
        Some((owner(task, stored.facts.shard), state))
    });
    let runs: Vec<(String, HandlerState)> = live.chain(dark).collect();
    HandlerSight::of(runs.iter().map(|(node, state)| (node.as_str(), state)), now)
}

/// The node that runs a shard, as it is stored.
fn owner(task: &TaskView, shard: ShardId) -> String {
    let found = task
        .shards
        .iter()
        .find(|one| one.no == shard.no)
        .and_then(|one| one.node.clone());
    found.unwrap_or_else(|| "a node".to_owned())
}

/// The terms of a shard as they were saved; what an early finish cut off is excluded.
fn terms(facts: &ShardFacts) -> Counters {
    let excluded = facts.range_end.0.saturating_sub(facts.end.0);
    Counters {
        excluded,
        ..facts.counters
    }
}

impl Service {
    /// A task with its live progress, wherever it runs.
    pub async fn picture(&self, task: TaskView) -> TaskPicture {
        let lives = self.lives_of(&task).await;
        drawn(task, lives, self.now())
    }

    /// Tasks with their live progress, wherever they run: each owner is asked once.
    pub async fn pictures(&self, tasks: Vec<TaskView>) -> Vec<TaskPicture> {
        let mut lives = self.lives(&tasks).await;
        let draw = |task: TaskView| {
            let live = lives.remove(&task.id).unwrap_or_default();
            drawn(task, live, self.now())
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
        Ok(PicturePage {
            tasks: self.pictures(page.tasks).await,
            next: page.next,
        })
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
        let mut runs = self.parts.lists.runs(id, after, limit).await?;
        if runs.iter().any(|run| run.ended_at.is_none()) {
            let shards = self.parts.reports.shard_facts(id).await?;
            runs.iter_mut().for_each(|run| as_saved(run, &shards));
        }
        Ok(runs)
    }

    /// One run.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn task_run(&self, shard: ShardId, run: RunNo) -> Result<RunRecord, ServiceError> {
        let found = self.parts.lists.run(shard, run).await?;
        let mut found = found.ok_or_else(|| ServiceError::NotFound {
            what: "run",
            name: format!("{shard}.{}", run.0),
        })?;
        if found.ended_at.is_none() {
            as_saved(&mut found, &self.parts.reports.shard_facts(shard.task).await?);
        }
        Ok(found)
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

/// Of a run that goes on its row has the numbers of its beginning: those of its shard's last checkpoint take their place.
fn as_saved(run: &mut RunRecord, shards: &[ShardFacts]) {
    let own = shards.iter().find(|shard| shard.shard == run.shard);
    if let Some(shard) = own.filter(|_| run.ended_at.is_none()) {
        let counters = &shard.counters;
        run.low_water = shard.low_water;
        run.settled = [counters.succeeded, counters.skipped, counters.abandoned];
        run.parked = counters.parked;
    }
}

#[cfg(test)]
mod tests;
