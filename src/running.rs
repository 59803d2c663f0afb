//! Handle to a running job.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use windrow_core::ids::{ItemIndex, TaskId};
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_engine::ports::ErrorClass;
use windrow_engine::ports::tasks::failure_list::FailureList;
use windrow_engine::ports::tasks::store::{TaskCommand, TaskStore, TaskView};
use windrow_node::{Node, Store};
use windrow_server::service;

use crate::builder::actor;
use crate::{Error, Failures, Outputs, Progress, Report};

/// Interval for polling the job's state.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A job that was started. Dropping this doesn't stop it; it runs until its [`Windrow`](crate::Windrow) is dropped.
pub struct Running<'a> {
    pub(crate) node: &'a Node,
    pub(crate) store: Arc<Store>,
    pub(crate) task: TaskId,
    /// Set if the job must be started again once it has stopped.
    pub(crate) starts_again: AtomicBool,
}

impl fmt::Debug for Running<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("task", &self.task)
            .finish_non_exhaustive()
    }
}

impl Running<'_> {
    /// Returns the progress: live while it runs, otherwise as last saved.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn progress(&self) -> Result<Progress, Error> {
        let task = self.view().await?;
        let live = self.node.progress(task.id).into_iter().map(|live| live.counters);
        let live = live.reduce(|one, other| one.plus(&other));
        Ok(Progress::of(task.total.0, &live.unwrap_or(task.counters)))
    }

    /// Stops sending items; calls in flight finish. Running the same job again resumes it.
    ///
    /// # Errors
    /// Fails if the store can't be written.
    pub async fn stop(&self) -> Result<(), Error> {
        self.starts_again.store(false, Ordering::Relaxed);
        let task = self.view().await?;
        if task.status.is_terminal() || task.status == Status::Stopped {
            return Ok(());
        }
        let stop = TaskCommand::Stop {
            reason: StopReason::Operator,
        };
        let done = self
            .store
            .command(self.task, &stop, &actor(), self.node.clock().wall())
            .await;
        done.map_err(service::JobError::from)?;
        self.node.nudge(self.task);
        Ok(())
    }

    /// Waits until the job is finished or stopped.
    ///
    /// # Errors
    /// Fails if the store can't be read any more.
    pub async fn wait(&self) -> Result<Report, Error> {
        loop {
            let task = match self.view().await {
                Err(Error::Store(error)) if error.class() == ErrorClass::Transient => None,
                task => Some(task?),
            };
            match task {
                Some(task)
                    if task.status == Status::Stopped && self.starts_again.swap(false, Ordering::Relaxed) =>
                {
                    let now = self.node.clock().wall();
                    let metering = task.spec.metering.clone();
                    service::start_if_stopped(&*self.store, task, &metering, &actor(), now).await?;
                    self.node.wake();
                }
                Some(task) if task.status.is_terminal() || task.status == Status::Stopped => {
                    return Ok(Report::of(&task, self.failures().await?));
                }
                _ => {}
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Reads the outputs of its items in index order, as far as all before them are settled; all of them once the job
    /// is finished. None unless the job [keeps](crate::Job::keep_results) them.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn outputs(&self) -> Result<Outputs, Error> {
        let task = self.view().await?;
        let results = service::results::Results::new(self.store.clone());
        let reader = results.read(&task, ItemIndex(0)).await.map_err(Box::new)?;
        Ok(Outputs::of(reader))
    }

    async fn view(&self) -> Result<TaskView, Error> {
        if self.node.is_over() {
            return Err(Error::Ended);
        }
        self.store.get(self.task).await?.ok_or(Error::Ended)
    }

    async fn failures(&self) -> Result<Vec<Failures>, Error> {
        let mut groups = self.store.groups(self.task).await?;
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        let failures = groups.into_iter();
        Ok(failures
            .map(|group| Failures {
                code: group.code,
                count: group.count,
                example: group.example,
            })
            .collect())
    }
}
