//! Live runs of a node, and recently ended ones.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::actors::executor::results::ResultRoom;
use crate::actors::executor::run_cell::RunCell;
use crate::actors::executor::run_view::{RunSample, RunView};
use crate::actors::runtime::lock;
use crate::ports::handling::handler::Workers;
use windrow_core::execution::{Execution, Progress, WindowPicture};
use windrow_core::ids::{Moment, RunNo, ShardId, TaskId};

/// Maximum number of ended runs kept until they are read; the oldest are dropped.
const ENDED_MAX: usize = 1024;
/// Samples taken before other work gets a turn: well under a millisecond.
const SAMPLES_AT_ONCE: usize = 256;

/// Live runs of a node, for display; reading them asks no actor.
#[derive(Clone, Default)]
pub struct RunDirectory(
    Arc<Mutex<BTreeMap<ShardId, Arc<RunCell>>>>,
    Arc<Mutex<VecDeque<RunView>>>,
    Arc<Mutex<VecDeque<RunSample>>>,
    Arc<ResultRoom>,
);

impl RunDirectory {
    /// Returns the number of unsaved output bytes of all runs.
    pub(crate) fn result_room(&self) -> Arc<ResultRoom> {
        self.3.clone()
    }

    /// Returns the live runs and their numbers.
    pub fn numbers(&self) -> Vec<(ShardId, RunNo)> {
        let cells = lock(&self.0);
        cells.values().map(|cell| (cell.shard, cell.about.run)).collect()
    }

    /// Returns a view of every live run.
    pub fn runs(&self) -> Vec<RunView> {
        self.cells().iter().map(|cell| RunView::of(cell)).collect()
    }

    /// Returns the earliest end of each live run whose rate determines it.
    pub(crate) fn ends(&self) -> BTreeMap<ShardId, Moment> {
        let end = |cell: Arc<RunCell>| {
            let ends_in = cell.peek(Execution::ends_in)?;
            Some((cell.shard, cell.clock.now().plus(ends_in)))
        };
        self.cells().into_iter().filter_map(end).collect()
    }

    /// Returns a view of each live run of a task.
    pub fn runs_of(&self, task: TaskId) -> Vec<RunView> {
        self.of_task(task).iter().map(|cell| RunView::of(cell)).collect()
    }

    /// Returns the live runs whose handler has been down for at least `span`, all of it while they ran, each with its
    /// business.
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

    /// Returns a sample of every live run; yields to other work in between.
    pub async fn samples(&self) -> Vec<RunSample> {
        let mut samples = Vec::new();
        for some in self.cells().chunks(SAMPLES_AT_ONCE) {
            samples.extend(some.iter().map(|cell| RunSample::of(cell)));
            tokio::task::yield_now().await;
        }
        samples
    }

    /// Returns the last samples of the runs that ended since the previous call.
    pub fn take_ended_samples(&self) -> Vec<RunSample> {
        lock(&self.2).drain(..).collect()
    }

    fn cells(&self) -> Vec<Arc<RunCell>> {
        lock(&self.0).values().cloned().collect()
    }

    /// Returns the last views of the runs that ended since the previous call.
    pub fn take_ended(&self) -> Vec<RunView> {
        lock(&self.1).drain(..).collect()
    }

    /// Returns the progress of each live shard of a task.
    pub fn progress(&self, task: TaskId) -> Vec<(ShardId, Progress)> {
        self.of_task(task)
            .into_iter()
            .map(|cell| (cell.shard, cell.progress()))
            .collect()
    }

    /// Returns the same with the workers, without shards that another node may own by now: their local data is old.
    pub fn trusted_progress(&self, task: TaskId) -> Vec<(ShardId, Progress, Option<Workers>)> {
        let cells = self
            .of_task(task)
            .into_iter()
            .filter(|cell| !cell.gate.has_lapsed(cell.clock.now()));
        let shown = |cell: Arc<RunCell>| (cell.shard, cell.progress(), cell.handler.workers());
        cells.map(shown).collect()
    }

    fn of_task(&self, task: TaskId) -> Vec<Arc<RunCell>> {
        let (first, last) = (ShardId { task, no: 0 }, ShardId { task, no: u32::MAX });
        let cells = lock(&self.0);
        cells.range(first..=last).map(|(_, cell)| cell.clone()).collect()
    }

    /// Returns the number of other tasks here whose autopilots steer calls to a service that this task calls, too.
    pub fn company_of(&self, task: TaskId) -> u32 {
        let services = |cell: &Arc<RunCell>| cell.news().and_then(|_| cell.about.service.clone());
        let own: BTreeSet<String> = self.of_task(task).iter().filter_map(services).collect();
        let cells = self.cells();
        let meets = |cell: &&Arc<RunCell>| services(cell).is_some_and(|service| own.contains(&service));
        let others: BTreeSet<TaskId> = match own.is_empty() {
            true => BTreeSet::new(),
            false => cells.iter().filter(meets).map(|cell| cell.shard.task).collect(),
        };
        u32::try_from(others.iter().filter(|other| **other != task).count()).unwrap_or(u32::MAX)
    }

    /// Returns the window of each live shard of a task that this node surely owns, in at most `cells_max` cells.
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

    /// Returns the number of live runs.
    pub fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// True if no run is live.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of broken invariants found by the live runs.
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
