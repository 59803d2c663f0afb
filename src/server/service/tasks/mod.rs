//! What people and businesses do to tasks: one method a verb. A command whose end is reached already is no error.

pub(crate) mod fail;
pub mod ceiling;
pub mod change;
pub mod create;
mod fill;
pub(crate) mod hooks;
pub mod items;
pub mod line;
pub mod merge_patch;
pub mod outlook;
pub mod preview;
pub mod redrives;
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
use windrow_core::task::lifecycle::{DORMANT, Status, StopReason, Desired};
use windrow_engine::ports::handling::hook::HookCaller;
use windrow_engine::ports::sources::append::AppendStore;
use windrow_engine::ports::tasks::list::TaskList;
use windrow_engine::ports::tasks::store::{
    CommandError, CommandRefusal, TaskCommand, TaskEdit, TaskStore, TaskView, Write,
};

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOutcome {
    /// The task after it.
    pub task: TaskView,
    /// Whether it changed anything; not where the task was there already.
    pub is_new: bool,
}

/// People know that it is the items.
const AT_ONCE: Auto<Duration> = Auto::Fixed(Duration::ZERO);

/// How a task is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopHow {
    /// Calls in flight may finish.
    Drain,
    /// They are aborted.
    Now,
}

/// How a task is to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartHow {
    /// Not before this time; replaces the one that the task has.
    pub at: Option<WallMs>,
    /// Whether its items are judged by their attempts alone from now on; see [`TaskCommand::StartJudging`].
    pub judges: bool,
    /// Whether it is refused where it would only be warned of.
    pub strict: bool,
}

/// The tasks of this node's store.
pub struct Tasks {
    pub(super) node: Arc<ThisNode>,
    /// Where they are kept.
    pub store: Arc<dyn TaskStore>,
    pub(super) appends: Arc<dyn AppendStore>,
    pub(super) results: Results,
    /// Lists of tasks, runs and audit entries.
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
    /// A task as it is stored.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn get(&self, id: TaskId) -> Result<TaskView, ServiceError> {
        self.store.get(id).await?.ok_or_else(|| ServiceError::no_task(id))
    }

    /// Starts a task, or lets it go on. One that runs already is only told to judge its items, if it is to.
    ///
    /// # Errors
    /// `WrongState` while it stops or after it ended; `Conflict` after its deadline, and for a job; `Unprocessable` for a time
    /// that is over, and for what would be warned of.
    pub async fn start(
        &self,
        id: TaskId,
        how: StartHow,
        write: &Write,
    ) -> Result<CommandOutcome, ServiceError> {
        let StartHow { at, judges, strict } = how;
        let task = self.get(id).await?;
        refuse_late(&task, self.node.now())?;
        // Whoever asks for the same start again is told how it stands.
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
        // One that waits for another time is not there yet.
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

    /// Stops a task; it can be started again.
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

    /// Ends a task for good.
    ///
    /// # Errors
    /// `WrongState` after it finished.
    pub async fn cancel(&self, id: TaskId, write: &Write) -> Result<CommandOutcome, ServiceError> {
        let there = |task: &TaskView| {
            task.status == Status::Cancelled || (task.status == Status::Stopping && task.desired == Desired::Cancel)
        };
        self.obey(id, &TaskCommand::Cancel, write, there).await
    }

    /// Finishes a task early: what was not dispatched at or above `total` is excluded; without it, what was not
    /// dispatched at all.
    ///
    /// # Errors
    /// `WrongState`; `FieldsRefused` when the task isn't that long.
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

    /// Moves a running task, or one of its shards, to another node: what is in flight ends first, and nothing is done
    /// twice. Says how many shards move.
    ///
    /// # Errors
    /// `Conflict` or `Unprocessable` where that can't be, with what would do.
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

    /// Tries a recovering task now. Of a task whose end didn't add up, the end is proved again.
    ///
    /// # Errors
    /// `WrongState` in any other state.
    pub async fn recover(&self, id: TaskId, write: &Write) -> Result<CommandOutcome, ServiceError> {
        let there =
            |task: &TaskView| matches!(task.status, Status::Queued | Status::Running) && !sleeps(task);
        self.obey(id, &TaskCommand::Recover, write, there).await
    }

    /// The business is ready for a start, the present one unless it says which, and perhaps changes the task for it.
    ///
    /// # Errors
    /// `StaleStart` for another start than the present one; `WrongState` when nothing waits for it.
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
        // A repeat of an answer that was heard; one that would change something more is refused.
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
    /// `WrongState` before it ended; `Conflict` while a redrive of it hasn't.
    pub async fn delete(&self, id: TaskId, write: &Write) -> Result<(), ServiceError> {
        Ok(self.store.delete(id, write, self.node.now()).await?)
    }

    /// Gives a command unless the task is there already. `is_there` is asked again where the command came too late.
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

/// Whether it rests and its deadline is over.
pub(super) fn would_stop_at_once(task: &TaskView, now: WallMs) -> bool {
    let rests = matches!(task.status, Status::Created | Status::Stopped);
    rests && task.spec.deadline.is_some_and(|deadline| deadline <= now)
}

/// Whether it wants to run and rested too long for anybody to take it.
fn sleeps(task: &TaskView) -> bool {
    task.status_reason.as_deref() == Some(DORMANT)
}

/// No node can start it.
fn of_a_job(task: &TaskView) -> ServiceError {
    let name = task.spec.name.as_deref().unwrap_or_default();
    ServiceError::conflict(
        "it is a job, whose handler is made by the process that runs it",
        format!("windrow run --resume {name}"),
    )
}

/// Refuses to start a task that would stop at once.
fn refuse_late(task: &TaskView, now: WallMs) -> Result<(), ServiceError> {
    let Some(deadline) = task.spec.deadline.filter(|_| would_stop_at_once(task, now)) else {
        return Ok(());
    };
    let detail = format!(
        "its deadline, {}, is over: it would stop at once",
        deadline.to_rfc3339()
    );
    let id = task.id;
    let advice = format!(
        "move the deadline first: windrow task set {id} --deadline TIME, or take it away with --no-deadline"
    );
    Err(ServiceError::conflict(detail, advice))
}
