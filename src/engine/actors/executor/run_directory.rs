//! The live runs of a node, and those that ended of late.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::actors::executor::results::ResultRoom;
use crate::actors::executor::run_cell::RunCell;
use crate::actors::executor::run_view::{RunSample, RunView};
use crate::actors::runtime::lock;
use windrow_core::execution::{Execution, Progress, WindowPicture};
use windrow_core::ids::{Moment, RunNo, ShardId, TaskId};

/// Runs that have ended and that nobody has looked at yet; the oldest go.
const ENDED_MAX: usize = 1024;
/// Samples that are taken before other work has its turn: well under a millisecond.
const SAMPLES_AT_ONCE: usize = 256;

/// The live runs of a node, for people who look at them: no actor is asked.
#[derive(Clone, Default)]
pub struct RunDirectory(
    Arc<Mutex<BTreeMap<ShardId, Arc<RunCell>>>>,
    Arc<Mutex<VecDeque<RunView>>>,
    Arc<Mutex<VecDeque<RunSample>>>,
    Arc<ResultRoom>,
);

impl RunDirectory {
    /// What the results of all of them hold unsaved.
    pub(crate) fn result_room(&self) -> Arc<ResultRoom> {
        self.3.clone()
    }

    /// The live runs and their numbers.
    pub fn numbers(&self) -> Vec<(ShardId, RunNo)> {
        let cells = lock(&self.0);
        cells.values().map(|cell| (cell.shard, cell.about.run)).collect()
    }

    /// Every live run.
    pub fn runs(&self) -> Vec<RunView> {
        self.cells().iter().map(|cell| RunView::of(cell)).collect()
    }

    /// When each live run ends at the earliest, where its rate tells.
    pub(crate) fn ends(&self) -> BTreeMap<ShardId, Moment> {
        let end = |cell: Arc<RunCell>| {
            let ends_in = cell.peek(Execution::ends_in)?;
            Some((cell.shard, cell.clock.now().plus(ends_in)))
        };
        self.cells().into_iter().filter_map(end).collect()
    }

    /// The live runs of a task.
    pub fn runs_of(&self, task: TaskId) -> Vec<RunView> {
        self.of_task(task).iter().map(|cell| RunView::of(cell)).collect()
    }

    /// The live runs whose handler has been down for at least so long, all of it in their own time; each with its business.
    pub(crate) fn down_for(&self, span: Duration) -> Vec<(ShardId, String)> {
        let is_down = |cell: &Arc<RunCell>| {
            let now = cell.now();
            let outage = cell.peek(|execution| execution.handler(now).outage);
            let down_for =
                outage.map(|outage| now.wall.since(outage.since).min(now.moment.since(cell.began_at)));
            down_for.is_some_and(|down_for| down_for >= span)
        };
        let down = self.cells().into_iter().filter(is_down);
        down.map(|cell| (cell.shard, cell.about.business.clone()))
            .collect()
    }

    /// What every live run has counted; gives way to other work in between.
    pub async fn samples(&self) -> Vec<RunSample> {
        let mut samples = Vec::new();
        for some in self.cells().chunks(SAMPLES_AT_ONCE) {
            samples.extend(some.iter().map(|cell| RunSample::of(cell)));
            tokio::task::yield_now().await;
        }
        samples
    }

    /// What the runs had counted that have ended since this was asked last.
    pub fn take_ended_samples(&self) -> Vec<RunSample> {
        lock(&self.2).drain(..).collect()
    }

    fn cells(&self) -> Vec<Arc<RunCell>> {
        lock(&self.0).values().cloned().collect()
    }

    /// The runs that have ended since this was asked last, as they ended.
    pub fn take_ended(&self) -> Vec<RunView> {
        lock(&self.1).drain(..).collect()
    }

    /// The progress of each live shard of a task.
    pub fn progress(&self, task: TaskId) -> Vec<(ShardId, Progress)> {
        self.of_task(task)
            .into_iter()
            .map(|cell| (cell.shard, cell.progress()))
            .collect()
    }

    /// The same, without the shards that another node may own by now: what is known here of them is old.
    pub fn trusted_progress(&self, task: TaskId) -> Vec<(ShardId, Progress)> {
        let cells = self
            .of_task(task)
            .into_iter()
            .filter(|cell| !cell.gate.has_lapsed(cell.clock.now()));
        cells.map(|cell| (cell.shard, cell.progress())).collect()
    }

    fn of_task(&self, task: TaskId) -> Vec<Arc<RunCell>> {
        let (first, last) = (ShardId { task, no: 0 }, ShardId { task, no: u32::MAX });
        let cells = lock(&self.0);
        cells.range(first..=last).map(|(_, cell)| cell.clone()).collect()
    }

    /// The window of each live shard of a task that surely is owned here, in at most so many cells.
    pub fn windows(&self, task: TaskId, cells_max: NonZeroU32) -> Vec<(ShardId, WindowPicture)> {
        let cells = self.of_task(task);
        let of_task = cells
            .iter()
            .filter(|cell| !cell.gate.has_lapsed(cell.clock.now()));
        let picture = |cell: &RunCell| {
            let now = cell.clock.now();
            cell.peek(|execution| execution.window_picture(cells_max, now))
        };
        of_task.map(|cell| (cell.shard, picture(cell))).collect()
    }

    /// How many runs are live.
    pub fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Whether no run is live.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Invariants found broken by the live runs.
    pub fn violations(&self) -> u64 {
        lock(&self.0).values().map(|cell| cell.violations()).sum()
    }

    pub(crate) fn enter(&self, cell: Arc<RunCell>) {
        lock(&self.0).insert(cell.shard, cell);
    }

    pub(crate) fn leave(&self, cell: &Arc<RunCell>) {
        let mut cells = lock(&self.0);
        if cells
            .get(&cell.shard)
            .is_some_and(|known| Arc::ptr_eq(known, cell))
        {
            cells.remove(&cell.shard);
            drop(cells);
            keep(&self.1, RunView::of(cell));
            keep(&self.2, RunSample::of(cell));
        }
    }
}

fn keep<T>(queue: &Mutex<VecDeque<T>>, ended: T) {
    let mut queue = lock(queue);
    if queue.len() >= ENDED_MAX {
        queue.pop_front();
    }
    queue.push_back(ended);
}
