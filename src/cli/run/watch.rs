//! Observation of a running task: shows it, reacts to Ctrl-C, and never waits for ever.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval, timeout};

use super::super::exit::Exit;
use super::super::fault::Fault;
use super::super::signals::{ProcessSignal, Signals};
use super::end::outcome::Seen;
use super::picture::Picture;
use crate::output::screen::Screen;
use crate::output::table::human;
use crate::run::lines::RunLines;
use windrow_core::ids::{ItemIndex, Moment, TaskId};
use windrow_core::meter::metering::Metering;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::ErrorClass;
use windrow_engine::ports::handling::meters::{Meters, Renewal, store_full_text};
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::store::{TaskView, Write};
use windrow_node::Node;
use windrow_node::job_node::JobNode;
use windrow_server::service;
use windrow_server::service::failures::item_data::{Lookup, Members};
use windrow_server::service::tasks::StopHow;
use windrow_server::service::tasks::show::TaskPicture;
use windrow_server::service::{Service, ServiceError};

/// Interval between two updates of the display.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time that an immediate stop may take before the process ends without it.
const STOP_NOW_PATIENCE: Duration = Duration::from_secs(15);
/// Time that the second Ctrl-C waits for an orderly end.
const CUT_PATIENCE: Duration = Duration::from_millis(500);

/// Message for users while the database fails to write.
const SAVED_LATE: &str = "can't save progress right now (disk slow or full?); retrying, no data is \
    lost; -v shows why";

/// End of the observation of a task.
pub(super) enum End {
    /// Task that finished, was cancelled or stopped, with the observations of the run.
    Stopped(Box<TaskView>, Seen),
    /// Cut off by a second Ctrl-C.
    Cut,
}

/// Observer of one running task.
pub(super) struct Watch<'a> {
    pub(super) node: &'a Node,
    pub(super) service: &'a Service,
    pub(super) screen: &'a Screen,
    pub(super) write: &'a Write,
    /// Time limit for calls in flight to end.
    pub(super) drain_timeout: Duration,
    /// Items of the task; `members` selects the data that identifies them.
    pub(super) source: &'a dyn Source,
    /// Limits that the task starts with, if the last process died while stopping it.
    pub(super) metering: &'a Metering,
    pub(super) members: Members,
    /// Counters of failed database writes.
    pub(super) meters: &'a Meters,
    /// Reason why this process stops the task, set if no user asked for it.
    pub(super) stops_for: OnceLock<String>,
    /// Set once a signal has asked this process to stop.
    pub(super) is_interrupted: AtomicBool,
}

/// Progress of a stop, with its deadline.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Stopping {
    No,
    /// Calls in flight are awaited until this time.
    Calmly(Moment),
    /// Calls were cut off; the store has until this time.
    AtOnce(Moment),
}

