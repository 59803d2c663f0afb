//! Jobs in a state directory: running, stopped, cut off and ended. This module only reads.

use std::path::Path;

use crate::fault::Fault;
use crate::job::json::{Job, JobKept, metering, settings};
use crate::run::kept::{beside, only_failed, resume};
use windrow_core::execution::MeterPicture;
use windrow_core::ids::WallMs;
use windrow_core::stats::completion::Completion;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::tasks::list::{TaskFilter, TaskList};
use windrow_engine::ports::tasks::store::{TaskStore, TaskView};
use windrow_node::jobs::BUSINESS;
use windrow_node::{StateDir, Store};
use windrow_server::http::answer::costs::show_costs;
use windrow_server::http::answer::time::rfc3339;
use windrow_server::service::job::{MayRepeat, is_at_rest, may_repeat};
use windrow_server::service::tasks::show::costs::saved;

/// Number of jobs read per page.
const JOBS_AT_ONCE: u32 = 200;
/// Status of a job whose process is gone without having stopped it.
const CUT_OFF: &str = "cut_off";
const CUT_OFF_WHY: &str = "its process ended before the job was stopped";

/// Job as stored in its directory.
#[derive(Debug)]
pub(crate) struct KeptJob {
    /// Task that executes the job.
    pub(crate) task: TaskView,
    /// Time of the last run: its end or, if it has no recorded end, its start.
    pub(crate) ran_at: WallMs,
    /// True if the last run over the job's failures isn't done.
    open_round: bool,
    /// Failed items of the job that later runs over its failures recovered.
    recovered: u64,
    /// Use of each meter.
    costs: Vec<MeterPicture>,
    /// Number of items that may be called a second time after a resume. `None` if certainly none.
    may_repeat: Option<MayRepeat>,
}

/// Returns the jobs of a directory, last run first. `None` if this program can't read it.
pub(crate) async fn of(place: &Path) -> Option<Vec<KeptJob>> {
    let read = beside::looked_at(&StateDir::database_in(place), read).await?;
    let mut jobs = read
        .inspect_err(|fault| tracing::debug!(%fault, "can't read a job's directory"))
        .ok()?;
    jobs.sort_by_key(|job| std::cmp::Reverse(job.ran_at));
    Some(jobs)
}

/// Returns the job with this name in a directory.
pub(crate) async fn named(place: &Path, name: &str) -> Option<KeptJob> {
    let jobs = of(place).await?;
    jobs.into_iter()
        .find(|job| job.task.spec.name.as_deref() == Some(name))
}

/// Returns the status of the task with this name in a directory, either a job or a run over a job's failures.
pub(crate) async fn status_of(place: &Path, name: &str) -> Option<Status> {
    let database = StateDir::database_in(place);
    let look = async |store: &Store| Ok(store.find(BUSINESS, name).await?);
    let found = beside::looked_at(&database, look).await?.ok()??;
    Some(found.status)
}

async fn read(store: &Store) -> Result<Vec<KeptJob>, Fault> {
    let filter = TaskFilter {
        business: Some(BUSINESS.to_owned()),
        ..TaskFilter::default()
    };
    let (mut jobs, mut after) = (Vec::new(), None);
    loop {
        let page = store.tasks(&filter, after, JOBS_AT_ONCE).await?;
        for task in page.tasks {
            // A task without a name has been superseded by another.
            if task.spec.name.is_some() && !only_failed::is_round(&task) {
                jobs.push(kept(store, task).await?);
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(jobs);
        }
    }
}

async fn kept(store: &Store, task: TaskView) -> Result<KeptJob, Fault> {
    let rounds = only_failed::later(store, &task).await?;
    let newest = rounds.first().unwrap_or(&task);
    let runs = store.runs(newest.id, None, 1).await?;
    let ran_at = runs.first().map(|run| run.ended_at.unwrap_or(run.started_at));
    let recovered: u64 = rounds
        .iter()
        .filter(|round| round.status.is_terminal())
        .map(|round| round.counters.succeeded + round.counters.skipped)
        .sum();
    Ok(KeptJob {
        ran_at: ran_at.unwrap_or(newest.since),
        open_round: !newest.status.is_terminal() && newest.id != task.id,
        may_repeat: may_repeat(store, &task).await?,
        costs: saved(store, &task, &[]).await,
        recovered,
        task,
    })
}

impl KeptJob {
    /// Returns the number of failed items that no later run over failures recovered.
    pub(crate) fn still_failed(&self) -> u64 {
        self.task.counters.failed.saturating_sub(self.recovered)
    }

    /// True if the stored state implies a running process.
    pub(crate) fn claims_to_run(&self) -> bool {
        self.open_round || !is_at_rest(self.task.status)
    }

    /// Converts the job to the form that `windrow job` shows. `runs` is true if a process runs it.
    pub(crate) fn shown(&self, place: &Path, runs: bool) -> Job {
        let task = &self.task;
        let name = task.spec.name.as_deref().unwrap_or_default();
        let percent = Completion::of(&task.counters, task.total).percent();
        let is_cut_off = !runs && !is_at_rest(task.status);
        let may_repeat = self.may_repeat.filter(|_| !runs);
        let (status, why) = if is_cut_off {
            let repeats = may_repeat.map_or_else(String::new, |repeats| format!(": {repeats} on resume"));
            (CUT_OFF, Some(format!("{CUT_OFF_WHY}{repeats}")))
        } else {
            (task.status.as_str(), task.status_text.clone())
        };
        Job {
            name: name.to_owned(),
            task: Some(task.id.to_string()),
            status: Some(status.to_owned()),
            why,
            total: Some(task.total.0),
            percent: Some(percent),
            counts: Some(api::TaskCounts::new(
                &task.counters,
                task.counters.pending(task.total),
            )),
            settings: Some(settings(&task.tuning)),
            metering: metering(&task.spec),
            costs: show_costs(&self.costs),
            go_on: Some(self.go_on(name).filter(|_| !runs)),
            kept: Some(JobKept {
                result: Some(task.result.map(|result| result.as_str().to_owned())),
                recovered: Some(self.recovered),
                still_failed: Some(self.still_failed()),
                may_repeat: may_repeat.map(MayRepeat::items),
                ran_at: Some(rfc3339(self.ran_at)),
                place: place.to_owned(),
            }),
            ..Job::default()
        }
    }

    /// Returns the command that resumes the job, or `None` if nothing is left to do.
    fn go_on(&self, name: &str) -> Option<String> {
        match self.task.status {
            Status::Finished if self.still_failed() > 0 || self.open_round => {
                Some(format!("{} --only-failed", resume::command(name)))
            }
            Status::Finished | Status::Cancelled => None,
            _ => Some(resume::command(name)),
        }
    }
}

/// Creates the entry for a directory whose database this program can't read.
pub(crate) fn unread(place: &Path, name: &str) -> Job {
    Job {
        name: name.to_owned(),
        status: Some("unknown".to_owned()),
        why: Some("kept by another version of Windrow, or its database is damaged".to_owned()),
        go_on: Some(Some(resume::command(name))),
        kept: Some(JobKept {
            place: place.to_owned(),
            ..JobKept::default()
        }),
        ..Job::default()
    }
}
