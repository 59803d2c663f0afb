//! Cleanup after a run that was refused before its job started, so that nothing is left that would be listed as a
//! job.

use super::place::remove_directory;
use super::resume::{self, command, is_piped};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::run::JobRun;
use windrow_node::StateDir;
use windrow_server::service::JobError;

impl JobRun<'_> {
    /// True if the directory is the job's own and no job has started in it. A directory given by flag stays as it is.
    pub(in crate::run) async fn has_begun_nothing(&self) -> bool {
        let jobs = resume::jobs(&*self.store, Vec::new()).await;
        self.args.state.is_none() && jobs.is_ok_and(|jobs| jobs.is_empty())
    }
}

/// Removes a directory in which no job has started, while it is locked, so that nobody else can start one there.
pub(in crate::run) fn remove(held: &StateDir) {
    if let Err(fault) = remove_directory(held.path()) {
        tracing::debug!(%fault, "what a refused run left can't be removed");
    }
}

impl From<JobError> for Fault {
    fn from(error: JobError) -> Fault {
        match error {
            JobError::Store(error) => error.into(),
            JobError::OtherMeaning { task } => {
                let name = task.spec.name.as_deref().unwrap_or_default();
                let because = format!(
                    "{name} is {} with {} items of another content, or read otherwise",
                    task.id, task.total.0
                );
                let beside = "or --name NAME to begin beside it";
                let hint = if task.status.is_terminal() {
                    format!(
                        "--restart to forget that job, which has ended (in a script --if-finished restart), {beside}"
                    )
                } else if is_piped(&task) {
                    let resume = command(name);
                    format!(
                        "{resume} goes on with the old items, which are kept; --restart to forget that job, {beside}"
                    )
                } else {
                    format!("bring the old items back, --restart to forget that job, {beside}")
                };
                Fault::new(Exit::Rejected, "the name is taken by another job", because).hint(hint)
            }
            JobError::NoResults { task } => {
                let settled = task.counters.settled();
                let because = format!("{settled} of its items were settled by a run without --results-out");
                Fault::new(
                    Exit::Conflict,
                    "the job's results weren't kept from its beginning",
                    because,
                )
                .hint("go on without --results-out, or --restart to begin anew with it")
            }
            JobError::Create(_) | JobError::Command(_) => {
                Fault::new(Exit::Conflict, "the job can't start", error.to_string())
            }
        }
    }
}
