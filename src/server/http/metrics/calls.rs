//! Attempts, call durations and dispatch delays. Counted by the runs and collected at each look.

use std::collections::BTreeMap;

use super::board::{Board, Entry, OTHER, TASKS_MAX, TaskSample};
use super::families as f;
use super::text::{Bounds, Page};
use crate::service::stats::RunView;
use windrow_core::handler::failed_calls::FailedCalls;
use windrow_core::ids::{RunNo, ShardId};
use windrow_core::stats::histogram::Histogram;
use windrow_core::stats::tally::Tally;

/// Buckets for calls: 1 ms to 1 min, finer around common objectives.
pub(super) const CALLS: &Bounds = &[
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 150_000, 200_000, 250_000, 300_000, 400_000,
    500_000, 750_000, 1_000_000, 1_500_000, 2_000_000, 2_500_000, 5_000_000, 7_500_000, 10_000_000,
    15_000_000, 30_000_000, 60_000_000,
];
/// Buckets for delays, transactions and statements: 10 µs to 30 s.
pub(super) const SHORT: &Bounds = &[
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 300_000,
    500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000,
];

/// Call counts collected from runs.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Last counts seen of each live run.
    seen: BTreeMap<(ShardId, RunNo), (Tally, FailedCalls)>,
    /// Call durations by business and kind of handler. As businesses are registered by people, the number of series
    /// is limited like that of tasks.
    by_business: BTreeMap<(String, &'static str), Histogram>,
    /// Failed calls by business, with the same limit on series.
    failed: BTreeMap<String, FailedCalls>,
}

impl Board {
    /// Adds the counts of a run since it was last seen. Its task must be recorded first.
    pub(super) fn count(&mut self, run: &RunView, is_over: bool) {
        let key = (run.shard, run.run);
        let before = self.calls.seen.remove(&key).unwrap_or_default();
        let (fresh, failed) = (run.tally.since(&before.0), run.failed_calls.since(&before.1));
        if !is_over {
            self.calls
                .seen
                .insert(key, (run.tally.clone(), run.failed_calls.clone()));
        }
        self.calls.add_failed(&run.business, &failed);
        self.calls.add(&run.business, run.kind, &fresh.calls);
        let (delays, failed) = match self
            .entries
            .get_mut(&run.shard.task)
            .filter(|entry| entry.has_own)
        {
            Some(entry) => (&mut entry.delays, &mut entry.failed_attempts),
            None => (&mut self.others.delays, &mut self.others.failed_attempts),
        };
        delays.add(&fresh.delays);
        failed.add(&fresh.failed);
    }
}

impl Calls {
    /// Drops runs whose end was missed because more runs ended between two looks than are kept.
    pub(super) fn forget_all_but(&mut self, live: &BTreeMap<ShardId, RunNo>) {
        self.seen.retain(|(shard, run), _| live.get(shard) == Some(run));
    }

    pub(super) fn add_failed(&mut self, business: &str, fresh: &FailedCalls) {
        let is_known = self.failed.len() < TASKS_MAX || self.failed.contains_key(business);
        let business = if is_known { business } else { OTHER };
        self.failed.entry(business.to_owned()).or_default().add(fresh);
    }

    pub(super) fn add(&mut self, business: &str, kind: &'static str, fresh: &Histogram) {
        let mut key = (business.to_owned(), kind);
        if !self.by_business.contains_key(&key) && self.by_business.len() >= TASKS_MAX {
            key = (OTHER.to_owned(), kind);
        }
        self.by_business.entry(key).or_default().add(fresh);
    }
}

pub(super) fn write(page: &mut Page, board: &Board, own: &[(String, &Entry)]) {
    write_attempts(page, board, own);
    let failed = board.calls.failed.iter().flat_map(|(business, failed)| {
        failed.iter().map(move |(class, code, count)| {
            let business = ("business", business.as_str());
            ([business, ("class", class.as_str()), ("code", code)], count)
        })
    });
    page.all(f::FAILED_CALLS, failed);
    let calls = board.calls.by_business.iter();
    let calls =
        calls.map(|((business, kind), calls)| ([("business", business.as_str()), ("kind", *kind)], calls));
    page.histograms(f::HANDLER_DURATION, CALLS, calls);
    let own = own
        .iter()
        .map(|(task, entry)| ([("task", task.as_str())], &entry.delays));
    let all = own.chain([([("task", OTHER)], &board.others.delays)]);
    page.histograms(f::DISPATCH_DELAY, SHORT, all);
}

/// Writes attempts. Successful ones equal the settled items, which are already counted; failed ones have a code.
fn write_attempts(page: &mut Page, board: &Board, own: &[(String, &Entry)]) {
    let others = &board.others;
    let all = own.iter().map(|(task, entry)| {
        let TaskSample {
            business, counters, ..
        } = &entry.sample;
        let good = [("ok", counters.succeeded), ("skip", counters.skipped)];
        (business.as_str(), task.as_str(), good, &entry.failed_attempts)
    });
    let good = [("ok", others.succeeded), ("skip", others.skipped)];
    let samples = all
        .chain([(OTHER, OTHER, good, &others.failed_attempts)])
        .flat_map(|(business, task, good, failed)| {
            let good = good.map(|(result, count)| (result, "", count)).into_iter();
            let bad = failed.iter();
            let bad =
                bad.flat_map(|(code, ended)| [("retry", code, ended.retry), ("fail", code, ended.fail)]);
            good.chain(bad).map(move |(result, code, count)| {
                let labels = [
                    ("business", business),
                    ("task", task),
                    ("result", result),
                    ("code", code),
                ];
                (labels, count)
            })
        });
    page.all(f::ITEM_ATTEMPTS, samples);
}
