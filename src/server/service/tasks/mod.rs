//! What people and businesses do to tasks: one method a verb. A command whose end is reached already is no error.

pub(crate) mod abandon;
pub mod change;
pub mod create;
pub(crate) mod hooks;
pub mod merge_patch;
pub mod outlook;
pub mod preview;
pub mod redrives;
pub mod report;
pub mod settings;
pub mod show;
pub mod window;

use std::time::Duration;

use super::{Service, ServiceError};
use crate::service::tasks::change::TaskChange;
use crate::service::tasks::outlook::Outlook;
use windrow_core::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use windrow_core::settings::patch::TuningPatch;
use windrow_core::task::lifecycle::{DORMANT, Status, StopReason, Wish};
use windrow_engine::ports::tasks::store::{
    Actor, CommandError, CommandRefusal, TaskCommand, TaskEdit, TaskView,
};

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The task after it.
    pub task: TaskView,
    /// Whether it changed anything; not where the task was there already.
    pub is_new: bool,
}

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

/// What a business changes when it is ready for a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadyChange {
    /// Which start it answers; none is the present one.
    pub start_no: Option<u32>,
    /// How many items.
    pub total: Option<ItemCount>,
    /// How many of them are left out at the head.
    pub skip_first: Option<ItemIndex>,
    /// The parameters as JSON text.
    pub params: Option<String>,
}

