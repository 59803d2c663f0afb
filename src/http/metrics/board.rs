//! What was last seen of tasks: at most so many have series of their own, and those go a while after the task's end.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::counters::Counters;
use crate::domain::execution::Progress;
use crate::domain::ids::{Moment, TaskId};
use crate::domain::stall::StallReason;
use crate::service::nodes::RunView;

/// Tasks with series of their own. (`ux.md` §2.9.)
pub(super) const TASKS_MAX: usize = 200;
/// How long a task's series stay after its end. (`ux.md` §2.9.)
pub(super) const KEPT: Duration = Duration::from_secs(600);
/// The label of all the others.
pub(super) const OTHER: &str = "other";

/// What is seen of a task at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sight {
    pub(super) task: TaskId,
    pub(super) business: String,
    pub(super) counters: Counters,
    pub(super) total: u64,
    /// Items per second; none is unpaced.
    pub(super) target_rate: Option<f64>,
    pub(super) low_water: u64,
    pub(super) window: u64,
    pub(super) window_used: u64,
    /// In the order of [`StallReason::ALL`].
    pub(super) stalled: [Duration; StallReason::ALL.len()],
    pub(super) latency_p95: Option<Duration>,
}

/// The sights of the tasks that run, their shards taken together.
pub(super) fn sights(runs: &[RunView]) -> Vec<Sight> {
    let mut sights: BTreeMap<TaskId, Sight> = BTreeMap::new();
    for run in runs {
        let task = run.shard.task;
        let sight = sights.entry(task).or_insert_with(|| Sight {
            task,
            business: run.business.clone(),
            counters: Counters::default(),
            total: 0,
            target_rate: None,
            low_water: u64::MAX,
            window: 0,
            window_used: 0,
            stalled: [Duration::ZERO; StallReason::ALL.len()],
            latency_p95: None,
        });
        sight.add(&run.progress);
    }
    sights.into_values().collect()
}

impl Sight {
    fn add(&mut self, run: &Progress) {
        self.counters = self.counters.plus(&run.counters);
        self.total += run.total.0;
        if let Some(rate) = run.rate {
            self.target_rate = Some(self.target_rate.unwrap_or(0.0) + rate.as_per_second());
        }
        self.low_water = self.low_water.min(run.low_water.0);
        self.window += u64::from(run.window);
        self.window_used += run.high_water.0.saturating_sub(run.low_water.0);
        for (sum, time) in self.stalled.iter_mut().zip(run.stalled) {
            *sum += time;
        }
        self.latency_p95 = self.latency_p95.max(run.latency_p95);
    }
}

/// What is remembered of a task.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) sight: Sight,
    /// Items per second, as seen between the last two sights.
    pub(super) actual_rate: f64,
    pub(super) has_own: bool,
    seen_at: Moment,
    pub(super) gone_at: Option<Moment>,
    /// How the task stands, once it doesn't run.
    pub(super) is_final: bool,
}

/// Sums over tasks without series of their own; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Others {
    pub(super) succeeded: u64,
    pub(super) skipped: u64,
    pub(super) abandoned: u64,
    pub(super) stalled: [Duration; StallReason::ALL.len()],
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Board {
    pub(super) entries: BTreeMap<TaskId, Entry>,
    pub(super) others: Others,
}

impl Board {
    /// Takes in what runs now; says which tasks ran before and don't any more.
    pub(super) fn look(&mut self, sights: Vec<Sight>, now: Moment) -> Vec<TaskId> {
        let live: Vec<TaskId> = sights.iter().map(|sight| sight.task).collect();
        for sight in sights {
            self.see(sight, now);
        }
        for (task, entry) in &mut self.entries {
            if !live.contains(task) && entry.gone_at.is_none() {
                entry.gone_at = Some(now);
                entry.actual_rate = 0.0;
            }
        }
        self.entries.retain(|_, entry| entry.gone_at.is_none_or(|at| now.since(at) < KEPT));
        let unknown = self.entries.values().filter(|entry| entry.gone_at.is_some() && !entry.is_final);
        unknown.map(|entry| entry.sight.task).collect()
    }

