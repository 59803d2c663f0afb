//! Counters of the parts of a node, for people who watch it. Written where things happen, read by code that shows
//! them.
//!
//! Nothing here is touched once per item, only per transaction, heartbeat, batch of lines, or end of a run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use windrow_words::engine as say;

use crate::ports::StoreError;
use crate::ports::handling::data_log::DropReason;
use crate::ports::handling::handler::LogLevel;
use crate::ports::handling::unsaved::Unsaved;
use crate::ports::schedules::store::FireOutcome;
use windrow_core::explain::Spell;
use windrow_core::ids::Moment;
use windrow_core::stats::histogram::Histogram;

/// Maximum number of reasons of recoveries that are counted separately.
const REASONS_MAX: usize = 50;

/// Time after a write found no room for which the database's disk counts as full: heartbeats and checkpoints are
/// tried more often.
const STORE_FULL_FOR: Duration = Duration::from_secs(10);

/// Returns the text about a run with `unsaved` answers that can't be saved, since the disk of the database is full.
pub fn store_full_text(unsaved: u64) -> String {
    match unsaved {
        0 => say::disk_full().to_string(),
        _ => say::disk_full_repeats(unsaved).to_string(),
    }
}

/// Result of a heartbeat, which renews the leases of all shards of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The heartbeat was written.
    Renewed,
    /// The heartbeat was not written; the session's validity decays.
    Failed,
    /// Another node took over the session's shards.
    Fenced,
}

impl Renewal {
    /// All results of a heartbeat.
    pub const ALL: [Renewal; 3] = [Renewal::Renewed, Renewal::Failed, Renewal::Fenced];

    /// Returns the word that people see.
    pub fn as_str(self) -> &'static str {
        match self {
            Renewal::Renewed => "renewed",
            Renewal::Failed => "failed",
            Renewal::Fenced => "fenced",
        }
    }
}

/// Statements of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queries {
    /// Durations of the statements.
    pub took: Histogram,
    /// Number of failed statements.
    pub errors: u64,
}

windrow_core::slugs! {
    /// Fate of a hint among nodes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum HintFate {
        /// Given to Redis for other nodes.
        Sent = "sent",
        /// Received from another node.
        Heard = "heard",
        /// Lost here: too many, or Redis away. Polling finds the same.
        Dropped = "dropped",
        /// Unreadable: forged, or of another version.
        Unreadable = "unreadable",
    }
}

windrow_core::slugs! {
    /// Outcome of a copy of a dataset.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CopyFate {
        /// Readers find the current generation.
        Copied = "copied",
        /// The copy was removed, as people wanted.
        Removed = "removed",
        /// The copy failed and is tried again.
        Failed = "failed",
        /// The copy was gone and is made again.
        Lost = "lost",
    }
}

windrow_core::slugs! {
    /// Outcome of a publication prepared on this node.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PublicationFate {
        /// Published, or withheld since a later one came first.
        Done = "done",
        /// Failed, and tried again automatically.
        Retried = "retried",
        /// Failed, and its task stopped.
        Failed = "failed",
    }
}

windrow_core::slugs! {
    /// Outcome of a request to append items.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AppendFate {
        /// The items were appended.
        Appended = "appended",
        /// The items were appended before, with the same key.
        Repeated = "repeated",
        /// Too many items wait.
        Full = "full",
        /// Refused for another reason.
        Refused = "refused",
        /// The store failed during it.
        Failed = "failed",
    }
}

/// Counters of a node, written by its parts.
#[derive(Debug, Default)]
pub struct Meters {
    lease_trips: Mutex<Histogram>,
    lease_failures: AtomicU64,
    hints: [AtomicU64; 4],
    redis: Mutex<Option<Result<(), String>>>,
    checkpoints: Mutex<Histogram>,
    checkpoint_errors: AtomicU64,
    unsaved: Mutex<Unsaved>,
    /// Time at which a write last found no room.
    store_full_at: Mutex<Option<Moment>>,
    renewals: [AtomicU64; 3],
    fenced_runs: AtomicU64,
    recoveries: Mutex<BTreeMap<String, u64>>,
    lines: [AtomicU64; 4],
    dropped: [AtomicU64; 2],
    queries: Mutex<BTreeMap<&'static str, Queries>>,
    fires: [AtomicU64; 6],
    fires_late: Mutex<Histogram>,
    /// Tasks written to the archive, and those that could not be.
    archived: [AtomicU64; 2],
    copies: [AtomicU64; 4],
    /// Datasets whose copies are behind, and the longest lag; `None` if none is copied.
    sinks: Mutex<Option<(u64, Duration)>>,
    publications: [AtomicU64; 3],
    appends: [AtomicU64; 5],
    appended_items: AtomicU64,
}

