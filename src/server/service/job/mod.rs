//! The verbs behind `windrow run`: begin and resume one job. One place decides whether a command means a task
//! that is there already.

mod repeats;

use std::collections::BTreeMap;

pub use repeats::{MayRepeat, is_at_rest, may_repeat};
use windrow_core::ids::{ItemCount, ItemIndex, TaskId, WallMs};
use windrow_core::settings::Results;
use windrow_core::task::Tuning;
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::store::{
    CommandError, CreateError, NewTask, TaskCommand, TaskStore, TaskView, Write,
};

/// A job as a command describes it. Its identity is its name; what it means must not change under the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The business's slug.
    pub business: String,
    /// The identity within the business.
    pub name: String,
    /// The source's description as JSON text.
    pub source: String,
    /// See [`NewTask::meaning`].
    pub meaning: u64,
    /// How many items.
    pub total: ItemCount,
    /// Items before this index are left out.
    pub skip_first: ItemIndex,
    /// How it is driven; may differ from one run to the next.
    pub tuning: Tuning,
    /// What is noted of it when it is made.
    pub labels: BTreeMap<String, String>,
    /// The job whose failures it does again.
    pub parent: Option<TaskId>,
}

/// What a job turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStart {
    /// Made now, and started.
    New(TaskView),
    /// There already; started again, or about to go on by itself.
    Resumed(TaskView),
    /// There already, and ended for good.
    Ended(TaskView),
}

/// A job can't be begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The name belongs to a task over other items. Nothing was changed.
    #[error("{} is {} over other items", task.spec.name.as_deref().unwrap_or("the name"), task.id)]
    OtherMeaning {
        /// The task that has the name.
        task: Box<TaskView>,
    },
    /// Its results are wanted, but it has settled items whose results were not kept. Nothing was changed.
    #[error("{} has settled items without keeping their results", task.id)]
    NoResults {
        /// The task that has the name.
        task: Box<TaskView>,
    },
    /// It was not made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// It was not started or tuned.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Begins a job: makes its task, or goes on with the one that has its name.
///
/// With `restart` a task of that name is cancelled (unless it has ended), loses the name, and a new one is made: its
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
    resume(tasks, task, &tuning, write, now)
        .await
        .map(JobStart::Resumed)
}

/// Whether the job's results are kept: what was begun with them goes on with them, and what has settled items without
/// keeping what they came to can't have all of them any more.
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
    let made = tasks.create(&new, write, now).await?;
    Ok(JobStart::New(
        tasks.command(made.id, &TaskCommand::Start, write, now).await?,
    ))
}

/// Takes the name from a task that is in the way.
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
    tuning: &Tuning,
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
    if task.status == Status::Recovering {
        // Whoever starts it by hand doesn't want to wait, and a start forgives earlier recoveries.
        let stop = TaskCommand::Stop {
            reason: StopReason::Operator,
        };
        task = tasks.command(task.id, &stop, write, now).await?;
    }
    start_if_stopped(tasks, task, write, now).await
}

/// Starts a task that rests. One that is still stopping (its process died meanwhile) has to be stopped first: the
/// node does that, then this is asked again.
///
/// # Errors
/// When the store fails or refuses.
pub async fn start_if_stopped(
    tasks: &dyn TaskStore,
    task: TaskView,
    write: &Write,
    now: WallMs,
) -> Result<TaskView, JobError> {
    match task.status {
        Status::Created | Status::Stopped => {
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

#[cfg(test)]
mod tests;
