//! Implementation of `--only-failed`: redoes the failed items of a job in a separate job, under the same keys.
//! Repeated, it redoes the failures of that job.

use super::resume::command;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::run::handler::HANDLER;
use windrow_core::ids::{ItemCount, TaskId};
use windrow_core::settings::Results;
use windrow_core::task::Tuning;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::sources::resolver::{RedrivePart, RedriveSpec};
use windrow_engine::ports::tasks::failure_list::FailureList;
use windrow_engine::ports::tasks::store::{TaskStore, TaskView};
use windrow_node::jobs::BUSINESS;
use windrow_node::sources::SourceSpec;
use windrow_server::service::Job;

/// Separator between a job's name and the number of a run over its failures.
const ROUND: &str = " (failed, ";

/// Next step of `--only-failed`.
pub(crate) enum Next {
    /// Job to drive, which may have been started before.
    Job(Box<Job>),
    /// No failed items are left; holds the last job that redid them.
    Nothing(Box<TaskView>),
}

/// Returns the next job over the failures of a job.
///
/// # Errors
/// `NotFound` if the job never ran; `Conflict` if it hasn't ended, or was made of other items.
pub(crate) async fn next<S: TaskStore + FailureList>(store: &S, job: Job) -> Result<Next, Fault> {
    let Some(first) = store.find(BUSINESS, &job.name).await? else {
        return Err(never_ran());
    };
    if first.meaning != job.meaning || first.total != job.total {
        return Err(of_other_items(&job, &first));
    }
    let (keys_of, results) = (first.id, first.tuning.results);
    let Rounds { later, free } = rounds(store, &first).await?;
    let is_first = later.is_empty();
    let last = later.into_iter().next_back().unwrap_or(first);
    if !last.status.is_terminal() {
        return if is_first {
            Err(not_ended(&last))
        } else {
            Ok(Next::Job(Box::new(same(&last, job))))
        };
    }
    if last.counters.failed == 0 {
        return Ok(Next::Nothing(Box::new(last)));
    }
    let groups = FailureList::groups(store, last.id).await?;
    let parts = groups.into_iter().filter(|group| group.count > 0);
    let parts = parts.map(|group| RedrivePart::Places {
        code: group.code,
        first: 0,
        count: group.count,
    });
    let spec = RedriveSpec {
        origin: last.id,
        keys_of: Some(keys_of),
        parts: parts.collect(),
        is_replay: false,
    };
    let total = ItemCount(spec.parts.iter().map(RedrivePart::count).sum());
    let source = SourceSpec::Redrive(spec);
    let (meaning, text) = (source.meaning(0, total), source.to_text());
    Ok(Next::Job(Box::new(Job {
        name: free,
        source: text,
        meaning,
        total,
        tuning: keeping(results, job.tuning),
        parent: Some(last.id),
        ..job
    })))
}

/// Creates the fault for a source that has changed. If the command names that same source, resuming would read it
/// again and be refused again, so the hint suggests other ways.
fn of_other_items(job: &Job, first: &TaskView) -> Fault {
    let what = format!("the failures of {} belong to other items", job.name);
    let hint = if job.source == first.source {
        "restore the old content, or process all current items: the source's own flag with --restart, \
            or with another --name"
            .to_owned()
    } else {
        format!("to retry its old items: {} --only-failed", command(&job.name))
    };
    Fault::new(Exit::Conflict, what, "the source has changed since the job ran").hint(hint)
}

/// Keeps the results of redone items if the job keeps its own: its results include both.
fn keeping(results: Results, tuning: Tuning) -> Tuning {
    match results {
        Results::Keep => Tuning { results, ..tuning },
        Results::Off => tuning,
    }
}

/// Returns the jobs over the failures of a job, first one first, each with the items it redid.
///
/// # Errors
/// Fails if the store can't be read.
pub(crate) async fn redrives<S: TaskStore + ?Sized>(
    store: &S,
    first: &TaskView,
) -> Result<Vec<(TaskView, RedriveSpec)>, Fault> {
    let later = rounds(store, first).await?.later.into_iter();
    let redrive = |task: TaskView| redrive_of(&task).map(|spec| (task, spec));
    Ok(later.filter_map(redrive).collect())
}

/// Returns the items that a job redoes, or `None` for a job over its own items.
fn redrive_of(task: &TaskView) -> Option<RedriveSpec> {
    match SourceSpec::parse(&task.source) {
        Ok(SourceSpec::Redrive(spec)) => Some(spec),
        _ => None,
    }
}