impl Meters {
    /// Records a transaction of checkpoints that began at `began` and is over now.
    pub fn checkpointed(&self, is_stored: bool, began: Moment, now: Moment) {
        lock(&self.checkpoints).record(now.since(began), 1);
        lock(&self.unsaved).tried(is_stored, began, now);
        if !is_stored {
            self.checkpoint_errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the durations of checkpoint transactions, and the number that failed.
    pub fn checkpoints(&self) -> (Histogram, u64) {
        (
            lock(&self.checkpoints).clone(),
            self.checkpoint_errors.load(Ordering::Relaxed),
        )
    }

    /// Returns the newest period in which the database took no checkpoint, if it was long enough to tell people.
    pub fn unsaved(&self, now: Moment) -> Option<Spell> {
        let (from, to) = lock(&self.unsaved).newest(now)?;
        Some(Spell {
            from: now.since(from),
            to: now.since(to),
        })
    }

    /// Records a failed write, if it failed for lack of room.
    pub fn not_written(&self, error: &StoreError, now: Moment) {
        if error.is_full() {
            *lock(&self.store_full_at) = Some(now);
        }
    }

    /// True if the disk of the database is full, as far as recently noticed.
    pub fn is_store_full(&self, now: Moment) -> bool {
        lock(&self.store_full_at).is_some_and(|at| now.since(at) < STORE_FULL_FOR)
    }

    /// Counts a heartbeat by its result.
    pub fn renewed(&self, result: Renewal) {
        self.renewals[result as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of heartbeats with this result.
    pub fn renewals(&self, result: Renewal) -> u64 {
        self.renewals[result as usize].load(Ordering::Relaxed)
    }

    /// Records the duration of a round trip to the lease store.
    pub fn lease_trip(&self, took: Duration, is_answered: bool) {
        lock(&self.lease_trips).record(took, 1);
        if !is_answered {
            self.lease_failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the durations of round trips to the lease store, and the number that failed.
    pub fn lease_trips(&self) -> (Histogram, u64) {
        (
            lock(&self.lease_trips).clone(),
            self.lease_failures.load(Ordering::Relaxed),
        )
    }

    /// Counts hints to or from other nodes.
    pub fn hinted(&self, fate: HintFate, hints: u64) {
        self.hints[fate as usize].fetch_add(hints, Ordering::Relaxed);
    }

    /// Returns the number of hints with this fate.
    pub fn hints(&self, fate: HintFate) -> u64 {
        self.hints[fate as usize].load(Ordering::Relaxed)
    }

    /// Records whether Redis answers, or why it doesn't. Returns true if that is news.
    pub fn redis_is(&self, state: Result<(), String>) -> bool {
        let mut known = lock(&self.redis);
        let is_news = known.as_ref().is_none_or(|known| known.is_ok() != state.is_ok());
        *known = Some(state);
        is_news
    }

    /// Returns an error with the reason if Redis doesn't answer; `None` if it isn't used.
    pub fn redis(&self) -> Option<Result<(), String>> {
        lock(&self.redis).clone()
    }

    /// Counts a run that ended because someone else owns its shard.
    pub fn fenced(&self) {
        self.fenced_runs.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of runs that ended that way.
    pub fn fenced_runs(&self) -> u64 {
        self.fenced_runs.load(Ordering::Relaxed)
    }

    /// Counts a run that ended and will be tried again.
    pub fn recovers(&self, reason: &str) {
        let mut recoveries = lock(&self.recoveries);
        let is_counted = recoveries.len() < REASONS_MAX || recoveries.contains_key(reason);
        *recoveries
            .entry(if is_counted { reason } else { "other" }.to_owned())
            .or_default() += 1;
    }

    /// Returns the number of runs that are tried again, by reason.
    pub fn recoveries(&self) -> BTreeMap<String, u64> {
        lock(&self.recoveries).clone()
    }

    /// Counts stored lines of the data log.
    pub fn stored_lines(&self, level: LogLevel, lines: u64) {
        self.lines[level as usize].fetch_add(lines, Ordering::Relaxed);
    }

    /// Returns the number of stored lines of a level.
    pub fn lines(&self, level: LogLevel) -> u64 {
        self.lines[level as usize].load(Ordering::Relaxed)
    }

    /// Counts lost lines of the data log. Age and number are not separated: one statement removes both.
    pub fn dropped_lines(&self, reason: DropReason, lines: u64) {
        self.dropped[usize::from(reason == DropReason::Queue)].fetch_add(lines, Ordering::Relaxed);
    }

    /// Returns the number of lost lines: beyond the retention, and those that came too fast.
    pub fn dropped(&self) -> [(&'static str, u64); 2] {
        let [retention, queue] = &self.dropped;
        [
            ("retention", retention.load(Ordering::Relaxed)),
            ("queue", queue.load(Ordering::Relaxed)),
        ]
    }

    /// Counts fires of schedules with this outcome, as this node decided.
    pub fn fired(&self, outcome: FireOutcome, fires: u64) {
        self.fires[outcome as usize].fetch_add(fires, Ordering::Relaxed);
    }

    /// Returns the number of fires with this outcome.
    pub fn fires(&self, outcome: FireOutcome) -> u64 {
        self.fires[outcome as usize].load(Ordering::Relaxed)
    }

    /// Records the delay with which a fire was decided.
    pub fn fired_late(&self, late: Duration) {
        lock(&self.fires_late).record(late, 1);
    }

    /// Counts a copy of a dataset by its outcome.
    pub fn copied(&self, fate: CopyFate) {
        self.copies[fate as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of copies with this outcome.
    pub fn copies(&self, fate: CopyFate) -> u64 {
        self.copies[fate as usize].load(Ordering::Relaxed)
    }

    /// Sets the number of datasets whose copies are behind, and the longest lag.
    pub fn sinks_are(&self, behind: u64, lag: Duration) {
        *lock(&self.sinks) = Some((behind, lag));
    }

    /// Returns the number of datasets whose copies are behind, and the longest lag; `None` if this node copies none.
    pub fn sinks(&self) -> Option<(u64, Duration)> {
        *lock(&self.sinks)
    }

    /// Counts a task to be deleted that was written to the archive, or could not be.
    pub fn archived(&self, is_written: bool) {
        self.archived[usize::from(!is_written)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of tasks written to the archive, and of those that could not be.
    pub fn archives(&self) -> [(&'static str, u64); 2] {
        let [written, failed] = &self.archived;
        [
            ("written", written.load(Ordering::Relaxed)),
            ("failed", failed.load(Ordering::Relaxed)),
        ]
    }

    /// Counts a publication by its outcome.
    pub fn published(&self, fate: PublicationFate) {
        self.publications[fate as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of publications with this outcome.
    pub fn publications(&self, fate: PublicationFate) -> u64 {
        self.publications[fate as usize].load(Ordering::Relaxed)
    }

    /// Counts a request to append `items` items by its outcome.
    pub fn append_asked(&self, fate: AppendFate, items: u64) {
        self.appends[fate as usize].fetch_add(1, Ordering::Relaxed);
        if fate == AppendFate::Appended {
            self.appended_items.fetch_add(items, Ordering::Relaxed);
        }
    }

    /// Returns the number of append requests with this outcome.
    pub fn appends(&self, fate: AppendFate) -> u64 {
        self.appends[fate as usize].load(Ordering::Relaxed)
    }

    /// Returns the number of appended items.
    pub fn appended_items(&self) -> u64 {
        self.appended_items.load(Ordering::Relaxed)
    }

    /// Returns the delays with which fires were decided.
    pub fn fires_late(&self) -> Histogram {
        lock(&self.fires_late).clone()
    }

    /// Records the duration of a statement of the store.
    pub fn queried(&self, op: &'static str, took: Duration, failed: bool) {
        let mut queries = lock(&self.queries);
        let of = queries.entry(op).or_default();
        of.took.record(took, 1);
        of.errors += u64::from(failed);
    }

    /// Returns the statements by kind.
    pub fn queries(&self) -> BTreeMap<&'static str, Queries> {
        lock(&self.queries).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_is_full_until_no_write_has_found_it_so_for_a_while() {
        let (meters, at) = (Meters::default(), |s| Moment(0).plus(Duration::from_secs(s)));
        let failed = |text: &str| StoreError::Unavailable(text.to_owned());
        meters.not_written(&failed("the store did not answer in time"), at(1));
        assert!(!meters.is_store_full(at(1)), "another reason");
        meters.not_written(&failed("(code: 13) database or disk is full"), at(2));
        assert!(meters.is_store_full(at(11)) && !meters.is_store_full(at(12)));
        assert!(store_full_text(7).contains("up to 7 items may be called again"));
        assert!(!store_full_text(0).contains("again"), "nothing is unsaved");
    }
}
