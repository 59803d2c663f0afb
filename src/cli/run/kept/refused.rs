//! A run that was refused before its job began leaves nothing that would be listed as one.

use super::resume;
use crate::run::JobRun;
use crate::run::job::remove_directory;
use windrow_node::StateDir;

impl JobRun<'_> {
    /// Whether the directory is this job's own and no job has begun in it. One that somebody named stays as it is.
    pub(in crate::run) async fn has_begun_nothing(&self) -> bool {
        let jobs = resume::jobs(&*self.store, Vec::new()).await;
        self.args.state.is_none() && jobs.is_ok_and(|jobs| jobs.is_empty())
    }
}

/// Removes a directory in which no job has begun, while it is held: nobody else can begin one there.
pub(in crate::run) fn remove(held: &StateDir) {
    if let Err(fault) = remove_directory(held.path()) {
        tracing::debug!(%fault, "what a refused run left can't be removed");
    }
}
