//! What the parts of a node count for people who watch it. Written where it happens, read by whoever shows it.
//!
//! Nothing here is touched once per item: a transaction, a heartbeat, a batch of lines, a run's end.

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

/// Reasons of recoveries that are counted each.
const REASONS_MAX: usize = 50;

/// For so long after a write found no room the database's disk counts as full: heartbeats and checkpoints are tried more often.
const STORE_FULL_FOR: Duration = Duration::from_secs(10);

/// What becomes of a run that can't save so many answers, since the disk of the database is full.
pub fn store_full_text(unsaved: u64) -> String {
    match unsaved {
        0 => say::disk_full().to_string(),
        _ => say::disk_full_repeats(unsaved).to_string(),
    }
}

/// What became of a heartbeat, which renews the leases of all shards of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It was written.
    Renewed,
    /// It was not; trust decays.
    Failed,
    /// Another node took over.
    Fenced,
}

impl Renewal {
    /// All of them.
    pub const ALL: [Renewal; 3] = [Renewal::Renewed, Renewal::Failed, Renewal::Fenced];

    /// The word that people see.
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
    /// How long they took.
    pub took: Histogram,
    /// How many failed.
    pub errors: u64,
}

windrow_core::slugs! {
    /// What became of a hint among nodes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum HintFate {
        /// It was given to Redis.
        Sent = "sent",
        /// It came from another node.
        Heard = "heard",
        /// It was lost here: too many, or Redis away. Polling finds the same.
        Dropped = "dropped",
        /// It could not be read: forged, or of another version.
        Unreadable = "unreadable",
    }
}

windrow_core::slugs! {
    /// What became of a copy of a dataset.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CopyFate {
        /// Readers find what is current.
        Copied = "copied",
        /// It was taken away, as people wanted.
        Removed = "removed",
        /// It failed and is tried again.
        Failed = "failed",
        /// It was gone, and is made again.
        Lost = "lost",
    }
}

windrow_core::slugs! {
    /// What became of a publication that was worked out here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PublicationFate {
        /// It was published, or withheld since a later one came first.
        Done = "done",
        /// It is tried again by itself.
        Retried = "retried",
        /// Its task stopped.
        Failed = "failed",
    }
}

