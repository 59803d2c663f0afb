//! Operations behind `windrow run`: start and resume a single job. The only place that decides if a command refers to
//! an existing task.

mod repeats;

use std::collections::BTreeMap;

pub use repeats::{MayRepeat, is_at_rest, may_repeat};
use windrow_core::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use windrow_core::meter::metering::Metering;
use windrow_core::settings::Results;
use windrow_core::task::Tuning;
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_core::task::spec::SpecPatch;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::store::{
    CommandError, CreateError, NewTask, TaskCommand, TaskEdit, TaskStore, TaskView, Write,
};

/// Job as described by a command. Its name is its identity; its meaning must not change under the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Slug of the business.
    pub business: String,
    /// Name that identifies the job within the business.
    pub name: String,
    /// Description of the source, as JSON text.
    pub source: String,
    /// Fingerprint of the items, see [`NewTask::meaning`].
    pub meaning: u64,
    /// Number of items in the source.
    pub total: ItemCount,
    /// Index of the first item to process; earlier ones are left out.
    pub skip_first: ItemIndex,
    /// Settings of the run; may differ from one run to the next.
    pub tuning: Tuning,
    /// Limits in units; may differ from one run to the next.
    pub metering: Metering,
    /// Labels set when the task is created.
    pub labels: BTreeMap<String, String>,
    /// Job whose failures it redrives.
    pub parent: Option<TaskId>,
}

/// Outcome of starting a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStart {
    /// Created and started now.
    New(TaskView),
    /// Already exists; started again, or about to continue.
    Resumed(TaskView),
    /// Already exists and has ended for good.
    Ended(TaskView),
}

/// Error that prevents a job from starting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The name belongs to a task over other items. Nothing was changed.
    #[error("{} is {} and has other items", task.spec.name.as_deref().unwrap_or("the name"), task.id)]
    OtherMeaning {
        /// Task that has the name.
        task: Box<TaskView>,
    },
    /// The job should keep results, but the task has settled items without keeping theirs. Nothing was changed.
    #[error("{} has settled items without keeping their results", task.id)]
    NoResults {
        /// Task that has the name.
        task: Box<TaskView>,
    },
    /// The task could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The task could not be started or tuned.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Starts a job: creates its task, or resumes the existing task with its name.
///
/// With `restart`, an unfinished task of that name is cancelled and loses the name, and a new task is created, whose
/// items get new keys.
///
/// # Errors
/// See [`JobError`].
pub async fn begin(
    tasks: &dyn TaskStore,
    job: &Job,
    restart: bool,
    write: &Write,
    now: WallMs,
) -> Result<JobStart, JobError> {
    tasks.ensure_business(&job.business, write, now).await?;
    let Some(task) = tasks.find(&job.business, &job.name).await? else {
        return create(tasks, job, write, now).await;
    };
    if restart {
        make_way(tasks, &task, write, now).await?;
        return create(tasks, job, write, now).await;
    }
    let is_same =
        (task.meaning, task.total, task.spec.skip_first) == (job.meaning, job.total, job.skip_first);
    if !is_same {
        return Err(JobError::OtherMeaning { task: Box::new(task) });
    }
    if task.status.is_terminal() {
        return Ok(JobStart::Ended(task));
    }
    let tuning = Tuning {
        results: results_of(&task, job)?,
        ..job.tuning.clone()
    };
    resume(tasks, task, (&tuning, &job.metering), write, now)
        .await
        .map(JobStart::Resumed)
}

/// Decides if results are kept. A task that keeps results continues to do so. A task that has settled items without
/// keeping results can no longer provide all of them.
fn results_of(task: &TaskView, job: &Job) -> Result<Results, JobError> {
    match (task.tuning.results, job.tuning.results) {
        (Results::Off, Results::Keep) if task.counters.settled() > 0 => Err(JobError::NoResults {
            task: Box::new(task.clone()),
        }),
        (Results::Off, wanted) => Ok(wanted),
        (Results::Keep, _) => Ok(Results::Keep),
    }
}

