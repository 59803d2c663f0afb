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
        tracing::debug!(%fault, "can't remove the leftovers of a refused run");
    }
}

impl From<JobError> for Fault {
    fn from(error: JobError) -> Fault {
        match error {
            JobError::Store(error) => error.into(),
            JobError::OtherMeaning { task } => {
                let name = task.spec.name.as_deref().unwrap_or_default();
                let because = format!(
                    "{name} is {} with {} other items, or the same file read with different options",
                    task.id, task.total.0
                );
                let beside = "or --name NAME to start another job";
                let hint = if task.status.is_terminal() {
                    format!(
                        "--restart to discard that finished job (in a script --if-finished restart), \
                            {beside}"
                    )
                } else if is_piped(&task) {
                    let resume = command(name);
                    format!(
                        "{resume} resumes with the old items, which are stored; --restart to discard \
                            that job, {beside}"
                    )
                } else {
                    format!("restore the old items, --restart to discard that job, {beside}")
                };
                Fault::new(Exit::Rejected, "another job has this name", because).hint(hint)
            }
            JobError::NoResults { task } => {
                let settled = task.counters.settled();
                let because = format!("{settled} of its items were processed without --results-out");
                Fault::new(Exit::Conflict, "the job's early results weren't kept", because)
                    .hint("continue without --results-out, or --restart to start over with it")
            }
            JobError::Create(_) | JobError::Command(_) => {
                Fault::new(Exit::Conflict, "can't start the job", error.to_string())
            }
        }
    }
}
