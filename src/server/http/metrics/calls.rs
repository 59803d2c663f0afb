//! Attempts, how long calls take, and how late items leave. Counted by the runs, taken in at each look.

use std::collections::{BTreeMap, BTreeSet};

use super::board::{Board, Entry, OTHER, TASKS_MAX};
use super::text::{Kind, Page, Span};
use crate::service::stats::RunView;
use windrow_core::handler::failed_calls::FailedCalls;
use windrow_core::ids::{RunNo, ShardId};
use windrow_core::stats::histogram::Histogram;
use windrow_core::stats::tally::{FailedAttempts, Tally};

/// Calls: 1 ms to 69 s.
const CALLS: Span = Span { first: 20, last: 36 };
/// Delays: 16 µs to 17 s.
const DELAYS: Span = Span { first: 14, last: 34 };

/// What was taken in of runs so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// As each run that is live was seen last.
    seen: BTreeMap<(ShardId, RunNo), (Tally, FailedCalls)>,
    /// By business and kind of handler. Businesses are registered by people: as many have series as tasks have.
    by_business: BTreeMap<(String, &'static str), Histogram>,
    /// Failed calls by business; as many of those have series.
    failed: BTreeMap<String, FailedCalls>,
}

impl Board {
    /// Takes in what a run counted since it was seen last; its task must have been looked at before.
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
            Some(entry) => (&mut entry.delays, &mut entry.failed),
            None => (&mut self.others.delays, &mut self.others.failed),
        };
        delays.add(&fresh.delays);
        failed.add(&fresh.failed);
    }
}

impl Calls {
    /// Forgets runs whose end was never seen: more ended between two looks than are kept.
    pub(super) fn forget_all_but(&mut self, live: &[RunView]) {
        let live: BTreeSet<(ShardId, RunNo)> = live.iter().map(|run| (run.shard, run.run)).collect();
        self.seen.retain(|run, _| live.contains(run));
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
    let help = "Calls that brought no success since this process began, by whose fault they are";
    let mut family = page.family("windrow_failed_calls_total", Kind::Counter, help);
    for (business, failed) in &board.calls.failed {
        for (class, code, count) in failed.iter() {
            let labels = [
                ("business", business.as_str()),
                ("class", class.as_str()),
                ("code", code),
            ];
            family.sample(&labels, count as f64);
        }
    }
    let help = "How long calls took; what answers at once, in this process, is not among them";
    let mut family = page.family("windrow_handler_duration_seconds", Kind::Histogram, help);
    for ((business, kind), calls) in &board.calls.by_business {
        family.histogram(&[("business", business), ("kind", kind)], calls, CALLS);
    }
    let help = "From the time at which the rate allowed an item to leave until it left";
    let mut family = page.family("windrow_dispatch_delay_seconds", Kind::Histogram, help);
    let all = own.iter().map(|(task, entry)| (task.as_str(), &entry.delays));
    for (task, delays) in all.chain([(OTHER, &board.others.delays)]) {
        family.histogram(&[("task", task)], delays, DELAYS);
    }
}

/// A good attempt settles its item, so those are counted already; the others have a code.
fn write_attempts(page: &mut Page, board: &Board, own: &[(String, &Entry)]) {
    let help = "Attempts that came to something: those that went well since the task began, failed ones since this process did";
    let mut family = page.family("windrow_item_attempts_total", Kind::Counter, help);
    let others = &board.others;
    let all = own.iter().map(|(task, entry)| {
        let counters = &entry.sight.counters;
        let good = (counters.succeeded, counters.skipped);
        (task.as_str(), entry.sight.business.as_str(), good, &entry.failed)
    });
    let rest: (&str, &str, (u64, u64), &FailedAttempts) =
        (OTHER, OTHER, (others.succeeded, others.skipped), &others.failed);
    for (task, business, (ok, skip), failed) in all.chain([rest]) {
        let mut sample = |result, code: &str, count: u64| {
            let labels = [
                ("business", business),
                ("task", task),
                ("result", result),
                ("code", code),
            ];
            family.sample(&labels, count as f64);
        };
        sample("ok", "", ok);
        sample("skip", "", skip);
        for (code, ended) in failed.iter() {
            sample("retry", code, ended.retry);
            sample("abandon", code, ended.abandon);
        }
    }
}