async fn create(tasks: &dyn TaskStore, job: &Job, write: &Write, now: WallMs) -> Result<JobStart, JobError> {
    let mut new = NewTask {
        source: job.source.clone(),
        meaning: job.meaning,
        parent: job.parent,
        ..NewTask::of(&job.business, job.total, job.tuning.clone())
    };
    new.spec.name = Some(job.name.clone());
    new.spec.skip_first = job.skip_first;
    new.spec.labels = job.labels.clone();
    *new.spec.metering = job.metering.clone();
    let made = tasks.create(&new, write, now).await?;
    Ok(JobStart::New(
        tasks.command(made.id, &TaskCommand::Start, write, now).await?,
    ))
}

/// Cancels a task, if it is unfinished, and releases its name.
async fn make_way(
    tasks: &dyn TaskStore,
    task: &TaskView,
    write: &Write,
    now: WallMs,
) -> Result<(), JobError> {
    if !matches!(
        task.status,
        Status::Finalizing | Status::Finished | Status::Cancelled
    ) {
        tasks.command(task.id, &TaskCommand::Cancel, write, now).await?;
    }
    Ok(tasks.release_name(task.id, write, now).await?)
}

async fn resume(
    tasks: &dyn TaskStore,
    mut task: TaskView,
    (tuning, metering): (&Tuning, &Metering),
    write: &Write,
    now: WallMs,
) -> Result<TaskView, JobError> {
    if task.status == Status::Finalizing {
        return Ok(task);
    }
    if task.tuning != *tuning {
        let tune = TaskCommand::Tune(Box::new(tuning.clone()));
        task = tasks.command(task.id, &tune, write, now).await?;
    }
    let is_other = *task.spec.metering != *metering;
    let is_due = matches!(task.status, Status::Queued | Status::Running);
    if task.status == Status::Recovering || (is_other && is_due) {
        // A manual start shouldn't wait for the recovery, and it resets the count of earlier recoveries. Other limits
        // are only set at rest, also if the process of the last run died: no node runs the task yet.
        let stop = TaskCommand::Stop {
            reason: StopReason::Operator,
        };
        task = tasks.command(task.id, &stop, write, now).await?;
    }
    start_if_stopped(tasks, task, metering, write, now).await
}

/// Starts a task that is created or stopped, with these limits. A task that is still stopping, because its process
/// died, must first be stopped by the node; call this again afterwards.
///
/// # Errors
/// If the store fails or rejects the command.
pub async fn start_if_stopped(
    tasks: &dyn TaskStore,
    task: TaskView,
    metering: &Metering,
    write: &Write,
    now: WallMs,
) -> Result<TaskView, JobError> {
    match task.status {
        Status::Created | Status::Stopped => {
            let task = metered(tasks, task, metering, write, now).await?;
            Ok(tasks.command(task.id, &TaskCommand::Start, write, now).await?)
        }
        Status::Queued
        | Status::AwaitingBusiness
        | Status::Running
        | Status::Recovering
        | Status::Stopping
        | Status::Finalizing
        | Status::Finished
        | Status::Cancelled => Ok(task),
    }
}

/// Gives a task at rest these limits.
async fn metered(
    tasks: &dyn TaskStore,
    task: TaskView,
    metering: &Metering,
    write: &Write,
    now: WallMs,
) -> Result<TaskView, JobError> {
    if *task.spec.metering == *metering {
        return Ok(task);
    }
    let edit = TaskEdit {
        spec: SpecPatch {
            metering: Some(Box::new(metering.clone())),
            ..SpecPatch::default()
        },
        ..TaskEdit::default()
    };
    let edit = TaskCommand::Edit(Box::new(edit));
    Ok(tasks.command(task.id, &edit, write, now).await?)
}

#[cfg(test)]
mod tests;
