//! Last known state of tasks. A bounded number of them have their own series, which end some time after the task.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::calls::Calls;
use super::ends::Ends;
use crate::service::stats::RunView;
use windrow_core::execution::MeterPicture;
use windrow_core::ids::{ItemCount, Moment, RunNo, ShardId, TaskId};
use windrow_core::items::counters::Counters;
use windrow_core::pilot::Picture;
use windrow_core::stats::completion::Completion;
use windrow_core::stats::histogram::Histogram;
use windrow_core::stats::stall::StallReason;
use windrow_core::stats::tally::FailedAttempts;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::handling::handler::Workers;

/// Most tasks with their own series.
pub(super) const TASKS_MAX: usize = 200;
/// Time for which a task's series remain after it stops running.
pub(super) const KEPT: Duration = Duration::from_secs(600);
/// Label value for all remaining tasks.
pub(super) const OTHER: &str = "other";

/// State of a task at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TaskSample {
    pub(super) task: TaskId,
    pub(super) business: String,
    pub(super) counters: Counters,
    pub(super) total: u64,
    /// Target rate in items per second; `None` if unpaced.
    pub(super) target_rate: Option<f64>,
    pub(super) watermark: u64,
    pub(super) window: u64,
    pub(super) window_used: u64,
    /// Stall times in the order of [`StallReason::ALL`].
    pub(super) stalled: [Duration; StallReason::ALL.len()],
    pub(super) latency_p95: Option<Duration>,
    pub(super) autopilot: Option<Picture>,
    /// Use of each meter.
    pub(super) costs: Vec<MeterPicture>,
    /// Counters at the start of the current runs.
    pub(super) began: Counters,
    pub(super) head_age: Duration,
    /// Remaining error budget, in millionths.
    pub(super) budget_left_ppm: Option<u32>,
    pub(super) unsaved_for: Duration,
    pub(super) is_handler_down: bool,
    /// Worker processes of its runs; `None` if its handler has none.
    pub(super) workers: Option<Workers>,
}

/// Returns the state of all running tasks, summed over their shards.
pub(super) fn samples<'a>(runs: impl Iterator<Item = &'a RunView>) -> Vec<TaskSample> {
    let mut samples: BTreeMap<TaskId, TaskSample> = BTreeMap::new();
    for run in runs {
        let task = run.shard.task;
        let sample = samples.entry(task).or_insert_with(|| TaskSample {
            task,
            business: run.business.clone(),
            counters: Counters::default(),
            total: 0,
            target_rate: None,
            watermark: u64::MAX,
            window: 0,
            window_used: 0,
            stalled: [Duration::ZERO; StallReason::ALL.len()],
            latency_p95: None,
            autopilot: None,
            costs: Vec::new(),
            began: Counters::default(),
            head_age: Duration::ZERO,
            budget_left_ppm: None,
            unsaved_for: Duration::ZERO,
            is_handler_down: false,
            workers: None,
        });
        sample.add(run);
    }
    samples.into_values().collect()
}

impl TaskSample {
    /// Returns the settled share of the items to be done.
    pub(super) fn progress(&self) -> f64 {
        Completion::of(&self.counters, ItemCount(self.total)).ratio()
    }

    fn add(&mut self, view: &RunView) {
        let run = &view.progress;
        self.began = self.began.plus(&view.began);
        self.is_handler_down |= run.handler.outage.is_some();
        let workers = self.workers.into_iter().chain(view.workers);
        self.workers = workers.reduce(Workers::plus);
        self.head_age = self.head_age.max(run.head_age);
        self.unsaved_for = self.unsaved_for.max(view.unsaved_for);
        self.budget_left_ppm = [self.budget_left_ppm, run.budget_left_ppm]
            .into_iter()
            .flatten()
            .min();
        self.counters = self.counters.plus(&run.counters);
        self.total += run.total.0;
        if let Some(rate) = run.rate {
            self.target_rate = Some(self.target_rate.unwrap_or(0.0) + rate.as_per_second());
        }
        self.watermark = self.watermark.min(run.watermark.0);
        self.window += u64::from(run.window);
        self.window_used += run.high_water.0.saturating_sub(run.watermark.0);
        for (sum, time) in self.stalled.iter_mut().zip(run.stalled) {
            *sum += time;
        }
        self.latency_p95 = self.latency_p95.max(run.latency_p95);
        let found = self.autopilot.into_iter().chain(run.autopilot);
        self.autopilot = found.reduce(Picture::join);
        let costs = std::mem::take(&mut self.costs).into_iter();
        self.costs = MeterPicture::sum(costs.chain(run.costs.iter().cloned()));
    }
}

