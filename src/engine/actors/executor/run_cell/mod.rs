//! State that the lanes of one run share with their executor and launcher: the core behind a mutex, and everything
//! that it drives.
//!
//! A lane locks the core once per exchange, never across an await. The generation is compared under that lock: a lane
//! of a dead executor gets no grant, and its reports are dropped.

mod counted;
mod heard;
mod limited;
mod metered;
mod parts;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;

pub(crate) use limited::{LimitSlots, in_order};
pub(crate) use parts::{Ask, Drives, Exchanged, Refused, RunAbout};

use crate::actors::executor::lane_reply::Said;
use crate::actors::executor::reply_lines::{Drafted, ReplyLines};
use crate::actors::executor::results::Results;
use crate::actors::runtime::lock;
use crate::ports::clock::Clock;
use crate::ports::handling::data_log::DataLogLine;
use windrow_core::execution::{Effects, Event, Execution, Now, Progress, Reports};
use windrow_core::handler::journal::Journal;
use windrow_core::ids::{Generation, Moment, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::settings::RateLimit;
use windrow_core::task::Tuning;

/// Error for a lane whose executor is gone; it must end without reporting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superseded;

/// Error after a panic inside a step of the core: its state can't be trusted, and the run must be restored from the
/// store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoreBroken;

/// Callback for the system's log lines; when full, it drops and counts them.
pub(crate) type LogSink = Arc<dyn Fn(DataLogLine) + Send + Sync>;

struct Guarded {
    execution: Execution,
    lines: ReplyLines,
    results: Results,
    generation: Generation,
    /// Set while the core knows that a shared limit keeps it from having all that it asked for.
    is_held: bool,
}

impl Guarded {
    /// True if a checkpoint would hold nothing and none is on its way.
    #[inline]
    fn is_quiet(&self) -> bool {
        self.execution.is_quiet() && self.lines.is_empty() && self.results.is_empty()
    }
}

pub(crate) struct RunCell {
    drives: Drives,
    /// Call timeout in nanoseconds; changes live.
    pub(crate) timeout_ns: AtomicU64,
    /// Items per call; changes live.
    pub(crate) batch: AtomicUsize,
    /// Number of wanted lanes, at least one. Lanes with higher numbers retire.
    lanes_wanted: AtomicUsize,
    core: Mutex<Guarded>,
    lanes: AtomicUsize,
    lanes_gone: Notify,
    checkpoint_asked: AtomicBool,
    /// Set while the executor has nothing to save and ticks rarely; reset by the next change, which notifies it.
    quiet: AtomicBool,
    violations: AtomicU64,
    /// Counters in the store when the run began.
    pub(crate) began: Counters,
    pub(crate) began_at: Moment,
    /// Time of the last save of progress, in nanoseconds of the clock.
    saved_at: AtomicU64,
    /// Rate that the node has no room for, or `None` while the run has all of its rate.
    held_back: Mutex<Option<Refused>>,
}

impl Deref for RunCell {
    type Target = Drives;

    fn deref(&self) -> &Drives {
        &self.drives
    }
}

impl RunCell {
    pub(crate) fn new(
        drives: Drives,
        execution: Execution,
        (lines, results): (ReplyLines, Results),
    ) -> RunCell {
        let now = now(&*drives.clock);
        let tuning = execution.tuning();
        RunCell {
            began: execution.progress(now).counters,
            began_at: now.moment,
            saved_at: AtomicU64::new(now.moment.0),
            held_back: Mutex::new(None),
            timeout_ns: AtomicU64::new(nanos(tuning.timeout)),
            batch: AtomicUsize::new(tuning.batch.get() as usize),
            lanes_wanted: AtomicUsize::new(1),
            core: Mutex::new(Guarded {
                execution,
                lines,
                results,
                generation: Generation(0),
                is_held: false,
            }),
            lanes: AtomicUsize::new(0),
            lanes_gone: Notify::new(),
            checkpoint_asked: AtomicBool::new(false),
            quiet: AtomicBool::new(false),
            violations: AtomicU64::new(0),
            drives,
        }
    }

    /// Notes that the node has no room for the rate `wanted`; `rate` applies instead.
    pub(crate) fn hold_back(&self, rate: RateLimit, wanted: RateLimit, why: String) {
        let mut held_back = lock(&self.held_back);
        let since = held_back
            .as_ref()
            .map_or_else(|| self.clock.now(), |refused| refused.since);
        *held_back = Some(Refused {
            rate,
            wanted,
            why,
            since,
        });
    }

    /// Notes that the run has all of its rate.
    pub(crate) fn let_grow(&self) {
        *lock(&self.held_back) = None;
    }

    /// Returns what [`RunCell::hold_back`] noted, if it still applies.
    pub(crate) fn held_back(&self) -> Option<Refused> {
        lock(&self.held_back).clone()
    }

    pub(crate) fn now(&self) -> Now {
        now(&*self.clock)
    }

    /// Applies the timeout and batch of changed settings.
    pub(crate) fn tune(&self, tuning: &Tuning) {
        self.timeout_ns.store(nanos(tuning.timeout), Ordering::Relaxed);
        self.batch.store(tuning.batch.get() as usize, Ordering::Relaxed);
    }

    /// Reports replies with their log lines and asks for up to `want` items. The result also asks for a checkpoint if
    /// one is due.
    pub(crate) fn exchange(
        &self,
        generation: Generation,
        (reports, said): (&mut Reports, &mut Said),
        want: u32,
        fx: &mut Effects,
    ) -> Result<Exchanged, Superseded> {
        fx.clear();
        let now = self.now();
        let gate_open = self.gate.is_open(now.moment);
        let want = if gate_open { want } else { 0 };
        if self.limits.is_limited() {
            return self.exchange_limited((generation, gate_open), (reports, said), want, now, fx);
        }
        let mut core = self.core.lock().map_err(|_| Superseded)?;
        if core.generation != generation {
            return Err(Superseded);
        }
        if core.is_held {
            core.hold(false, now, fx);
        }
        core.execution.step(Event::Exchange { reports, want }, now, fx);
        Ok(self.exchanged(core, said, (now, gate_open), fx))
    }

    fn exchanged(
        &self,
        mut core: MutexGuard<'_, Guarded>,
        said: &mut Said,
        (now, gate_open): (Now, bool),
        fx: &mut Effects,
    ) -> Exchanged {
        core.hear(said, now, fx);
        self.tell_limits(&mut core, now.moment);
        let stirs = self.quiet.load(Ordering::Relaxed) && !core.is_quiet();
        drop(core);
        if !fx.violations.is_empty() {
            self.on_violations(fx);
        }
        if fx.wake_lanes {
            self.wake.notify_waiters();
        }
        let is_due = fx.checkpoint_due && !self.checkpoint_asked.swap(true, Ordering::AcqRel);
        let stirs = stirs && self.quiet.swap(false, Ordering::AcqRel);
        let ask = if is_due {
            Some(Ask::Checkpoint)
        } else {
            stirs.then_some(Ask::Tick)
        };
        Exchanged {
            moment: now.moment,
            gate_open,
            ask,
            ask_at: None,
        }
    }

    /// Passes one event from outside the lanes to the core, and wakes the lanes, since it may change what they may
    /// do.
    pub(crate) fn tell(&self, event: Event<'_>, fx: &mut Effects) -> Result<(), CoreBroken> {
        fx.clear();
        let now = self.now();
        self.core
            .lock()
            .map_err(|_| CoreBroken)?
            .execution
            .step(event, now, fx);
        self.on_violations(fx);
        self.wake.notify_waiters();
        Ok(())
    }

    /// Returns a draft if there is something to save: the reports so far, with their log lines and outputs.
    pub(crate) fn draft(&self, fx: &mut Effects) -> Result<Option<Drafted>, CoreBroken> {
        fx.clear();
        self.checkpoint_asked.store(false, Ordering::Release);
        let now = self.now();
        let mut core = self.core.lock().map_err(|_| CoreBroken)?;
        core.execution.step(Event::DraftCheckpoint, now, fx);
        let drafted = fx.checkpoint.take().map(|draft| {
            let mut lines = core.lines.take_for(draft.no);
            if let Some(unit) = &draft.cost_missing {
                lines.miss_cost(self.shard, unit, now.wall);
            }
            let results = core.results.take_for(draft.no, draft.watermark);
            Drafted {
                draft,
                lines,
                results,
            }
        });
        drop(core);
        self.on_violations(fx);
        // Only a draft that takes something makes room.
        if drafted.is_some() {
            self.wake.notify_waiters();
        }
        Ok(drafted)
    }

    /// Returns true if there is nothing to save. From then on, the exchange that changes this says so, once.
    pub(crate) fn fall_quiet(&self) -> bool {
        let core = lock(&self.core);
        let is_quiet = core.is_quiet();
        self.quiet.store(is_quiet, Ordering::Relaxed);
        is_quiet
    }

    /// Silences every lane of earlier generations and tells the core that they are lost.
    pub(crate) fn begin_generation(&self, fx: &mut Effects) -> Result<Generation, CoreBroken> {
        fx.clear();
        let now = self.now();
        let mut core = self.core.lock().map_err(|_| CoreBroken)?;
        core.generation = Generation(core.generation.0 + 1);
        let generation = core.generation;
        core.execution.step(Event::LanesLost, now, fx);
        self.tell_limits(&mut core, now.moment);
        drop(core);
        self.on_violations(fx);
        Ok(generation)
    }

    /// Silences every lane without starting new ones.
    pub(crate) fn silence(&self) {
        let mut core = lock(&self.core);
        core.generation = Generation(core.generation.0 + 1);
        drop(core);
        self.wake.notify_waiters();
    }

    /// Returns the current progress. After a panic inside the core it is the last known one, for display only.
    pub(crate) fn progress(&self) -> Progress {
        let now = self.now();
        self.peek(|execution| execution.progress(now))
    }

    /// Writes new events of the handler to the data log.
    pub(crate) fn tell_of_handler(&self, journal: &mut Journal) {
        let now = self.now();
        let look =
            |execution: &Execution| journal.look(&execution.handler(now), execution.errors(), now.wall);
        for entry in self.peek(look) {
            (self.logs)(DataLogLine::of_handler(self.shard, now.wall, entry));
        }
    }

    /// Releases the lines and outputs up to draft `draft_no`, which is saved, and notes the time.
    pub(crate) fn on_saved(&self, draft_no: u64) {
        let mut core = lock(&self.core);
        core.lines.on_stored(draft_no);
        core.results.on_stored(draft_no);
        let (now, mut fx) = (self.now(), Effects::default());
        core.tell_fullness(now, &mut fx);
        drop(core);
        self.saved_at.store(self.clock.now().0, Ordering::Relaxed);
    }

    /// Returns the time of the last save of progress.
    pub(crate) fn saved_at(&self) -> Moment {
        Moment(self.saved_at.load(Ordering::Relaxed))
    }

    pub(crate) fn peek<T>(&self, look: impl FnOnce(&Execution) -> T) -> T {
        let core: MutexGuard<'_, Guarded> = lock(&self.core);
        look(&core.execution)
    }

    /// Returns the number of wanted lanes.
    #[inline]
    pub(crate) fn lanes_wanted(&self) -> usize {
        self.lanes_wanted.load(Ordering::Relaxed)
    }

    /// Sets the number of wanted lanes; surplus lanes retire once they have nothing in flight.
    pub(crate) fn want_lanes(&self, lanes: usize) {
        self.lanes_wanted.store(lanes.max(1), Ordering::Relaxed);
        self.wake.notify_waiters();
    }

    /// Returns the number of broken invariants found so far.
    pub(crate) fn violations(&self) -> u64 {
        self.violations.load(Ordering::Relaxed)
    }

    /// True if the core panicked or broke an invariant: an executor can't be restarted on it.
    pub(crate) fn is_broken(&self) -> bool {
        self.violations() > 0 || self.core.is_poisoned()
    }

    fn on_violations(&self, fx: &Effects) {
        for invariant in &fx.violations {
            self.violations.fetch_add(1, Ordering::Relaxed);
            tracing::error!(shard = %self.shard, invariant = invariant.as_str(), "invariant broken");
        }
    }

    /// Counts a lane until the guard is dropped.
    pub(crate) fn count_lane(self: &Arc<RunCell>) -> LaneGuard {
        self.lanes.fetch_add(1, Ordering::AcqRel);
        LaneGuard(self.clone())
    }

    /// Waits until no lane is left. Cancel safe.
    pub(crate) async fn lanes_gone(&self) {
        loop {
            let gone = self.lanes_gone.notified();
            if self.lanes.load(Ordering::Acquire) == 0 {
                return;
            }
            gone.await;
        }
    }
}

/// Returns the current monotonic and wall-clock time.
pub(crate) fn now(clock: &dyn Clock) -> Now {
    let moment = clock.now();
    let wall = WallMs(clock.wall_micros(moment) / 1000);
    Now { moment, wall }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Guard that counts a lane for as long as it lives, also when the lane is aborted or panics.
pub(crate) struct LaneGuard(Arc<RunCell>);

impl Drop for LaneGuard {
    fn drop(&mut self) {
        if self.0.lanes.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.lanes_gone.notify_waiters();
        }
    }
}