/// Effect of later runs over the failures of a job.
pub(crate) struct Net {
    /// Failed items that then succeeded or were skipped.
    pub(crate) recovered: u64,
    /// Last of these runs that ended; its failed items are those that remain.
    pub(crate) last: TaskView,
    /// Handlers that these runs were started with.
    pub(crate) handlers: Vec<String>,
}

/// Returns the [`Net`] of a job, or `None` if no run over its failures has ended.
///
/// # Errors
/// Fails if the store can't be read.
pub(crate) async fn net(store: &dyn TaskStore, first: &TaskView) -> Result<Option<Net>, Fault> {
    let mut ended = rounds(store, first).await?.later;
    ended.retain(|task| task.status.is_terminal());
    let recovered = ended
        .iter()
        .map(|task| task.counters.succeeded + task.counters.skipped)
        .sum();
    let handlers = ended
        .iter()
        .filter_map(|task| task.spec.labels.get(HANDLER).cloned());
    let handlers = handlers.collect();
    Ok(ended.pop().map(|last| Net {
        recovered,
        last,
        handlers,
    }))
}

/// Returns the jobs over the failures of a job, latest first.
pub(crate) async fn later(store: &dyn TaskStore, first: &TaskView) -> Result<Vec<TaskView>, Fault> {
    let mut later = rounds(store, first).await?.later;
    later.reverse();
    Ok(later)
}

/// True if a job redoes the failures of another.
pub(crate) fn is_round(task: &TaskView) -> bool {
    redrive_of(task).is_some()
}

/// Jobs over the failures of a job.
struct Rounds {
    /// Jobs in order, each over the failures of the one before.
    later: Vec<TaskView>,
    /// Unused name for the next one.
    free: String,
}

/// Finds the jobs over the failures of a job. Those of an earlier job of the same name, discarded by `--restart`,
/// still occupy their names but are left out.
async fn rounds<S: TaskStore + ?Sized>(store: &S, first: &TaskView) -> Result<Rounds, Fault> {
    let job = first.spec.name.as_deref().unwrap_or_default();
    let (mut later, mut round) = (Vec::<TaskView>::new(), 1_u32);
    while let Some(found) = store.find(BUSINESS, &name(job, round)).await? {
        let over = later.last().unwrap_or(first).id;
        if goes_over(&found, over) {
            later.push(found);
        }
        round += 1;
    }
    Ok(Rounds {
        later,
        free: name(job, round),
    })
}

fn goes_over(task: &TaskView, failed: TaskId) -> bool {
    redrive_of(task).is_some_and(|spec| spec.origin == failed)
}

/// Creates the fault that there is no job whose failures could be redone.
pub(crate) fn never_ran() -> Fault {
    let what = "no failures to retry";
    Fault::new(Exit::NotFound, what, "no job of this name has run here")
        .hint("run it without --only-failed; or name the right job: --name NAME, --state DIR")
}

fn name(job: &str, round: u32) -> String {
    format!("{job}{ROUND}{round})")
}

/// Returns the job whose failures the job of this name redoes, judged by the name alone.
pub(crate) fn over(name: &str) -> Option<&str> {
    let (job, round) = name.strip_suffix(')')?.rsplit_once(ROUND)?;
    round.parse::<u32>().is_ok().then_some(job)
}

/// Returns the job that resumes an unfinished one.
fn same(task: &TaskView, job: Job) -> Job {
    let name = task.spec.name.clone().unwrap_or_default();
    Job {
        name,
        source: task.source.clone(),
        meaning: task.meaning,
        total: task.total,
        ..job
    }
}

fn not_ended(task: &TaskView) -> Fault {
    let because = match task.status {
        Status::Stopped => "it is stopped with items left".to_owned(),
        status => format!("it is {status}"),
    };
    Fault::new(
        Exit::Conflict,
        "the job hasn't finished, so more items may fail",
        because,
    )
    .hint("the same command without --only-failed resumes it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_over_failures_is_known_by_its_name() {
        assert_eq!(over(&name("a (b)", 12)), Some("a (b)"));
        for other in ["a", "a (failed)", "a (failed, x)", "a (failed, 1) b"] {
            assert_eq!(over(other), None, "{other}");
        }
    }
}
