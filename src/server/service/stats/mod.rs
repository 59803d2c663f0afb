//! Recent history of the tasks that run on this node: one sample per second with the changes since the previous one.
//!
//! Sampling never blocks a run, it only reads a run's state. Memory is bounded, whatever runs: all tasks share
//! [`BYTES_MAX`], and ended tasks are dropped after [`KEPT`].

pub mod live;
pub mod of_task;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::cluster::Cluster;
use super::node::ThisNode;
use windrow_core::explain::{Spell, Stay};
use windrow_core::ids::{Moment, RunNo, ShardId, TaskId, WallMs};
use windrow_core::settings::RateLimit;
use windrow_core::stats::series::{Gauges, Point, Series, Slice, Span};
use windrow_core::stats::speed::{Speed, Speedometer, Stretch};
use windrow_engine::actors::executor::run_view::RunSample;
pub use windrow_engine::actors::executor::run_view::RunView;

/// Time between two samples.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Gap between samples that a busy machine doesn't explain, so the node must have been paused.
const STOOD_MIN: Duration = Duration::from_secs(3);
/// Memory for the points of all tasks, in bytes, unless the shortest rings of all tasks need more.
pub const BYTES_MAX: usize = 64 << 20;
/// Time for which a task's history is kept after its last point.
pub const KEPT: Duration = Duration::from_secs(900);
/// Most ended tasks whose history is kept.
const GONE_MAX: usize = 1000;

/// Recent and current statistics of tasks on this node, combined with those of other nodes on request.
pub struct Stats {
    node: Arc<ThisNode>,
    cluster: Arc<Cluster>,
    board: Arc<Mutex<Board>>,
}

impl Stats {
    pub(super) fn new(node: Arc<ThisNode>, cluster: Arc<Cluster>) -> Stats {
        Stats {
            node,
            cluster,
            board: Arc::default(),
        }
    }

    /// Returns the counts of a task in the last `seconds`, `None` if it didn't run here. `covered` is the part of
    /// that time for which data exists.
    pub fn span(&self, task: TaskId, seconds: u64) -> Option<Span> {
        let now = self.node.clock.now();
        let board = lock(&self.board);
        board
            .tasks
            .get(&task)?
            .series
            .span(now, Duration::from_secs(seconds))
    }

    /// Returns the rate of a task on this node at the last sample, `None` while unknown.
    pub fn speed(&self, task: TaskId) -> Option<Speed> {
        let now = self.node.clock.now();
        lock(&self.board).tasks.get(&task)?.speed.speed(now)
    }

    /// Returns the times in the last `reach` in which shards of a task were sampled here.
    pub(super) fn stays(&self, task: TaskId, reach: Duration) -> Vec<Stay> {
        let now = self.node.clock.now();
        lock(&self.board)
            .tasks
            .get(&task)
            .map(|track| track.stays(now, reach))
            .unwrap_or_default()
    }

    /// Returns the longest pause of this node while it ran a part of a task; see [`Track::stood_still`].
    pub(super) fn stood_still(&self, task: TaskId, reach: Duration) -> Option<Spell> {
        let now = self.node.clock.now();
        lock(&self.board).tasks.get(&task)?.stood_still(now, reach)
    }

    /// Returns the time since a task's rate last changed, `None` if no change was seen.
    pub fn same_rate_for(&self, task: TaskId) -> Option<Duration> {
        let changed_at = lock(&self.board).tasks.get(&task)?.rate_changed_at?;
        Some(self.node.clock.now().since(changed_at))
    }

    /// Returns the points sampled here for a task, or for all, in a time range, oldest first; see [`Series::slices`].
    fn slices(&self, task: Option<TaskId>, from: WallMs, to: WallMs, step: Duration) -> Vec<Slice> {
        let (from, to) = (self.node.moment_of(from), self.node.moment_of(to));
        let board = lock(&self.board);
        let series = match task {
            Some(task) => board.tasks.get(&task).map(|track| &track.series),
            None => Some(&board.all),
        };
        series
            .map(|series| series.slices(from, to, step))
            .unwrap_or_default()
    }

