//! Jobs of other names that have the same items and didn't end: whoever mistypes a name is told before every item is
//! sent again. Never changes any of them.

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

/// What is said of them; nothing of numbers without data, which are the same for every job. A directory that can't be
/// read says nothing: the run doesn't need it.
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

/// A first try that failed before anything was settled is nothing that anybody would go on with, and every later run would
/// be told of it. One that has no end may have called whatever it had.
fn has_done_something(job: &TaskView) -> bool {
    done(job) > 0 || !is_at_rest(job.status)
}

fn done(job: &TaskView) -> u64 {
    job.counters.settled() + job.counters.excluded
}

/// The latest on a line of its own, the others by their names.
fn told(jobs: &[TaskView]) -> Vec<String> {
    let Some((latest, others)) = jobs.split_first() else {
        return Vec::new();
    };
    let names: Vec<&str> = others.iter().filter_map(|job| job.spec.name.as_deref()).collect();
    let others = (!names.is_empty()).then(|| format!("note: so do {}", names.join(", ")));
    std::iter::once(line(latest)).chain(others).collect()
}

/// The names of jobs that began on this machine, the latest first, as far as they are found within this time.
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

/// The jobs of a database that could go on.
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

/// What is found in a database that this program can read as it is; none where it can't.
pub(crate) async fn looked_at<T>(
    database: &Path,
    look: impl AsyncFnOnce(&Store) -> Result<T, Fault>,
) -> Option<Result<T, Fault>> {
    if !is_readable(database).await {
        return None;
    }
    // Without the directory's lock: a run that works there goes on undisturbed, and so does one that begins now.
    let store = Store::open(database).await.ok()?;
    let found = look(&store).await;
    if let Err(error) = store.close().await {
        tracing::debug!(%error, "another job's database was not closed");
    }
    Some(found)
}

/// Whether opening a database would leave it as it is: its schema is this program's.
async fn is_readable(database: &Path) -> bool {
    let Ok(inspection) = Inspection::open(database).await else {
        return false;
    };
    let schema = inspection.schema().await;
    if let Err(error) = inspection.close().await {
        tracing::debug!(%error, "another job's database was not closed");
    }
    schema.is_ok_and(|schema| schema.pending.is_empty() && schema.unknown.is_empty())
}

fn line(job: &TaskView) -> String {
    let name = job.spec.name.as_deref().unwrap_or_default();
    format!(
        "note: {name} has the same items and isn't done: {} of {} items; {} goes on with it",
        done(job),
        job.total.0,
        command(name)
    )
}