    /// What the store says of a task that no longer runs.
    pub(super) fn settle(&mut self, task: TaskId, counters: Counters) {
        if let Some(entry) = self.entries.get_mut(&task) {
            let mut sight = entry.sight.clone();
            sight.counters = counters;
            let seen_at = entry.seen_at;
            let gone_at = entry.gone_at;
            entry.is_final = true;
            self.see(sight, seen_at);
            if let Some(entry) = self.entries.get_mut(&task) {
                (entry.gone_at, entry.is_final, entry.actual_rate) = (gone_at, true, 0.0);
            }
        }
    }

    fn see(&mut self, sight: Sight, now: Moment) {
        let own = self.entries.values().filter(|entry| entry.has_own).count();
        let before = self.entries.get(&sight.task);
        let has_own = before.map_or(own < TASKS_MAX, |entry| entry.has_own);
        let mut actual_rate = before.map_or(0.0, |entry| entry.actual_rate);
        if let Some(entry) = before {
            let span = now.since(entry.seen_at).as_secs_f64();
            let settled = sight.counters.settled().saturating_sub(entry.sight.counters.settled());
            if span > 0.0 {
                actual_rate = settled as f64 / span;
            }
        }
        if !has_own {
            self.others.add(before.map(|entry| &entry.sight), &sight);
        }
        let entry = Entry { actual_rate, has_own, seen_at: now, gone_at: None, is_final: false, sight };
        self.entries.insert(entry.sight.task, entry);
    }
}

impl Others {
    /// Adds what came since; of a task that was never seen, nothing: what it did before isn't new.
    fn add(&mut self, before: Option<&Sight>, now: &Sight) {
        let Some(before) = before else { return };
        let (old, new) = (before.counters, now.counters);
        self.succeeded += new.succeeded.saturating_sub(old.succeeded);
        self.skipped += new.skipped.saturating_sub(old.skipped);
        self.abandoned += new.abandoned.saturating_sub(old.abandoned);
        for (at, sum) in self.stalled.iter_mut().enumerate() {
            *sum += now.stalled[at].saturating_sub(before.stalled[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn sight(task: i64, succeeded: u64) -> Sight {
        Sight {
            task: TaskId(task),
            business: "b".to_owned(),
            counters: Counters { succeeded, ..Counters::default() },
            total: 1000,
            target_rate: Some(10.0),
            low_water: succeeded,
            window: 64,
            window_used: 0,
            stalled: [Duration::ZERO; StallReason::ALL.len()],
            latency_p95: None,
        }
    }

    #[test]
    fn a_task_has_series_until_a_while_after_its_end_and_ends_with_what_the_store_says() {
        let mut board = Board::default();
        board.look(vec![sight(1, 10)], Moment(SECOND));
        board.look(vec![sight(1, 30)], Moment(2 * SECOND));
        assert_eq!(board.entries[&TaskId(1)].actual_rate, 20.0);
        assert_eq!(board.look(vec![], Moment(3 * SECOND)), [TaskId(1)], "its end has to be read");
        board.settle(TaskId(1), Counters { succeeded: 35, ..Counters::default() });
        let entry = &board.entries[&TaskId(1)];
        assert_eq!((entry.sight.counters.succeeded, entry.actual_rate), (35, 0.0));
        assert_eq!(board.look(vec![], Moment(4 * SECOND)), [], "once");
        board.look(vec![], Moment(3 * SECOND + KEPT.as_nanos() as u64));
        assert!(board.entries.is_empty());
    }

    #[test]
    fn more_tasks_than_there_may_be_share_series_that_only_grow() {
        let mut board = Board::default();
        let all = |done: u64| (1..=1000).map(|task| sight(task, done)).collect::<Vec<_>>();
        board.look(all(5), Moment(SECOND));
        board.look(all(7), Moment(2 * SECOND));
        assert_eq!(board.entries.values().filter(|entry| entry.has_own).count(), TASKS_MAX);
        assert_eq!(board.others.succeeded, 800 * 2);
        board.look(vec![], Moment(3 * SECOND));
        assert_eq!(board.others.succeeded, 800 * 2, "an end takes nothing away");
    }
}