/// Record of a task between looks.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) sample: TaskSample,
    /// Attempts sent from this node per second, as on all surfaces; `None` while unknown.
    pub(super) actual_rate: Option<f64>,
    pub(super) has_own: bool,
    pub(super) gone_at: Option<Moment>,
    /// Status of the task; set when it no longer runs and the store was read.
    pub(super) status: Option<Status>,
    pub(super) delays: Histogram,
    pub(super) failed_attempts: FailedAttempts,
}

/// Sums over tasks without their own series. They never decrease.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Others {
    pub(super) succeeded: u64,
    pub(super) skipped: u64,
    pub(super) failed: u64,
    pub(super) stalled: [Duration; StallReason::ALL.len()],
    pub(super) delays: Histogram,
    pub(super) failed_attempts: FailedAttempts,
}

/// Last known state of all recent tasks.
#[derive(Debug, Default)]
pub(super) struct Board {
    pub(super) entries: BTreeMap<TaskId, Entry>,
    pub(super) others: Others,
    pub(super) calls: Calls,
    pub(super) ends: Ends,
}

impl Board {
    /// Records live runs and ended runs, and returns the tasks whose end must be read from the store. Runs that have
    /// ended are removed from `live`.
    pub(super) fn take_in(&mut self, live: &mut Vec<RunView>, ended: &[RunView], now: Moment) -> Vec<TaskId> {
        let key = |run: &RunView| (run.shard, run.run);
        let over: BTreeSet<(ShardId, RunNo)> = ended.iter().map(key).collect();
        let seen: BTreeMap<ShardId, RunNo> = live.iter().map(key).collect();
        live.retain(|run| !over.contains(&key(run)));
        // If a shard runs again, its new run shows the current state.
        let is_last = |run: &&RunView| seen.get(&run.shard).is_none_or(|live| *live == run.run);
        let newest: BTreeMap<ShardId, &RunView> =
            ended.iter().filter(is_last).map(|run| (run.shard, run)).collect();
        let unknown = self.look(samples(live.iter()), samples(newest.into_values()), now);
        live.iter().for_each(|run| self.count(run, false));
        ended.iter().for_each(|run| self.count(run, true));
        self.calls.forget_all_but(&seen);
        unknown
    }

    /// Records the tasks that run now and those that ended since the last look. Returns the tasks whose end must be
    /// read from the store.
    pub(super) fn look(
        &mut self,
        samples: Vec<TaskSample>,
        ended: Vec<TaskSample>,
        now: Moment,
    ) -> Vec<TaskId> {
        let live: BTreeSet<TaskId> = samples.iter().map(|sample| sample.task).collect();
        for sample in ended.into_iter().chain(samples) {
            self.see(sample);
        }
        for (task, entry) in &mut self.entries {
            if !live.contains(task) && entry.gone_at.is_none() {
                entry.gone_at = Some(now);
                entry.actual_rate = None;
            }
        }
        self.entries
            .retain(|_, entry| entry.gone_at.is_none_or(|at| now.since(at) < KEPT));
        let unknown = self
            .entries
            .values()
            .filter(|entry| entry.gone_at.is_some() && entry.status.is_none_or(is_passing));
        unknown.map(|entry| entry.sample.task).collect()
    }

    /// Records the stored state of a task that no longer runs.
    pub(super) fn settle(&mut self, task: TaskId, counters: Counters, status: Status) {
        if let Some(entry) = self.entries.get_mut(&task) {
            let mut sample = entry.sample.clone();
            sample.counters = counters;
            let gone_at = entry.gone_at;
            self.see(sample);
            if let Some(entry) = self.entries.get_mut(&task) {
                (entry.gone_at, entry.status) = (gone_at, Some(status));
            }
        }
    }

    fn see(&mut self, sample: TaskSample) {
        let before = self.entries.get(&sample.task);
        // Decided once per task, so that nothing is counted twice.
        let has_room = || self.entries.values().filter(|entry| entry.has_own).count() < TASKS_MAX;
        let has_own = before.map_or_else(has_room, |entry| entry.has_own);
        if !has_own {
            self.others.add(before.map(|entry| &entry.sample), &sample);
        }
        let before = self.entries.remove(&sample.task);
        let (delays, failed) = before
            .map(|entry| (entry.delays, entry.failed_attempts))
            .unwrap_or_default();
        let task = sample.task;
        let entry = Entry {
            actual_rate: None,
            has_own,
            gone_at: None,
            status: None,
            delays,
            failed_attempts: failed,
            sample,
        };
        self.entries.insert(task, entry);
    }
}

