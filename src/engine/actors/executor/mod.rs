//! Owner of the lanes of one run: starts them, notices their end, asks the core for checkpoints, passes commands on.
//! It ends by failing (a lane panicked) or by reporting the run's last draft. Its parent restarts it on the same
//! `RunCell` once the old lanes are gone.

mod call_end;
mod calls;
mod departure;
pub(crate) mod gauge;
pub mod lane;
pub mod lane_reply;
pub mod reply_lines;
pub mod results;
pub mod row_feed;
pub mod run_cell;
pub mod run_directory;
pub mod run_view;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ractor::ActorProcessingErr;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinError};

use crate::actors::executor::lane::{Lane, LaneEnd, LaneNote, REREAD_AFTER, run_lane};
use crate::actors::executor::reply_lines::Drafted;
use crate::actors::executor::run_cell::{Ask, CoreBroken, RunCell, Superseded};
use crate::actors::runtime::actor::{Handled, TreeActor};
use crate::actors::runtime::address::Address;
use crate::actors::runtime::tree::Activity;
use crate::ports::ErrorClass;
use crate::ports::sources::source::SourceError;
use windrow_core::execution::{Command, Effects, Event, RunEnd};
use windrow_core::handler::journal::Journal;
use windrow_core::ids::Generation;
use windrow_core::task::lifecycle::StopReason;
use windrow_words::engine as say;

/// Delay of the first checkpoint: short, so that a run killed early has made progress. Later delays grow.
const FIRST_TICK: Duration = Duration::from_millis(50);
/// Intervals between ticks while there is nothing to save: thousands of runs may have hardly any calls.
const QUIET_INTERVALS: u32 = 10;

/// Result of a lane task, which may also have panicked.
pub(crate) type LaneResult = Result<Result<LaneEnd, Superseded>, JoinError>;

pub(crate) enum Msg {
    /// Time for a checkpoint; only the newest series of ticks counts.
    Tick(u64),
    CheckpointDue,
    /// There is something to save again after a quiet phase.
    Stirred,
    Stored(u64),
    /// The lane of this generation and number ended.
    LaneEnded(Generation, usize, LaneResult),
    /// The settings changed: new checkpoint interval and number of lanes.
    Paced(Duration, usize),
    /// Read-ahead stopped at a block that can't be read.
    SourceFault(SourceError),
    /// The rows of one call can't be read.
    RowFault(SourceError),
    Reread,
    Slots(Option<u32>),
    /// Abort the calls in flight; the run ends by the command already given to the core.
    Abort,
}

pub(crate) type DraftSink = Arc<dyn Fn(Drafted) + Send + Sync>;
/// Callback for when the handler has seen a newer run.
pub(crate) type StaleSink = Arc<dyn Fn(()) + Send + Sync>;

pub(crate) struct Arguments {
    pub(crate) cell: Arc<RunCell>,
    pub(crate) work: Handle,
    pub(crate) lanes: usize,
    pub(crate) interval: Duration,
    pub(crate) drafts: DraftSink,
    pub(crate) on_stale: StaleSink,
}

pub(crate) struct WindowExecutor {
    arguments: Arguments,
    me: Address<Msg>,
    generation: Generation,
    tasks: Vec<AbortHandle>,
    lanes_open: BTreeSet<usize>,
    /// Number of the current series of ticks; ticks of older series are ignored.
    ticks: u64,
    wait: Duration,
    /// Handler events already written to the data log.
    journal: Journal,
    fx: Effects,
    ended: bool,
}

impl TreeActor for WindowExecutor {
    type Msg = Msg;
    type Arguments = Arguments;

    async fn begin(me: Address<Msg>, arguments: Arguments) -> Result<Self, ActorProcessingErr> {
        let mut fx = Effects::default();
        let generation = arguments.cell.begin_generation(&mut fx).map_err(broken)?;
        // Before the first exchange of any lane: a handler whose workers are still starting has no slots.
        let slots = *arguments.cell.handler.slots().borrow();
        arguments
            .cell
            .tell(Event::HandlerSlots(slots), &mut fx)
            .map_err(broken)?;
        let mut executor = WindowExecutor {
            arguments,
            me,
            generation,
            tasks: Vec::new(),
            lanes_open: BTreeSet::new(),
            ticks: 0,
            wait: FIRST_TICK,
            journal: Journal::default(),
            fx,
            ended: false,
        };
        executor.start_lanes();
        executor.watch_slots();
        executor.read_ahead();
        executor.me.tell_after(executor.wait, Msg::Tick(executor.ticks));
        Ok(executor)
    }

