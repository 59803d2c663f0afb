//! Operations on tasks for people and businesses, one method each. A command for a state that is already reached is
//! not an error.

pub mod ceiling;
pub mod change;
pub mod create;
pub(crate) mod fail;
mod fill;
pub(crate) mod hooks;
pub mod items;
pub mod line;
pub mod merge_patch;
pub mod metered;
pub mod outlook;
pub mod preview;
pub mod redrives;
pub mod replays;
pub mod report;
pub mod settings;
pub mod show;
pub mod skip;
mod supply;
pub(super) mod turns;
pub mod window;

use std::sync::Arc;
use std::time::Duration;

use super::ServiceError;
use crate::service::businesses::Businesses;
use crate::service::cluster::Cluster;
use crate::service::failures::Failures;
use crate::service::limits::Limits;
use crate::service::node::ThisNode;
use crate::service::results::Results;
use crate::service::sources::Sources;
use crate::service::stats::Stats;
use crate::service::tasks::change::TaskChange;
use crate::service::tasks::outlook::Outlook;
use crate::service::tasks::turns::Turns;
use windrow_core::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use windrow_core::settings::Auto;
use windrow_core::settings::table::TuningPatch;
use windrow_core::task::lifecycle::{DORMANT, Desired, Status, StopReason};
use windrow_engine::ports::handling::hook::HookCaller;
use windrow_engine::ports::sources::append::AppendStore;
use windrow_engine::ports::tasks::list::TaskList;
use windrow_engine::ports::tasks::store::{
    CommandError, CommandRefusal, TaskCommand, TaskEdit, TaskStore, TaskView, Write,
};

/// Outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOutcome {
    /// Task after the command.
    pub task: TaskView,
    /// True if the command changed something; false if the task was already in that state.
    pub is_new: bool,
}

/// Setting of a start for which a person has already judged the items: no further evidence is awaited.
const AT_ONCE: Auto<Duration> = Auto::Fixed(Duration::ZERO);

/// Manner of stopping a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopHow {
    /// Let calls in flight finish.
    Drain,
    /// Abort the calls in flight.
    Now,
}

/// Options for starting a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartHow {
    /// Earliest start time; replaces the task's own.
    pub at: Option<WallMs>,
    /// True if items are judged by their own attempts alone from now on; see [`TaskCommand::StartJudging`].
    pub judges: bool,
    /// True if warnings are treated as errors.
    pub strict: bool,
}

/// Service for the tasks in this node's store.
pub struct Tasks {
    pub(super) node: Arc<ThisNode>,
    /// Store that keeps the tasks.
    pub store: Arc<dyn TaskStore>,
    pub(super) appends: Arc<dyn AppendStore>,
    pub(super) results: Results,
    /// Store for lists of tasks, runs and audit entries.
    pub lists: Arc<dyn TaskList>,
    pub(super) businesses: Arc<Businesses>,
    pub(super) limits: Arc<Limits>,
    pub(super) sources: Arc<Sources>,
    pub(super) failures: Arc<Failures>,
    pub(super) stats: Arc<Stats>,
    pub(super) cluster: Arc<Cluster>,
    pub(super) hooks: Arc<dyn HookCaller>,
    pub(super) turns: Turns,
}