/// Returns true if the status is transient for a task that no longer runs.
fn is_passing(status: Status) -> bool {
    matches!(status, Status::Stopping | Status::Finalizing)
}

impl Others {
    /// Adds the increase since the last look. For a new task, only counts since its runs began are added.
    fn add(&mut self, before: Option<&TaskSample>, now: &TaskSample) {
        let (old, new) = (before.map_or(now.began, |before| before.counters), now.counters);
        self.succeeded += new.succeeded.saturating_sub(old.succeeded);
        self.skipped += new.skipped.saturating_sub(old.skipped);
        self.failed += new.failed.saturating_sub(old.failed);
        for (at, sum) in self.stalled.iter_mut().enumerate() {
            let then = before.map_or(Duration::ZERO, |before| before.stalled[at]);
            *sum += now.stalled[at].saturating_sub(then);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn sample(task: i64, succeeded: u64) -> TaskSample {
        TaskSample {
            task: TaskId(task),
            business: "b".to_owned(),
            counters: Counters {
                succeeded,
                ..Counters::default()
            },
            total: 1000,
            target_rate: Some(10.0),
            watermark: succeeded,
            window: 64,
            window_used: 0,
            stalled: [Duration::ZERO; StallReason::ALL.len()],
            latency_p95: None,
            autopilot: None,
            costs: Vec::new(),
            began: Counters {
                succeeded,
                ..Counters::default()
            },
            head_age: Duration::ZERO,
            budget_left_ppm: None,
            unsaved_for: Duration::ZERO,
            is_handler_down: false,
            workers: None,
        }
    }

    #[test]
    fn a_task_has_series_until_a_while_after_its_end_and_ends_with_what_the_store_says() {
        let mut board = Board::default();
        board.look(vec![sample(1, 10)], vec![], Moment(SECOND));
        board.look(vec![sample(1, 30)], vec![], Moment(2 * SECOND));
        assert_eq!(
            board.look(vec![], vec![], Moment(3 * SECOND)),
            [TaskId(1)],
            "its end has to be read"
        );
        board.settle(
            TaskId(1),
            Counters {
                succeeded: 35,
                ..Counters::default()
            },
            Status::Finished,
        );
        let entry = &board.entries[&TaskId(1)];
        assert_eq!(entry.sample.counters.succeeded, 35);
        assert_eq!(board.look(vec![], vec![], Moment(4 * SECOND)), [], "once");
        board.look(vec![], vec![], Moment(3 * SECOND + KEPT.as_nanos() as u64));
        assert!(board.entries.is_empty());
    }

    #[test]
    fn more_tasks_than_there_may_be_share_series_that_only_grow() {
        let mut board = Board::default();
        let all = |done: u64| (1..=1000).map(|task| sample(task, done)).collect::<Vec<_>>();
        board.look(all(5), vec![], Moment(SECOND));
        board.look(all(7), vec![], Moment(2 * SECOND));
        assert_eq!(
            board.entries.values().filter(|entry| entry.has_own).count(),
            TASKS_MAX
        );
        assert_eq!(board.others.succeeded, 800 * 2);
        board.look(vec![], vec![], Moment(3 * SECOND));
        assert_eq!(board.others.succeeded, 800 * 2, "an end takes nothing away");
    }

    #[test]
    fn a_run_that_nobody_saw_alive_is_counted_also_among_the_others() {
        let mut board = Board::default();
        assert_eq!(
            board.look(vec![], vec![sample(1, 35)], Moment(SECOND)),
            [TaskId(1)]
        );
        assert_eq!(board.entries[&TaskId(1)].sample.counters.succeeded, 35);
        assert!(board.entries[&TaskId(1)].gone_at.is_some());
        let others = (2..=400).map(|task| sample(task, 1)).collect();
        board.look(others, vec![], Moment(2 * SECOND));
        let short = TaskSample {
            began: Counters {
                succeeded: 2,
                ..Counters::default()
            },
            ..sample(500, 9)
        };
        board.look(vec![], vec![short], Moment(3 * SECOND));
        assert_eq!(
            board.others.succeeded, 7,
            "what its run did, not what was done before"
        );
    }
}