    async fn handle(&mut self, message: Msg) -> Handled {
        match message {
            Msg::Tick(series) if series == self.ticks => self.on_tick(),
            Msg::Tick(_) => Ok(()),
            Msg::CheckpointDue => {
                self.tick_after(self.wait);
                self.draft()
            }
            Msg::Stirred => {
                self.tick_after(self.wait);
                Ok(())
            }
            Msg::Stored(no) => self.on_stored(no),
            Msg::LaneEnded(generation, no, end) => self.on_lane_ended(generation, no, end),
            Msg::Paced(interval, lanes) => {
                self.on_paced(interval, lanes);
                Ok(())
            }
            Msg::SourceFault(error) => {
                if error.class() == ErrorClass::Transient {
                    self.me.tell_after(REREAD_AFTER, Msg::Reread);
                }
                self.on_source_fault(error)
            }
            Msg::RowFault(error) => self.on_source_fault(error),
            Msg::Reread => {
                self.read_ahead();
                Ok(())
            }
            Msg::Slots(slots) => self.tell(Event::HandlerSlots(slots)),
            Msg::Abort => self.on_abort(),
        }
        .map_err(broken)
    }
}

fn broken(_: CoreBroken) -> ActorProcessingErr {
    ActorProcessingErr::from(say::core_broke().english())
}

impl WindowExecutor {
    /// Starts all wanted lanes that aren't running.
    fn start_lanes(&mut self) {
        let wanted = self.arguments.lanes.max(1);
        self.arguments.cell.want_lanes(wanted);
        for no in 0..wanted {
            if !self.lanes_open.contains(&no) {
                self.start_lane(no);
            }
        }
    }

    fn start_lane(&mut self, no: usize) {
        let me = self.me.clone();
        let note = Arc::new(move |note: LaneNote| {
            me.tell(match note {
                LaneNote::Ask(Ask::Checkpoint) => Msg::CheckpointDue,
                LaneNote::Ask(Ask::Tick) => Msg::Stirred,
                LaneNote::RowFault(error) => Msg::RowFault(error),
            });
        });
        let (cell, guard) = (self.arguments.cell.clone(), self.arguments.cell.count_lane());
        let work = || self.arguments.work.clone();
        let thread = cell.handler.thread().unwrap_or_else(work);
        let lane = Lane {
            cell,
            generation: self.generation,
            no,
            note,
        };
        let running = thread.spawn(async move {
            let _counted = guard;
            tokio::task::unconstrained(run_lane(lane)).await
        });
        self.tasks.retain(|task| !task.is_finished());
        self.tasks.push(running.abort_handle());
        self.lanes_open.insert(no);
        let (me, generation) = (self.me.clone(), self.generation);
        tokio::spawn(async move { me.tell(Msg::LaneEnded(generation, no, running.await)) });
    }

    /// Applies a new interval and number of lanes. The next checkpoint comes after the new interval at the latest.
    fn on_paced(&mut self, interval: Duration, lanes: usize) {
        if self.ended {
            return;
        }
        if interval != self.arguments.interval {
            self.arguments.interval = interval;
            self.wait = self.wait.min(interval);
            self.tick_after(self.wait);
        }
        if lanes != self.arguments.lanes {
            self.arguments.lanes = lanes;
            self.start_lanes();
        }
    }

    /// Follows the handler's slots; the initial number is known before the first exchange.
    fn watch_slots(&mut self) {
        let mut slots = self.arguments.cell.handler.slots();
        let me = self.me.clone();
        let watching = tokio::spawn(async move {
            loop {
                let now = *slots.borrow_and_update();
                if !me.tell(Msg::Slots(now)) || slots.changed().await.is_err() {
                    return;
                }
            }
        });
        self.tasks.push(watching.abort_handle());
    }

    fn read_ahead(&mut self) {
        let Some(feed) = self.arguments.cell.rows.clone() else {
            return;
        };
        let (cell, me) = (self.arguments.cell.clone(), self.me.clone());
        let reading = self.arguments.work.spawn(self.me.guard(async move {
            let mut fx = Effects::default();
            let places = || cell.peek(row_feed::Places::of);
            let on_ready = |upto| {
                if cell.tell(Event::SourceReady(upto), &mut fx).is_err() {
                    tracing::error!(shard = %cell.shard, "rows read for a run that failed");
                }
            };
            if let Err(error) = feed.read_ahead(places, on_ready).await {
                me.tell(Msg::SourceFault(error));
            }
        }));
        self.tasks.push(reading.abort_handle());
    }

    fn tell(&mut self, event: Event<'_>) -> Result<(), CoreBroken> {
        self.arguments.cell.tell(event, &mut self.fx)
    }