impl Watch<'_> {
    /// Follows the task to its end.
    pub(super) async fn follow(&self, task: TaskView, signals: &mut Signals) -> Result<End, Fault> {
        let mut lines = RunLines::on(self.screen);
        let end = self.look_on(task, signals, &mut lines).await;
        lines.clear();
        end
    }

    async fn look_on(
        &self,
        task: TaskView,
        signals: &mut Signals,
        lines: &mut RunLines,
    ) -> Result<End, Fault> {
        let id = task.id;
        // The previous process died while stopping the task, which must be stopped before it can be started.
        let mut start_again = task.status == Status::Stopping;
        let (mut stopping, mut seen) = (Stopping::No, Seen::default());
        let (mut who, mut is_late_told) = (None, false);
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                asked = signals.next() => match asked {
                    ProcessSignal::Tree => self.screen.must_say(&self.node.tree().render("")),
                    ProcessSignal::Stop if stopping != Stopping::No => return self.cut(id).await,
                    // To a job, SIGHUP means that its terminal was closed.
                    ProcessSignal::Stop | ProcessSignal::Reload => stopping = self.interrupt(id).await?,
                },
                _ = looks.tick() => {}
            }
            self.tell_late(&mut is_late_told, &mut seen);
            let Some(view) = self.view(id).await? else {
                continue;
            };
            if view.status == Status::Stopped && start_again && stopping == Stopping::No {
                start_again = false;
                self.start_again(view).await?;
                continue;
            }
            let live = self.node.progress(id);
            let now = self.node.clock().wall();
            let picture = Box::pin(self.service.tasks.picture(view)).await;
            let failed = failed_item(&picture);
            if who.as_ref().map(|(index, _)| *index) != failed {
                who = self.who(failed).await;
            }
            let carried = who.as_ref().map_or("", |(_, carried)| carried.as_str());
            self.show(&Picture::of(&picture, &live, now), carried, lines);
            note(&picture, carried, &mut seen);
            let status = picture.task.status;
            if status.is_terminal() || status == Status::Stopped {
                return Ok(End::Stopped(Box::new(picture.task), seen));
            }
            stopping = self.hurry(id, stopping).await?;
        }
    }

    /// Stops the task because of a signal to this process.
    async fn interrupt(&self, id: TaskId) -> Result<Stopping, Fault> {
        self.is_interrupted.store(true, Ordering::Relaxed);
        self.stop(id).await
    }

    /// Reports once that the disk kept the database from writing in time. Records whether it is full.
    fn tell_late(&self, is_told: &mut bool, seen: &mut Seen) {
        let is_full = self.meters.is_store_full(self.node.clock().now());
        seen.disk_full |= is_full;
        let beats = [Renewal::Failed, Renewal::Fenced].map(|fate| self.meters.renewals(fate));
        let (_, checkpoints) = self.meters.checkpoints();
        if !*is_told && beats.into_iter().sum::<u64>() + checkpoints > 0 {
            *is_told = true;
            self.screen.say(&match is_full {
                true => format!("can't save progress right now: {}", store_full_text(0)),
                false => SAVED_LATE.to_owned(),
            });
        }
    }

    async fn start_again(&self, stopped: TaskView) -> Result<(), Fault> {
        let now = self.node.clock().wall();
        service::start_if_stopped(self.node.tasks(), stopped, self.metering, self.write, now).await?;
        self.node.wake();
        Ok(())
    }

    /// Reads the stored task, or returns `None` if the store can't be read now.
    async fn view(&self, id: TaskId) -> Result<Option<TaskView>, Fault> {
        if self.node.is_over() {
            return Err(match self.meters.is_store_full(self.node.clock().now()) {
                true => disk_full("the run ended because it could not save"),
                false => Fault::bug("the node ended before its task"),
            });
        }
        match self.node.tasks().get(id).await {
            Ok(Some(view)) => Ok(Some(view)),
            Ok(None) => Err(Fault::bug(format!("{id} is gone from the database"))),
            Err(error) if error.class() == ErrorClass::Transient => {
                tracing::debug!(%error, "can't read the task now");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the data of an item, as printed after its failure. A slow source delays nothing.
    async fn who(&self, failed: Option<ItemIndex>) -> Option<(ItemIndex, String)> {
        let index = failed?;
        let mut lookup = Lookup::new(self.source, &self.members);
        let found = timeout(LOOK_EVERY, lookup.item(index)).await.ok()?;
        Some((
            index,
            found.data.map(|data| human::who(data.get())).unwrap_or_default(),
        ))
    }

    fn show(&self, seen: &Picture, who: &str, lines: &mut RunLines) {
        let mut picture = seen.clone();
        if picture.subject.is_some() {
            who.clone_into(&mut picture.who);
        }
        let is_at_end = matches!(picture.status, Status::Stopping | Status::Stopped);
        if let Some(why) = self.stops_for.get().filter(|_| is_at_end) {
            picture.why = Some(why.clone());
        } else if is_at_end && self.is_interrupted.load(Ordering::Relaxed) {
            let by = if std::io::stderr().is_terminal() {
                "Ctrl-C"
            } else {
                "a signal"
            };
            picture.why = picture.why.map(|why| why.replace("command", by));
        }
        lines.show(self.screen, &picture, self.node.clock().now());
    }

    /// Stops the task and lets calls in flight end.
    pub(super) async fn stop(&self, id: TaskId) -> Result<Stopping, Fault> {
        let live = self.node.progress(id);
        let in_flight: u64 = live.iter().map(|live| live.counters.in_flight).sum();
        self.command_stop(id, false).await?;
        let waits = match in_flight {
            0 => String::new(),
            _ => format!("; waiting for {in_flight} in flight; Ctrl-C again aborts them"),
        };
        self.screen.say(&format!("stopping: no new calls{waits}"));
        Ok(Stopping::Calmly(self.node.clock().now().plus(self.drain_timeout)))
    }

    async fn command_stop(&self, id: TaskId, at_once: bool) -> Result<(), Fault> {
        let how = match at_once {
            true => StopHow::Now,
            false => StopHow::Drain,
        };
        let stopped = Box::pin(self.service.tasks.stop(id, how, self.write)).await;
        let full = self.meters.is_store_full(self.node.clock().now());
        match stopped {
            // The task has ended in the meantime.
            Ok(_) | Err(ServiceError::WrongState(_)) => Ok(()),
            Err(error) if full || matches!(error, ServiceError::StoreFull) => {
                Err(disk_full("the run ended without its last checkpoint"))
            }
            Err(error) => Err(Fault::new(Exit::Failed, "can't stop the task", error.to_string())),
        }
    }

    /// Turns a stop that takes too long into an immediate one, and fails if that takes too long as well.
    async fn hurry(&self, id: TaskId, stopping: Stopping) -> Result<Stopping, Fault> {
        let now = self.node.clock().now();
        match stopping {
            Stopping::Calmly(until) if now >= until => {
                self.screen.must_say(
                    "calls in flight did not end in time; they are aborted and will be \
                        repeated",
                );
                self.command_stop(id, true).await?;
                Ok(Stopping::AtOnce(now.plus(STOP_NOW_PATIENCE)))
            }
            Stopping::AtOnce(until) if now >= until => {
                if self.meters.is_store_full(now) {
                    return Err(disk_full("the run ended without its last checkpoint"));
                }
                let because = format!("it did not stop within {}s", STOP_NOW_PATIENCE.as_secs());
                Err(
                    Fault::new(Exit::Failed, "the run ended without its last checkpoint", because)
                        .hint("run the same command again: it resumes from the last checkpoint"),
                )
            }
            other => Ok(other),
        }
    }

    /// Attempts an orderly end without waiting for it: the rest ends with the process.
    async fn cut(&self, id: TaskId) -> Result<End, Fault> {
        if timeout(CUT_PATIENCE, self.command_stop(id, true)).await.is_err() {
            tracing::debug!("the store did not accept the stop in time");
        }
        Ok(End::Cut)
    }
}

/// Creates the fault for a run that ends on a full disk, with its consequences and the way to resume.
fn disk_full(what: &str) -> Fault {
    let because = "the progress disk is full: saved progress is safe, and items completed since the \
        last checkpoint are called again";
    Fault::new(Exit::Failed, what, because)
        .hint("free disk space, then run the same command again: it resumes from the last checkpoint")
}

/// Returns the item that failed last, while its failure is displayed. A handler that is down concerns no single item.
fn failed_item(seen: &TaskPicture) -> Option<ItemIndex> {
    let state = &seen.handler.state;
    seen.handler.text().filter(|_| state.outage.is_none())?;
    state.error.as_ref().map(|error| error.index)
}

/// Remembers the problem while the task runs: once it stops, nothing more is known about its handler.
fn note(picture: &TaskPicture, carried: &str, seen: &mut Seen) {
    if picture.task.status == Status::Running && picture.live.is_some() {
        seen.trouble = failed_call(picture).map(|call| call + carried);
    }
}

/// Returns the last failed call in full, while the bar mentions it: there a narrow terminal cuts it off.
fn failed_call(seen: &TaskPicture) -> Option<String> {
    seen.handler.text()?;
    let error = seen.handler.state.error.as_ref()?;
    Some(format!(
        "the last failed call: {} at item {}: {}",
        error.code, error.index.0, error.example
    ))
}

/// Shuts down the node; a signal cuts even that short. Returns true if it ended by itself.
pub(super) async fn close(node: JobNode, signals: &mut Signals, calmly: bool) -> bool {
    if !calmly {
        return timeout(CUT_PATIENCE, node.drain()).await.is_ok();
    }
    tokio::select! {
        in_time = node.drain() => {
            if !in_time {
                tracing::warn!("the node did not end in time");
            }
            true
        }
        () = signals.stop() => false,
    }
}
