//! Unfinished jobs of other names with the same items: users who mistype a name are told before every item is sent
//! again. This module only reads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::place;
use super::resume::{self, command, open_jobs};
use crate::fault::Fault;
use windrow_engine::ports::tasks::store::TaskView;
use windrow_node::database::Inspection;
use windrow_node::sources::SourceSpec;
use windrow_node::{StateDir, Store};
use windrow_server::service::job::is_at_rest;

/// Returns the lines on such jobs. Numbers without data are left out, since they are the same for every job. An
/// unreadable directory is ignored, because the run doesn't need it.
pub(crate) async fn lines(begun: &TaskView, own: &Path, places: Vec<PathBuf>) -> Vec<String> {
    if matches!(
        SourceSpec::parse(&begun.source),
        Ok(SourceSpec::Range { .. }) | Err(_)
    ) {
        return Vec::new();
    }
    let mut jobs = Vec::new();
    for place in places.iter().filter(|place| *place != own) {
        let mut found = waiting(&StateDir::database_in(place)).await;
        found.retain(|job| {
            job.meaning == begun.meaning && job.total == begun.total && has_done_something(job)
        });
        jobs.append(&mut found);
    }
    told(&jobs)
}

/// True if a job is worth resuming. A first attempt that failed before anything was settled isn't, and every later
/// run would mention it. A job without a recorded end may have called any of its items.
fn has_done_something(job: &TaskView) -> bool {
    done(job) > 0 || !is_at_rest(job.status)
}

fn done(job: &TaskView) -> u64 {
    job.counters.settled() + job.counters.excluded
}

/// Returns one line for the latest job, and one with the names of the others.
fn told(jobs: &[TaskView]) -> Vec<String> {
    let Some((latest, others)) = jobs.split_first() else {
        return Vec::new();
    };
    let names: Vec<&str> = others.iter().filter_map(|job| job.spec.name.as_deref()).collect();
    let others = (!names.is_empty()).then(|| format!("note: so do {}", names.join(", ")));
    std::iter::once(line(latest)).chain(others).collect()
}

/// Returns the names of jobs started on this machine, latest first, as far as they are found within this time.
pub(crate) async fn begun(env: &[(String, String)], within: Duration) -> Vec<String> {
    let until = Instant::now() + within;
    let mut names = Vec::new();
    for place in place::kept_in(env).into_iter().chain(place::of_job(None, env)) {
        let database = StateDir::database_in(&place);
        let all = jobs_of(&database, async |store| resume::jobs(store, Vec::new()).await);
        let Ok(jobs) = timeout_at(until, all).await else {
            break;
        };
        names.extend(jobs.into_iter().filter_map(|job| job.spec.name.clone()));
    }
    names
}

/// Returns the jobs of a database that could be resumed.
async fn waiting(database: &Path) -> Vec<TaskView> {
    jobs_of(database, async |store| open_jobs(store).await).await
}

async fn jobs_of(
    database: &Path,
    look: impl AsyncFnOnce(&Store) -> Result<Vec<TaskView>, Fault>,
) -> Vec<TaskView> {
    let jobs = looked_at(database, look).await;
    jobs.and_then(Result::ok).unwrap_or_default()
}

/// Reads from a database with this program's schema. Returns `None` for any other.
pub(crate) async fn looked_at<T>(
    database: &Path,
    look: impl AsyncFnOnce(&Store) -> Result<T, Fault>,
) -> Option<Result<T, Fault>> {
    if !is_readable(database).await {
        return None;
    }
    // No lock on the directory, so a run that is working there or starts now isn't disturbed.
    let store = Store::open(database).await.ok()?;
    let found = look(&store).await;
    if let Err(error) = store.close().await {
        tracing::debug!(%error, "database of another job not closed");
    }
    Some(found)
}

/// True if opening the database wouldn't change it, because its schema is this program's.
async fn is_readable(database: &Path) -> bool {
    let Ok(inspection) = Inspection::open(database).await else {
        return false;
    };
    let schema = inspection.schema().await;
    if let Err(error) = inspection.close().await {
        tracing::debug!(%error, "database of another job not closed");
    }
    schema.is_ok_and(|schema| schema.pending.is_empty() && schema.unknown.is_empty())
}

fn line(job: &TaskView) -> String {
    let name = job.spec.name.as_deref().unwrap_or_default();
    format!(
        "note: the unfinished job {name:?} ({} of {} items) has the same items; {} resumes it",
        done(job),
        job.total.0,
        command(name)
    )
}