windrow_core::slugs! {
    /// What became of a request to append items.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AppendFate {
        /// They were.
        Appended = "appended",
        /// They were before, with the same key.
        Repeated = "repeated",
        /// Too many wait.
        Full = "full",
        /// Refused for another reason.
        Refused = "refused",
        /// The store failed.
        Failed = "failed",
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Meters {
    lease_trips: Mutex<Histogram>,
    lease_failures: AtomicU64,
    hints: [AtomicU64; 4],
    redis: Mutex<Option<Result<(), String>>>,
    checkpoints: Mutex<Histogram>,
    checkpoint_errors: AtomicU64,
    unsaved: Mutex<Unsaved>,
    /// When a write last found no room.
    store_full_at: Mutex<Option<Moment>>,
    renewals: [AtomicU64; 3],
    fenced_runs: AtomicU64,
    recoveries: Mutex<BTreeMap<String, u64>>,
    lines: [AtomicU64; 4],
    dropped: [AtomicU64; 2],
    queries: Mutex<BTreeMap<&'static str, Queries>>,
    fires: [AtomicU64; 6],
    fires_late: Mutex<Histogram>,
    /// Written, and not.
    archived: [AtomicU64; 2],
    copies: [AtomicU64; 4],
    /// Datasets whose copies are behind, and the longest time; none where none is copied.
    sinks: Mutex<Option<(u64, Duration)>>,
    publications: [AtomicU64; 3],
    appends: [AtomicU64; 5],
    appended_items: AtomicU64,
}

impl Meters {
    /// A transaction of checkpoints that began then is over now.
    pub fn checkpointed(&self, is_stored: bool, began: Moment, now: Moment) {
        lock(&self.checkpoints).record(now.since(began), 1);
        lock(&self.unsaved).tried(is_stored, began, now);
        if !is_stored {
            self.checkpoint_errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Transactions of checkpoints, and how many of them failed.
    pub fn checkpoints(&self) -> (Histogram, u64) {
        (
            lock(&self.checkpoints).clone(),
            self.checkpoint_errors.load(Ordering::Relaxed),
        )
    }

    /// The newest time in which the database took no checkpoint, if it was long enough for people to hear of.
    pub fn unsaved(&self, now: Moment) -> Option<Spell> {
        let (from, to) = lock(&self.unsaved).newest(now)?;
        Some(Spell {
            from: now.since(from),
            to: now.since(to),
        })
    }

    /// A write failed; notes whether that was for want of room.
    pub fn not_written(&self, error: &StoreError, now: Moment) {
        if error.is_full() {
            *lock(&self.store_full_at) = Some(now);
        }
    }

    /// Whether the disk of the database is full, as far as was noticed recently.
    pub fn is_store_full(&self, now: Moment) -> bool {
        lock(&self.store_full_at).is_some_and(|at| now.since(at) < STORE_FULL_FOR)
    }

    /// A heartbeat was sent.
    pub fn renewed(&self, result: Renewal) {
        self.renewals[result as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Heartbeats with this result.
    pub fn renewals(&self, result: Renewal) -> u64 {
        self.renewals[result as usize].load(Ordering::Relaxed)
    }

    /// A round trip to the lease store took so long.
    pub fn lease_trip(&self, took: Duration, is_answered: bool) {
        lock(&self.lease_trips).record(took, 1);
        if !is_answered {
            self.lease_failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Round trips to the lease store, and how many of them failed.
    pub fn lease_trips(&self) -> (Histogram, u64) {
        (
            lock(&self.lease_trips).clone(),
            self.lease_failures.load(Ordering::Relaxed),
        )
    }

    /// Hints to or from other nodes.
    pub fn hinted(&self, fate: HintFate, hints: u64) {
        self.hints[fate as usize].fetch_add(hints, Ordering::Relaxed);
    }

    /// Hints with this fate.
    pub fn hints(&self, fate: HintFate) -> u64 {
        self.hints[fate as usize].load(Ordering::Relaxed)
    }

    /// Whether Redis answers, or why it doesn't. Says whether that is news.
    pub fn redis_is(&self, state: Result<(), String>) -> bool {
        let mut known = lock(&self.redis);
        let is_news = known.as_ref().is_none_or(|known| known.is_ok() != state.is_ok());
        *known = Some(state);
        is_news
    }

    /// Whether Redis answers, or why it doesn't; none where it isn't used.
    pub fn redis(&self) -> Option<Result<(), String>> {
        lock(&self.redis).clone()
    }

    /// A run ended because somebody else owns its shard.
    pub fn fenced(&self) {
        self.fenced_runs.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs that ended so.
    pub fn fenced_runs(&self) -> u64 {
        self.fenced_runs.load(Ordering::Relaxed)
    }

    /// A run ended and will be tried again.
    pub fn recovers(&self, reason: &str) {
        let mut recoveries = lock(&self.recoveries);
        let is_counted = recoveries.len() < REASONS_MAX || recoveries.contains_key(reason);
        *recoveries
            .entry(if is_counted { reason } else { "other" }.to_owned())
            .or_default() += 1;
    }

    /// Runs that are tried again, by reason.
    pub fn recoveries(&self) -> BTreeMap<String, u64> {
        lock(&self.recoveries).clone()
    }

    /// Lines of the data log were stored.
    pub fn stored_lines(&self, level: LogLevel, lines: u64) {
        self.lines[level as usize].fetch_add(lines, Ordering::Relaxed);
    }

    /// Lines stored of a level.
    pub fn lines(&self, level: LogLevel) -> u64 {
        self.lines[level as usize].load(Ordering::Relaxed)
    }

    /// Lines of the data log are gone. Age and number are not told apart: one statement removes both.
    pub fn dropped_lines(&self, reason: DropReason, lines: u64) {
        self.dropped[usize::from(reason == DropReason::Queue)].fetch_add(lines, Ordering::Relaxed);
    }

    /// Lines that are gone: because they were not to be kept longer, and because they came too fast.
    pub fn dropped(&self) -> [(&'static str, u64); 2] {
        let [retention, queue] = &self.dropped;
        [
            ("retention", retention.load(Ordering::Relaxed)),
            ("queue", queue.load(Ordering::Relaxed)),
        ]
    }

    /// Fires of schedules came to this, as this node decided.
    pub fn fired(&self, outcome: FireOutcome, fires: u64) {
        self.fires[outcome as usize].fetch_add(fires, Ordering::Relaxed);
    }

    /// Fires that came to this.
    pub fn fires(&self, outcome: FireOutcome) -> u64 {
        self.fires[outcome as usize].load(Ordering::Relaxed)
    }

    /// A fire was decided so long after it was due.
    pub fn fired_late(&self, late: Duration) {
        lock(&self.fires_late).record(late, 1);
    }

    /// A copy of a dataset came to this.
    pub fn copied(&self, fate: CopyFate) {
        self.copies[fate as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Copies that came to this.
    pub fn copies(&self, fate: CopyFate) -> u64 {
        self.copies[fate as usize].load(Ordering::Relaxed)
    }

    /// So many datasets have copies that are behind, the oldest for so long.
    pub fn sinks_are(&self, behind: u64, lag: Duration) {
        *lock(&self.sinks) = Some((behind, lag));
    }

    /// How many datasets have copies that are behind, and the longest time; none where this node copies none.
    pub fn sinks(&self) -> Option<(u64, Duration)> {
        *lock(&self.sinks)
    }

    /// A task that was to be deleted was written to the archive, or could not be.
    pub fn archived(&self, is_written: bool) {
        self.archived[usize::from(!is_written)].fetch_add(1, Ordering::Relaxed);
    }

    /// Tasks by whether they could be written to the archive.
    pub fn archives(&self) -> [(&'static str, u64); 2] {
        let [written, failed] = &self.archived;
        [
            ("written", written.load(Ordering::Relaxed)),
            ("failed", failed.load(Ordering::Relaxed)),
        ]
    }

    /// A publication came to this.
    pub fn published(&self, fate: PublicationFate) {
        self.publications[fate as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Publications that came to this.
    pub fn publications(&self, fate: PublicationFate) -> u64 {
        self.publications[fate as usize].load(Ordering::Relaxed)
    }

    /// A request to append so many items came to this.
    pub fn append_asked(&self, fate: AppendFate, items: u64) {
        self.appends[fate as usize].fetch_add(1, Ordering::Relaxed);
        if fate == AppendFate::Appended {
            self.appended_items.fetch_add(items, Ordering::Relaxed);
        }
    }

    /// Requests to append items that came to this.
    pub fn appends(&self, fate: AppendFate) -> u64 {
        self.appends[fate as usize].load(Ordering::Relaxed)
    }

    /// Items that were appended.
    pub fn appended_items(&self) -> u64 {
        self.appended_items.load(Ordering::Relaxed)
    }

    /// How long after they were due fires were decided.
    pub fn fires_late(&self) -> Histogram {
        lock(&self.fires_late).clone()
    }

    /// A statement of the store took so long.
    pub fn queried(&self, op: &'static str, took: Duration, failed: bool) {
        let mut queries = lock(&self.queries);
        let of = queries.entry(op).or_default();
        of.took.record(took, 1);
        of.errors += u64::from(failed);
    }

    /// The statements by kind.
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
