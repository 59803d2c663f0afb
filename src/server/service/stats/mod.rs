//! The recent past of the tasks that run here: once a second, what each has counted since the second before.
//!
//! Nothing here holds up a run: its core is looked at, never waited for. What is kept has a bound, whatever runs: all
//! tasks share [`BYTES_MAX`], and those that ended go after [`KEPT`].

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

/// Between two samples.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// No busy machine puts a sample off for so long: the node stood still.
const STOOD_MIN: Duration = Duration::from_secs(3);
/// The memory of all points together, unless the shortest rings of all tasks take more. Unit: bytes.
pub const BYTES_MAX: usize = 64 << 20;
/// How long the past of a task is kept after its last point.
pub const KEPT: Duration = Duration::from_secs(900);
/// Tasks that don't run any more and whose past is kept.
const GONE_MAX: usize = 1000;

/// How tasks do on this node, recently and now, and what the other nodes say of them.
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

    /// What a task counted in the last `seconds`; none when it didn't run here in them. `covered` says how much of them
    /// is known.
    pub fn span(&self, task: TaskId, seconds: u64) -> Option<Span> {
        let now = self.node.clock.now();
        let board = lock(&self.board);
        board
            .tasks
            .get(&task)?
            .series
            .span(now, Duration::from_secs(seconds))
    }

    /// The speed of a task on this node at the last sample; none while that isn't known.
    pub fn speed(&self, task: TaskId) -> Option<Speed> {
        let now = self.node.clock.now();
        lock(&self.board).tasks.get(&task)?.speed.speed(now)
    }

    /// When the shards of a task were counted here, since so long ago.
    pub(super) fn stays(&self, task: TaskId, reach: Duration) -> Vec<Stay> {
        let now = self.node.clock.now();
        lock(&self.board)
            .tasks
            .get(&task)
            .map(|track| track.stays(now, reach))
            .unwrap_or_default()
    }

    /// The longest time in which this node stood still while it ran a part of a task; see [`Track::stood_still`].
    pub(super) fn stood_still(&self, task: TaskId, reach: Duration) -> Option<Spell> {
        let now = self.node.clock.now();
        lock(&self.board).tasks.get(&task)?.stood_still(now, reach)
    }

    /// For how long a task has had its rate; none while it was never seen to change.
    pub fn same_rate_for(&self, task: TaskId) -> Option<Duration> {
        let changed_at = lock(&self.board).tasks.get(&task)?.rate_changed_at?;
        Some(self.node.clock.now().since(changed_at))
    }

    /// The points of a task, or of all, between two times that were counted here, oldest first; see [`Series::slices`].
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

    /// Takes one sample of all that runs here.
    pub async fn sample(&self) {
        let supervisor = &self.node.supervisor;
        // In this order: what ends in between is seen twice and counted once; the other way round it would be missed.
        let live = supervisor.samples().await;
        let ended = supervisor.take_ended_samples();
        let (board, now) = (self.board.clone(), self.node.clock.now());
        // Of thousands of runs it takes some hundredths of a second: too long for a thread that items move on.
        let taken = tokio::task::spawn_blocking(move || lock(&board).take_in(live, ended, now));
        if let Err(error) = taken.await {
            tracing::error!(%error, "a sample of the runs was lost");
        }
    }
}

fn lock(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a sample each second. Never ends.
pub async fn watch(stats: Arc<Stats>) {
    let mut ticks = tokio::time::interval(SAMPLE_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        stats.sample().await;
    }
}

struct Board {
    /// See [`BYTES_MAX`].
    bytes_max: usize,
    /// As each live run was seen last.
    seen: BTreeMap<(ShardId, RunNo), RunSample>,
    tasks: BTreeMap<TaskId, Track>,
    /// What all tasks did together.
    all: Series,
}

#[derive(Default)]
struct Track {
    series: Series,
    /// The one measure of how fast it goes here.
    speed: Speedometer,
    /// The end of its last point.
    last_at: Moment,
    /// Its rate as it was seen last.
    rate: Option<RateLimit>,
    /// The end of the point in which that was another one before.
    rate_changed_at: Option<Moment>,
    /// When each of its shards was counted, oldest first.
    stays: BTreeMap<u32, VecDeque<(Moment, Moment)>>,
    /// When the node stood still while it ran a part of it, oldest first: no sample was taken for so long.
    stood: VecDeque<(Moment, Moment)>,
}

impl Track {
    /// Takes in what was counted since the last sample; `live` has the rate of what runs, and when that was seen.
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

    /// Takes in that a shard was counted. What is no longer kept goes.
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

    /// Takes in that nothing was counted between two times, where that is longer than a busy machine explains.
    fn paused(&mut self, from: Moment, to: Moment) {
        if to.since(from) < STOOD_MIN || self.stood.back().is_some_and(|(_, end)| from < *end) {
            return;
        }
        self.stood.push_back((from, to));
        while self.stood.front().is_some_and(|(_, end)| to.since(*end) > KEPT) {
            self.stood.pop_front();
        }
    }

    /// The longest time in which the node stood still, of those that ended since so long ago.
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
    /// Takes in what runs now, and what ended since the last sample.
    fn take_in(&mut self, live: Vec<RunSample>, ended: Vec<RunSample>, now: Moment) {
        let mut fresh: BTreeMap<TaskId, Slice> = BTreeMap::new();
        let rates: BTreeMap<TaskId, (RateLimit, Moment)> = live
            .iter()
            .map(|sample| (sample.shard.task, (sample.task_rate, sample.at)))
            .collect();
        let alive: BTreeSet<(ShardId, RunNo)> =
            live.iter().map(|sample| (sample.shard, sample.run)).collect();
        // A run that ended meanwhile is among both, first as it lived.
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
        // The end of a run may have been among those that were not kept.
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

/// A run that ended has nothing in flight and no window any more.
fn at_rest(sample: RunSample) -> RunSample {
    let gauges = Gauges {
        watermark: sample.gauges.watermark,
        ..Gauges::default()
    };
    RunSample { gauges, ..sample }
}

/// What a run counted since it was seen last, or since it began.
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

/// Takes a slice in with others of its task.
fn join(fresh: &mut BTreeMap<TaskId, Slice>, task: TaskId, slice: Slice) {
    match fresh.get_mut(&task) {
        Some(known) => extend(known, &slice),
        None => drop(fresh.insert(task, slice)),
    }
}

/// Takes a slice of about the same time in.
fn extend(known: &mut Slice, slice: &Slice) {
    known.from = known.from.min(slice.from);
    known.to = known.to.max(slice.to);
    known.point.add(&slice.point);
    known.point.gauges.join(&slice.point.gauges);
}

#[cfg(test)]
mod tests;
