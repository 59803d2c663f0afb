//! `--only-failed`: what a job abandoned is done again, in a job of its own, with the keys that its items had. Done once
//! more, it goes over what that one abandoned.

use super::super::exit::Exit;
use super::super::fault::Fault;
use super::BUSINESS;
use crate::domain::ids::ItemCount;
use crate::domain::lifecycle::Status;
use crate::node::sources::SourceSpec;
use crate::ports::failure_list::FailureList;
use crate::ports::source_desk::{RedrivePart, RedriveSpec};
use crate::ports::task_store::{TaskStore, TaskView};
use crate::service::Job;

/// What is to be done now.
pub(super) enum Next {
    /// This job, which may have begun.
    Job(Box<Job>),
    /// Nothing: no item is failed any more. With the last job that went over them.
    Nothing(Box<TaskView>),
}

/// The next job over what a job abandoned.
///
/// # Errors
/// `NotFound` when the job never ran; `Conflict` when it hasn't ended, or was made of other items.
pub(super) async fn next<S: TaskStore + FailureList>(store: &S, job: Job) -> Result<Next, Fault> {
    let Some(first) = store.find(BUSINESS, &job.name).await? else {
        return Err(never_ran());
    };
    if first.meaning != job.meaning || first.total != job.total {
        let what = format!("the failures of {} are of other items", job.name);
        return Err(Fault::new(Exit::Conflict, what, "the source has changed since it ran").hint(format!(
            "over the items that it had then: windrow run --resume '{}' --only-failed",
            job.name
        )));
    }
    let keys_of = first.id;
    let (mut last, mut round) = (first, 0_u32);
    while let Some(later) = store.find(BUSINESS, &name(&job.name, round + 1)).await? {
        (last, round) = (later, round + 1);
    }
    if !last.status.is_terminal() {
        return if round > 0 { Ok(Next::Job(Box::new(same(&last, job)))) } else { Err(not_ended(&last)) };
    }
    if last.counters.abandoned == 0 {
        return Ok(Next::Nothing(Box::new(last)));
    }
    let groups = FailureList::groups(store, last.id).await?;
    let parts = groups.into_iter().filter(|group| group.count > 0);
    let parts = parts.map(|group| RedrivePart::Places { code: group.code, first: 0, count: group.count });
    let spec = RedriveSpec { origin: last.id, keys_of: Some(keys_of), parts: parts.collect() };
    let total = ItemCount(spec.parts.iter().map(RedrivePart::count).sum());
    let source = SourceSpec::Redrive(spec);
    let (meaning, text) = (source.meaning(0, total), source.to_text());
    Ok(Next::Job(Box::new(Job { name: name(&job.name, round + 1), source: text, meaning, total, ..job })))
}

/// There is no job whose failures could be meant.
pub(super) fn never_ran() -> Fault {
    let what = "there are no failures to go over";
    Fault::new(Exit::NotFound, what, "no job of this name has run here")
        .hint("run it without --only-failed; or name the job it was: --name NAME, --state DIR")
}

fn name(job: &str, round: u32) -> String {
    format!("{job} (failed, {round})")
}

/// A job that goes on.
fn same(task: &TaskView, job: Job) -> Job {
    let name = task.name.clone().unwrap_or_default();
    Job { name, source: task.source.clone(), meaning: task.meaning, total: task.total, ..job }
}

fn not_ended(task: &TaskView) -> Fault {
    let because = match task.status {
        Status::Stopped => "it is stopped, with items left".to_owned(),
        status => format!("it is {status}"),
    };
    Fault::new(Exit::Conflict, "the job has not ended, so its failures are not all known", because)
        .hint("the same command without --only-failed goes on with it")
}