impl Tasks {
    /// Returns a task as it is stored.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn get(&self, id: TaskId) -> Result<TaskView, ServiceError> {
        self.store.get(id).await?.ok_or_else(|| ServiceError::no_task(id))
    }

    /// Starts or resumes a task. If it is already running, only the request to judge its items takes effect.
    ///
    /// # Errors
    /// `WrongState` while it is stopping or after it ended; `Conflict` after its deadline, and for a job;
    /// `Unprocessable` for a start time in the past, and in strict mode for anything that would cause a warning.
    pub async fn start(
        &self,
        id: TaskId,
        how: StartHow,
        write: &Write,
    ) -> Result<CommandOutcome, ServiceError> {
        let StartHow { at, judges, strict } = how;
        let task = self.get(id).await?;
        refuse_late(&task, self.node.now())?;
        // Repeating the same start request returns the current state.
        self.check_start(at.filter(|_| task.spec.start_at != at))?;
        match self.businesses.find(&task.business).await? {
            None if matches!(task.status, Status::Created | Status::Stopped) => return Err(of_a_job(&task)),
            Some(business) if strict => {
                self.refuse_foreseen(&Outlook::going_on(&task).started(at), &business)
                    .await?;
            }
            _ => {}
        }
        let command = match at {
            _ if judges => TaskCommand::StartJudging(at),
            Some(at) => TaskCommand::StartAt(at),
            None => TaskCommand::Start,
        };
        let now = self.node.now();
        // A task that waits for another start time isn't in the requested state.
        let is_then = move |task: &TaskView| {
            let is_due = |at: Option<WallMs>| at.is_none_or(|at| at <= now);
            at.is_none() || task.spec.start_at == at || (is_due(at) && is_due(task.spec.start_at))
        };
        let there = move |task: &TaskView| {
            task.desired == Desired::Run && !task.status.is_terminal() && !sleeps(task) && is_then(task)
        };
        let told = self.obey(id, &command, write, there).await?;
        if told.is_new || !judges || told.task.tuning.judge_after == AT_ONCE {
            return Ok(told);
        }
        let tuning = TuningPatch {
            judge_after: Some(AT_ONCE),
            ..TuningPatch::default()
        };
        let change = TaskChange {
            tuning,
            ..TaskChange::default()
        };
        let task = self.change(id, None, change, write).await?;
        Ok(CommandOutcome { task, is_new: true })
    }

    /// Stops a task so that it can be started again.
    ///
    /// # Errors
    /// `WrongState` before it was started and after it ended.
    pub async fn stop(
        &self,
        id: TaskId,
        how: StopHow,
        write: &Write,
    ) -> Result<CommandOutcome, ServiceError> {
        let reason = if write.actor.source == "business" {
            StopReason::Business
        } else {
            StopReason::Operator
        };
        match how {
            StopHow::Drain => {
                let there = |task: &TaskView| matches!(task.status, Status::Stopping | Status::Stopped);
                self.obey(id, &TaskCommand::Stop { reason }, write, there).await
            }
            StopHow::Now => {
                let there = |task: &TaskView| {
                    let is_at_once = matches!(task.desired, Desired::StopNow | Desired::Cancel);
                    task.status == Status::Stopped || (task.status == Status::Stopping && is_at_once)
                };
                self.obey(id, &TaskCommand::StopNow, write, there).await
            }
        }
    }

    /// Cancels a task permanently.
    ///
    /// # Errors
    /// `WrongState` after it finished.
    pub async fn cancel(&self, id: TaskId, write: &Write) -> Result<CommandOutcome, ServiceError> {
        let there = |task: &TaskView| {
            task.status == Status::Cancelled
                || (task.status == Status::Stopping && task.desired == Desired::Cancel)
        };
        self.obey(id, &TaskCommand::Cancel, write, there).await
    }

    /// Finishes a task early. Excludes undispatched items at or above `total`; without it, all undispatched items.
    ///
    /// # Errors
    /// `WrongState`; `FieldsRefused` if the task has fewer items.
    pub async fn finish(
        &self,
        id: TaskId,
        total: Option<ItemCount>,
        write: &Write,
    ) -> Result<CommandOutcome, ServiceError> {
        let end = ItemIndex(total.map_or(0, |total| total.0));
        let there = move |task: &TaskView| task.finish_at.is_some_and(|at| at <= end);
        self.obey(id, &TaskCommand::Finish { end }, write, there).await
    }

    /// Moves a running task, or one of its shards, to another node. Calls in flight finish first, and nothing is done
    /// twice. Also returns the number of shards moved.
    ///
    /// # Errors
    /// `Conflict` or `Unprocessable` if that isn't possible, with advice.
    pub async fn move_shards(
        &self,
        id: TaskId,
        shard: Option<u32>,
        to: &str,
        write: &Write,
    ) -> Result<(TaskView, u32), ServiceError> {
        let moved = self
            .store
            .move_shards(id, shard, to, write, self.node.now())
            .await?;
        if !write.dry_run {
            self.node.look_at(id);
        }
        Ok((self.get(id).await?, moved))
    }

    /// Retries a recovering task now. For a task whose final counts didn't add up, repeats the check.
    ///
    /// # Errors
    /// `WrongState` in any other state.
    pub async fn recover(&self, id: TaskId, write: &Write) -> Result<CommandOutcome, ServiceError> {
        let there =
            |task: &TaskView| matches!(task.status, Status::Queued | Status::Running) && !sleeps(task);
        self.obey(id, &TaskCommand::Recover, write, there).await
    }

    /// Records that the business is ready for a start, by default the current one, with optional changes of the task.
    ///
    /// # Errors
    /// `StaleStart` for another start than the current one; `WrongState` if the task isn't waiting for it.
    pub async fn ready(
        &self,
        id: TaskId,
        start_no: Option<u32>,
        edit: TaskEdit,
        write: &Write,
    ) -> Result<CommandOutcome, ServiceError> {
        let present = self.get(id).await?.start_no;
        let start_no = start_no.unwrap_or(present);
        self.check_spec(&edit.spec)?;
        // A repeated notification is accepted, unless it would change something.
        let is_repeat = edit == TaskEdit::default();
        let there = move |task: &TaskView| {
            is_repeat && task.start_no == start_no && matches!(task.status, Status::Queued | Status::Running)
        };
        self.obey(
            id,
            &TaskCommand::Ready {
                start_no,
                edit: Box::new(edit),
            },
            write,
            there,
        )
        .await
    }

    /// Deletes a task that has ended.
    ///
    /// # Errors
    /// `WrongState` before it ended; `Conflict` while a redrive of it is unfinished.
    pub async fn delete(&self, id: TaskId, write: &Write) -> Result<(), ServiceError> {
        Ok(self.store.delete(id, write, self.node.now()).await?)
    }

    /// Executes a command unless the task is already in the target state. Checks `is_there` again if the command came
    /// too late.
    pub(super) async fn obey(
        &self,
        id: TaskId,
        command: &TaskCommand,
        write: &Write,
        is_there: impl Fn(&TaskView) -> bool + Send,
    ) -> Result<CommandOutcome, ServiceError> {
        let task = self.get(id).await?;
        if is_there(&task) {
            return Ok(CommandOutcome { task, is_new: false });
        }
        match self.store.command(id, command, write, self.node.now()).await {
            Ok(task) => {
                if !write.dry_run {
                    self.node.look_at(id);
                }
                Ok(CommandOutcome { task, is_new: true })
            }
            Err(CommandError::Refused(CommandRefusal::Status(refusal))) => {
                let task = self.get(id).await?;
                if is_there(&task) {
                    return Ok(CommandOutcome { task, is_new: false });
                }
                Err(ServiceError::WrongState(refusal))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns true if the task isn't started and its deadline has passed.
pub(super) fn would_stop_at_once(task: &TaskView, now: WallMs) -> bool {
    let rests = matches!(task.status, Status::Created | Status::Stopped);
    rests && task.spec.deadline.is_some_and(|deadline| deadline <= now)
}

/// Returns true if the task should run but has been idle too long for a node to resume it.
fn sleeps(task: &TaskView) -> bool {
    task.status_reason.as_deref() == Some(DORMANT)
}

/// Returns the error for starting a job's task, which no node can do.
fn of_a_job(task: &TaskView) -> ServiceError {
    let name = task.spec.name.as_deref().unwrap_or_default();
    ServiceError::conflict(
        "it is a job, which only the process that defines its handler can run",
        format!("windrow run --resume {name}"),
    )
}

/// Rejects the start of a task that would stop immediately.
fn refuse_late(task: &TaskView, now: WallMs) -> Result<(), ServiceError> {
    let Some(deadline) = task.spec.deadline.filter(|_| would_stop_at_once(task, now)) else {
        return Ok(());
    };
    let detail = format!(
        "its deadline, {}, has passed: it would stop at once",
        deadline.to_rfc3339()
    );
    let id = task.id;
    let advice = format!(
        "set a new deadline first: windrow task set {id} --deadline TIME, or remove it with --no-deadline"
    );
    Err(ServiceError::conflict(detail, advice))
}
