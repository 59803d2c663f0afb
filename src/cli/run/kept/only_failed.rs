//! `--only-failed`: what a job failed is done again, in a job of its own, with the keys that its items had. Done once
//! more, it goes over what that one failed.

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

/// Between a job's name and the number of a run over its failures.
const ROUND: &str = " (failed, ";

/// What is to be done now.
pub(crate) enum Next {
    /// This job, which may have begun.
    Job(Box<Job>),
    /// Nothing: no item is failed any more. With the last job that went over them.
    Nothing(Box<TaskView>),
}

/// The next job over what a job failed.
///
/// # Errors
/// `NotFound` when the job never ran; `Conflict` when it hasn't ended, or was made of other items.
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

/// Where the command names what the job's items came from, resuming it would read the same again and be refused the same way.
fn of_other_items(job: &Job, first: &TaskView) -> Fault {
    let what = format!("the failures of {} are of other items", job.name);
    let hint = if job.source == first.source {
        "bring the old content back, or go over all that is there now: the source's own flag with --restart, or with \
         another --name"
            .to_owned()
    } else {
        format!(
            "over the items that it had then: {} --only-failed",
            command(&job.name)
        )
    };
    Fault::new(Exit::Conflict, what, "the source has changed since it ran").hint(hint)
}

/// What a job keeps of its items is kept of those that are done again too: its results are those of all of them.
fn keeping(results: Results, tuning: Tuning) -> Tuning {
    match results {
        Results::Keep => Tuning { results, ..tuning },
        Results::Off => tuning,
    }
}

/// The jobs that went over what a job failed, the first one first, each with what it did again.
///
/// # Errors
/// When the store can't be read.
pub(crate) async fn redrives<S: TaskStore + ?Sized>(
    store: &S,
    first: &TaskView,
) -> Result<Vec<(TaskView, RedriveSpec)>, Fault> {
    let later = rounds(store, first).await?.later.into_iter();
    let redrive = |task: TaskView| redrive_of(&task).map(|spec| (task, spec));
    Ok(later.filter_map(redrive).collect())
}

/// What a job does again; none of one that goes over items of its own.
fn redrive_of(task: &TaskView) -> Option<RedriveSpec> {
    match SourceSpec::parse(&task.source) {
        Ok(SourceSpec::Redrive(spec)) => Some(spec),
        _ => None,
    }
}

/// What later runs made of what a job failed.
pub(crate) struct Net {
    /// Items that succeeded, or were skipped.
    pub(crate) recovered: u64,
    /// The last of those runs that ended: what it failed is failed still.
    pub(crate) last: TaskView,
    /// The handlers that they were begun with.
    pub(crate) handlers: Vec<String>,
}

/// See [`Net`]; none when no later run that went over a job's failures has ended.
///
/// # Errors
/// When the store can't be read.
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

/// The jobs that went over what a job failed, the latest first.
pub(crate) async fn later(store: &dyn TaskStore, first: &TaskView) -> Result<Vec<TaskView>, Fault> {
    let mut later = rounds(store, first).await?.later;
    later.reverse();
    Ok(later)
}

/// Whether a job goes over what another failed.
pub(crate) fn is_round(task: &TaskView) -> bool {
    redrive_of(task).is_some()
}

/// The jobs that went over what a job failed.
struct Rounds {
    /// Each over what the one before it failed.
    later: Vec<TaskView>,
    /// The name of the next.
    free: String,
}

/// Those of an earlier job of the same name, which `--restart` forgot, have names that are taken and are none of it.
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

/// There is no job whose failures could be meant.
pub(crate) fn never_ran() -> Fault {
    let what = "no failures to retry";
    Fault::new(Exit::NotFound, what, "no job of this name has run here")
        .hint("run it without --only-failed; or name the job it was: --name NAME, --state DIR")
}

fn name(job: &str, round: u32) -> String {
    format!("{job}{ROUND}{round})")
}

/// The job whose failures the job of this name goes over, by its name alone.
pub(crate) fn over(name: &str) -> Option<&str> {
    let (job, round) = name.strip_suffix(')')?.rsplit_once(ROUND)?;
    round.parse::<u32>().is_ok().then_some(job)
}

/// A job that goes on.
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
        Status::Stopped => "it is stopped, with items left".to_owned(),
        status => format!("it is {status}"),
    };
    Fault::new(
        Exit::Conflict,
        "the job has not finished, so not all of its failures are known",
        because,
    )
    .hint("the same command without --only-failed goes on with it")
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