    /// Takes one sample of all runs on this node.
    pub async fn sample(&self) {
        let supervisor = &self.node.supervisor;
        // Keep this order: a run that ends in between is seen twice but counted once. In reverse order it would be
        // missed.
        let live = supervisor.samples().await;
        let ended = supervisor.take_ended_samples();
        let (board, now) = (self.board.clone(), self.node.clock.now());
        // With thousands of runs this takes hundredths of a second, too long for a thread that also moves items.
        let taken = tokio::task::spawn_blocking(move || lock(&board).take_in(live, ended, now));
        if let Err(error) = taken.await {
            tracing::error!(%error, "sample of the runs lost");
        }
    }
}

fn lock(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a sample every second. Never returns.
pub async fn watch(stats: Arc<Stats>) {
    let mut ticks = tokio::time::interval(SAMPLE_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        stats.sample().await;
    }
}

struct Board {
    /// Memory limit of all points, normally [`BYTES_MAX`].
    bytes_max: usize,
    /// Last sample of each live run.
    seen: BTreeMap<(ShardId, RunNo), RunSample>,
    tasks: BTreeMap<TaskId, Track>,
    /// Combined history of all tasks.
    all: Series,
}

#[derive(Default)]
struct Track {
    series: Series,
    /// Rate meter on this node, which every surface uses.
    speed: Speedometer,
    /// End of the last point.
    last_at: Moment,
    /// Rate limit at the last sample.
    rate: Option<RateLimit>,
    /// End of the point in which the rate limit last changed.
    rate_changed_at: Option<Moment>,
    /// Times at which each shard was sampled, oldest first.
    stays: BTreeMap<u32, VecDeque<(Moment, Moment)>>,
    /// Pauses of the node while it ran a part of the task, in which no samples were taken, oldest first.
    stood: VecDeque<(Moment, Moment)>,
}

impl Track {
    /// Records the counts since the last sample; `live` is the rate limit of a running task and the time it was read.
    fn take_in(&mut self, slice: &Slice, live: Option<(RateLimit, Moment)>) {
        self.last_at = slice.to;
        self.series.push(slice);
        let Some((rate, at)) = live else { return };
        if self.rate.replace(rate).is_some_and(|before| before != rate) {
            self.rate_changed_at = Some(at);
        }
        let stretch = Stretch {
            from: slice.from,
            to: slice.to,
            sent: slice.point.permits.sent(),
            settled: slice.point.settled(),
        };
        self.speed.record(rate, stretch);
    }

    /// Records that a shard was sampled, and drops records older than [`KEPT`].
    fn stayed(&mut self, shard: u32, from: Moment, to: Moment) {
        let stays = self.stays.entry(shard).or_default();
        match stays.back_mut() {
            Some((_, end)) if from <= *end => *end = to,
            _ => stays.push_back((from, to)),
        }
        while stays.front().is_some_and(|(_, end)| to.since(*end) > KEPT) {
            stays.pop_front();
        }
    }

    /// Records a gap without samples if it is longer than a busy machine explains.
    fn paused(&mut self, from: Moment, to: Moment) {
        if to.since(from) < STOOD_MIN || self.stood.back().is_some_and(|(_, end)| from < *end) {
            return;
        }
        self.stood.push_back((from, to));
        while self.stood.front().is_some_and(|(_, end)| to.since(*end) > KEPT) {
            self.stood.pop_front();
        }
    }

    /// Returns the longest pause of the node among those that ended in the last `reach`.
    fn stood_still(&self, now: Moment, reach: Duration) -> Option<Spell> {
        let ago = |(from, to): &(Moment, Moment)| Spell {
            from: now.since(*from),
            to: now.since(*to),
        };
        let spells = self.stood.iter().map(ago).filter(|spell| spell.to < reach);
        spells.max_by_key(Spell::lasted)
    }

    fn stays(&self, now: Moment, reach: Duration) -> Vec<Stay> {
        let each = self
            .stays
            .iter()
            .flat_map(|(shard, stays)| stays.iter().map(|stay| (*shard, *stay)));
        let ago = |(shard, (from, to)): (u32, (Moment, Moment))| Stay {
            shard,
            from: now.since(from).min(reach),
            to: now.since(to),
        };
        each.map(ago).filter(|stay| stay.to < stay.from).collect()
    }
}

impl Default for Board {
    fn default() -> Board {
        Board {
            bytes_max: BYTES_MAX,
            seen: BTreeMap::new(),
            tasks: BTreeMap::new(),
            all: Series::default(),
        }
    }
}

impl Board {
    /// Records the live runs, and the runs that ended since the last sample.
    fn take_in(&mut self, live: Vec<RunSample>, ended: Vec<RunSample>, now: Moment) {
        let mut fresh: BTreeMap<TaskId, Slice> = BTreeMap::new();
        let rates: BTreeMap<TaskId, (RateLimit, Moment)> = live
            .iter()
            .map(|sample| (sample.shard.task, (sample.task_rate, sample.at)))
            .collect();
        let alive: BTreeSet<(ShardId, RunNo)> =
            live.iter().map(|sample| (sample.shard, sample.run)).collect();
        // A run that ended in between is in both lists, first as live.
        for sample in live.into_iter().chain(ended.into_iter().map(at_rest)) {
            let key = (sample.shard, sample.run);
            let slice = slice(self.seen.get(&key), &sample);
            let track = self.tasks.entry(sample.shard.task).or_default();
            track.stayed(sample.shard.no, slice.from, slice.to);
            if self.seen.contains_key(&key) {
                track.paused(slice.from, slice.to);
            }
            join(&mut fresh, sample.shard.task, slice);
            self.seen.insert(key, sample);
        }
        // The end of a run may be missing, because only a limited number is kept.
        self.seen.retain(|run, _| alive.contains(run));
        let mut slices = fresh.values();
        if let Some(mut all) = slices.next().cloned() {
            slices.for_each(|slice| extend(&mut all, slice));
            self.all.push(&all);
        }
        for (task, slice) in fresh {
            let track = self.tasks.entry(task).or_default();
            track.take_in(&slice, rates.get(&task).copied());
        }
        self.forget(now);
    }

    fn forget(&mut self, now: Moment) {
        self.tasks.retain(|_, track| now.since(track.last_at) < KEPT);
        let mut gone: Vec<(Moment, TaskId)> = self
            .tasks
            .iter()
            .filter(|(_, track)| now.since(track.last_at) > 2 * SAMPLE_EVERY)
            .map(|(task, track)| (track.last_at, *task))
            .collect();
        if gone.len() > GONE_MAX {
            gone.sort_unstable();
            for (_, task) in &gone[..gone.len() - GONE_MAX] {
                self.tasks.remove(task);
            }
        }
        let share = self.bytes_max / self.tasks.len().max(1);
        self.tasks.values_mut().for_each(|track| track.series.trim(share));
    }
}

/// Clears the gauges of an ended run, which has no items in flight and no window.
fn at_rest(sample: RunSample) -> RunSample {
    let gauges = Gauges {
        watermark: sample.gauges.watermark,
        ..Gauges::default()
    };
    RunSample { gauges, ..sample }
}

/// Returns the counts of a run since its last sample, or since it began.
fn slice(before: Option<&RunSample>, now: &RunSample) -> Slice {
    let (from, terms) = before.map_or((now.began_at, &now.began), |before| (before.at, &before.counters));
    let mut point = Point {
        permits: now.permits.clone(),
        succeeded: now.counters.succeeded.saturating_sub(terms.succeeded),
        skipped: now.counters.skipped.saturating_sub(terms.skipped),
        failed: now.counters.failed.saturating_sub(terms.failed),
        failed_attempts: now.failed_attempts,
        calls: now.calls.clone(),
        gauges: now.gauges.clone(),
    };
    if let Some(before) = before {
        point.permits = now.permits.since(&before.permits);
        point.failed_attempts = now.failed_attempts.saturating_sub(before.failed_attempts);
        point.calls = now.calls.since(&before.calls);
    }
    Slice {
        from,
        to: now.at,
        point,
    }
}

/// Merges a slice with the others of its task.
fn join(fresh: &mut BTreeMap<TaskId, Slice>, task: TaskId, slice: Slice) {
    match fresh.get_mut(&task) {
        Some(known) => extend(known, &slice),
        None => drop(fresh.insert(task, slice)),
    }
}

/// Extends a slice by another one of about the same time.
fn extend(known: &mut Slice, slice: &Slice) {
    known.from = known.from.min(slice.from);
    known.to = known.to.max(slice.to);
    known.point.add(&slice.point);
    known.point.gauges.join(&slice.point.gauges);
}

#[cfg(test)]
mod tests;