impl Service {
    /// A task as it is stored.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn task(&self, id: TaskId) -> Result<TaskView, ServiceError> {
        self.parts
            .tasks
            .get(id)
            .await?
            .ok_or_else(|| ServiceError::no_task(id))
    }

    /// Starts a task, or lets it go on. One that runs already is only told to judge its items, if it is to.
    ///
    /// # Errors
    /// `WrongState` while it stops or after it ended; `Conflict` after its deadline; `Unprocessable` for what would be warned of.
    pub async fn start_task(&self, id: TaskId, how: StartHow, actor: &Actor) -> Result<Told, ServiceError> {
        let StartHow { at, judges, strict } = how;
        let task = self.task(id).await?;
        if let Some(deadline) = task.deadline.filter(|_| self.would_stop_at_once(&task)) {
            let detail = format!(
                "its deadline, {}, is over: it would stop at once",
                deadline.to_rfc3339()
            );
            let advice = format!(
                "move the deadline first: windrow task set {id} --deadline TIME, or take it away with --no-deadline"
            );
            return Err(ServiceError::Conflict { detail, advice });
        }
        if strict {
            let business = self.business_of(&task).await?;
            self.refuse_foreseen(&Outlook::going_on(&task).started(at), &business)
                .await?;
        }
        let command = match at {
            _ if judges => TaskCommand::StartJudging(at),
            Some(at) => TaskCommand::StartAt(at),
            None => TaskCommand::Start,
        };
        let now = self.now();
        // One that waits for another time is not there yet.
        let is_then = move |task: &TaskView| {
            let is_due = |at: Option<WallMs>| at.is_none_or(|at| at <= now);
            at.is_none() || task.start_at == at || (is_due(at) && is_due(task.start_at))
        };
        let there = move |task: &TaskView| {
            task.wish == Wish::Run && !task.status.is_terminal() && !sleeps(task) && is_then(task)
        };
        let told = self.tell(id, &command, actor, there).await?;
        if told.is_new || !judges || told.task.tuning.judge_after.is_zero() {
            return Ok(told);
        }
        let tuning = TuningPatch {
            judge_after: Some(Duration::ZERO),
            ..TuningPatch::default()
        };
        let change = TaskChange {
            tuning,
            ..TaskChange::default()
        };
        let task = self.change_task(id, None, change, actor).await?;
        Ok(Told { task, is_new: true })
    }

    /// Stops a task; it can be started again.
    ///
    /// # Errors
    /// `WrongState` before it was started and after it ended.
    pub async fn stop_task(&self, id: TaskId, how: StopHow, actor: &Actor) -> Result<Told, ServiceError> {
        let reason = if actor.source == "business" {
            StopReason::Business
        } else {
            StopReason::Operator
        };
        match how {
            StopHow::Drain => {
                let there = |task: &TaskView| matches!(task.status, Status::Stopping | Status::Stopped);
                self.tell(id, &TaskCommand::Stop { reason }, actor, there).await
            }
            StopHow::Now => {
                let there = |task: &TaskView| {
                    let is_at_once = matches!(task.wish, Wish::StopNow | Wish::Cancel);
                    task.status == Status::Stopped || (task.status == Status::Stopping && is_at_once)
                };
                self.tell(id, &TaskCommand::StopNow, actor, there).await
            }
        }
    }

    /// Ends a task for good.
    ///
    /// # Errors
    /// `WrongState` after it finished.
    pub async fn cancel_task(&self, id: TaskId, actor: &Actor) -> Result<Told, ServiceError> {
        let there = |task: &TaskView| {
            task.status == Status::Cancelled || (task.status == Status::Stopping && task.wish == Wish::Cancel)
        };
        self.tell(id, &TaskCommand::Cancel, actor, there).await
    }

    /// Finishes a task early: what was not dispatched at or above `total` is excluded; without it, what was not
    /// dispatched at all.
    ///
    /// # Errors
    /// `WrongState`; `FieldsRefused` when the task isn't that long.
    pub async fn finish_task(
        &self,
        id: TaskId,
        total: Option<ItemCount>,
        actor: &Actor,
    ) -> Result<Told, ServiceError> {
        let end = ItemIndex(total.map_or(0, |total| total.0));
        let there = move |task: &TaskView| task.finish_at.is_some_and(|at| at <= end);
        self.tell(id, &TaskCommand::Finish { end }, actor, there).await
    }

    /// Moves a running task, or one of its shards, to another node: what is in flight ends first, and nothing is done
    /// twice. Says how many shards move.
    ///
    /// # Errors
    /// `Conflict` or `Unprocessable` where that can't be, with what would do.
    pub async fn move_task(
        &self,
        id: TaskId,
        shard: Option<u32>,
        to: &str,
        actor: &Actor,
    ) -> Result<(TaskView, u32), ServiceError> {
        let moved = self
            .parts
            .tasks
            .move_shards(id, shard, to, actor, self.now())
            .await?;
        if !actor.rehearses {
            self.look_at(id);
        }
        Ok((self.task(id).await?, moved))
    }

    /// Tries a recovering task now. Of a task whose end didn't add up, the end is proved again.
    ///
    /// # Errors
    /// `WrongState` in any other state.
    pub async fn recover_task(&self, id: TaskId, actor: &Actor) -> Result<Told, ServiceError> {
        let there =
            |task: &TaskView| matches!(task.status, Status::Queued | Status::Running) && !sleeps(task);
        self.tell(id, &TaskCommand::Recover, actor, there).await
    }

    /// The business is ready for a start.
    ///
    /// # Errors
    /// `StaleStart` for another start than the present one; `WrongState` when nothing waits for it.
    pub async fn task_ready(
        &self,
        id: TaskId,
        change: ReadyChange,
        actor: &Actor,
    ) -> Result<Told, ServiceError> {
        let present = self.task(id).await?.start_no;
        let start_no = change.start_no.unwrap_or(present);
        if let Some(params) = &change.params {
            self.check_params(params)?;
        }
        let edit = TaskEdit {
            total: change.total,
            skip_first: change.skip_first,
            params: change.params,
            ..TaskEdit::default()
        };
        // A repeat of an answer that was heard; one that would change something more is refused.
        let is_repeat = edit == TaskEdit::default();
        let there = move |task: &TaskView| {
            is_repeat && task.start_no == start_no && matches!(task.status, Status::Queued | Status::Running)
        };
        self.tell(
            id,
            &TaskCommand::Ready {
                start_no,
                edit: Box::new(edit),
            },
            actor,
            there,
        )
        .await
    }

    /// Deletes a task that has ended.
    ///
    /// # Errors
    /// `WrongState` before it ended; `Conflict` while a redrive of it hasn't.
    pub async fn delete_task(&self, id: TaskId, actor: &Actor) -> Result<(), ServiceError> {
        Ok(self.parts.tasks.delete(id, actor, self.now()).await?)
    }

    /// Gives a command unless the task is there already. `is_there` is asked again where the command came too late.
    pub(super) async fn tell(
        &self,
        id: TaskId,
        command: &TaskCommand,
        actor: &Actor,
        is_there: impl Fn(&TaskView) -> bool + Send,
    ) -> Result<Told, ServiceError> {
        let task = self.task(id).await?;
        if is_there(&task) {
            return Ok(Told { task, is_new: false });
        }
        match self.parts.tasks.command(id, command, actor, self.now()).await {
            Ok(task) => {
                if !actor.rehearses {
                    self.look_at(id);
                }
                Ok(Told { task, is_new: true })
            }
            Err(CommandError::Refused(CommandRefusal::Status(refusal))) => {
                let task = self.task(id).await?;
                if is_there(&task) {
                    return Ok(Told { task, is_new: false });
                }
                Err(ServiceError::WrongState(refusal))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether it rests and its deadline is over.
    pub(super) fn would_stop_at_once(&self, task: &TaskView) -> bool {
        let rests = matches!(task.status, Status::Created | Status::Stopped);
        rests && task.deadline.is_some_and(|deadline| deadline <= self.now())
    }

    /// A task was changed: what runs of it looks at once, and so does whoever looks for work.
    pub(super) fn look_at(&self, id: TaskId) {
        self.supervisor().nudge(id);
        self.supervisor().wake();
    }
}

/// Whether it wants to run and rested too long for anybody to take it.
fn sleeps(task: &TaskView) -> bool {
    task.status_reason.as_deref() == Some(DORMANT)
}