    fn on_tick(&mut self) -> Result<(), CoreBroken> {
        self.wait = (self.wait * 2).min(self.arguments.interval);
        let progress = self.arguments.cell.progress();
        let draining = self.arguments.cell.peek(|execution| execution.ending().is_some());
        let activity = if draining {
            Activity::Draining
        } else {
            Activity::Ok
        };
        let watermark = progress.watermark.0.to_string();
        let text = say::in_flight(progress.counters.in_flight, progress.concurrency, watermark);
        self.me.leaf.say(activity, text);
        self.arguments.cell.tell_of_handler(&mut self.journal);
        self.draft()?;
        let is_quiet = !self.ended && self.arguments.cell.fall_quiet();
        self.tick_after(if is_quiet {
            self.arguments.interval * QUIET_INTERVALS
        } else {
            self.wait
        });
        Ok(())
    }

    /// Schedules the next tick after `wait`; a tick scheduled earlier no longer counts.
    fn tick_after(&mut self, wait: Duration) {
        self.ticks += 1;
        self.me.tell_after(wait, Msg::Tick(self.ticks));
    }

    fn draft(&mut self) -> Result<(), CoreBroken> {
        let drafted = self.arguments.cell.draft(&mut self.fx)?;
        if self.arguments.cell.violations() > 0 {
            // The core can't be trusted any more: nothing of it is saved, and the run is restored.
            return Err(CoreBroken);
        }
        if self
            .arguments
            .cell
            .peek(|execution| execution.ending() == Some(&RunEnd::Fenced))
        {
            // A fenced run has no last draft, so nothing else would report its end.
            (self.arguments.on_stale)(());
            return Ok(());
        }
        if let Some(drafted) = drafted {
            self.ended |= drafted.draft.end.is_some();
            if self.ended {
                self.arguments.cell.tell_of_handler(&mut self.journal);
            }
            (self.arguments.drafts)(drafted);
        }
        Ok(())
    }

    /// Acknowledges a stored draft. The last draft may have had to wait for it.
    fn on_stored(&mut self, no: u64) -> Result<(), CoreBroken> {
        self.tell(Event::CheckpointStored(no))?;
        if self.lanes_open.is_empty() && !self.ended {
            self.draft()
        } else {
            Ok(())
        }
    }

    fn on_lane_ended(
        &mut self,
        generation: Generation,
        no: usize,
        end: LaneResult,
    ) -> Result<(), CoreBroken> {
        if generation != self.generation {
            return Ok(());
        }
        self.lanes_open.remove(&no);
        match end {
            Ok(Ok(LaneEnd::Drained)) if self.lanes_open.is_empty() => self.draft(),
            Ok(Ok(LaneEnd::Drained)) => Ok(()),
            Ok(Ok(LaneEnd::Retired)) => self.on_lane_retired(no),
            // The core is poisoned or it panicked: this executor ends, and its parent decides.
            Ok(Err(Superseded)) => Err(CoreBroken),
            Err(error) => {
                tracing::error!(actor = self.me.leaf.path(), %error, "lane panicked");
                Err(CoreBroken)
            }
        }
    }

    /// Starts the lane again if it is wanted by now, or drafts if the others have drained before.
    fn on_lane_retired(&mut self, no: usize) -> Result<(), CoreBroken> {
        if no < self.arguments.lanes {
            self.start_lane(no);
            return Ok(());
        }
        if self.lanes_open.is_empty() {
            self.draft()
        } else {
            Ok(())
        }
    }

    fn on_source_fault(&mut self, error: SourceError) -> Result<(), CoreBroken> {
        match error {
            SourceError::Unreadable(text) => {
                tracing::warn!(
                    actor = self.me.leaf.path(),
                    text,
                    "source unreadable; trying again"
                );
                Ok(())
            }
            SourceError::Changed(text) | SourceError::BadRow(text) => {
                let end = RunEnd::stopped(StopReason::SourceChanged, text);
                self.tell(Event::Command(Command::Stop(end)))
            }
        }
    }

    /// Drops the calls in flight. The core learns that their lanes are lost, which ends a stopping run.
    fn on_abort(&mut self) -> Result<(), CoreBroken> {
        if self.ended {
            return Ok(());
        }
        self.tasks.drain(..).for_each(|task| task.abort());
        self.generation = self.arguments.cell.begin_generation(&mut self.fx)?;
        self.lanes_open.clear();
        self.draft()
    }
}

impl Drop for WindowExecutor {
    /// Runs also when the actor is killed: its lanes get no grant and report nothing from here on.
    fn drop(&mut self) {
        self.arguments.cell.silence();
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}
