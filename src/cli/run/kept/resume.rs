//! Implementation of `--resume NAME`: resumes a job over its own items. Input from a pipe is stored with the job's
//! progress, so it doesn't matter what the pipe would bring now.

use std::path::{Path, PathBuf};

use super::place;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::contexts::like;
use crate::output::shell_word;
use windrow_core::ids::ItemIndex;
use windrow_core::settings::RateLimit;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::tasks::list::{TaskFilter, TaskList};
use windrow_engine::ports::tasks::report_store::ReportStore;
use windrow_engine::ports::tasks::store::{TaskStore, TaskView};
use windrow_node::StateDir;
use windrow_node::jobs::BUSINESS;
use windrow_node::sources::{Input, SourceSpec};
use windrow_server::service::JobError;
use windrow_server::service::job::{MayRepeat, may_repeat};

/// Advice for a job whose source still exists.
const SAME: &str = "the same command resumes";
/// Number of jobs read per page.
const JOBS_AT_ONCE: u32 = 200;
/// Largest number of jobs listed for a user who looks for another.
const NAMED_MAX: u32 = 5;
/// Largest number of this machine's jobs listed for a user who looks for one.
const SHOWN_MAX: usize = 10;
/// Returns the directory of a job by its name. Creates nothing: without a directory there is no job.
///
/// # Errors
/// `NotFound` if no directory holds its progress.
pub(crate) fn place(name: &str, state: Option<&Path>, env: &[(String, String)]) -> Result<PathBuf, Fault> {
    let places = place::candidates(name, state, env)?;
    let found = places.iter().find(|place| StateDir::database_in(place).is_file());
    found.cloned().ok_or_else(|| {
        let looked: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        let kept = place::names(env);
        let names = match kept.as_slice() {
            [] => "the first line of a run names its job, `t1: 200 items (NAME)`".to_owned(),
            names => meant(name, names),
        };
        unknown(
            name,
            &format!("no saved job named `{name}` in {}", looked.join(" or ")),
        )
        .hint(format!("{names}; --state DIR if it ran with one"))
    })
}

/// Returns the task of a job.
///
/// # Errors
/// `NotFound`, with the jobs that could be resumed.
pub(crate) async fn find<S: TaskStore + TaskList>(
    store: &S,
    name: &str,
    env: &[(String, String)],
) -> Result<TaskView, Fault> {
    if let Some(task) = store.find(BUSINESS, name).await? {
        return Ok(task);
    }
    let names: Vec<String> = open_jobs(store)
        .await?
        .iter()
        .filter_map(|task| task.spec.name.clone())
        .collect();
    let kept = place::names(env);
    if kept.iter().any(|kept| kept == name) {
        let because = "it ended before all its items were read, so no job was started";
        return Err(unknown(name, because).hint("start it again with its source instead of --resume"));
    }
    let fault = unknown(name, "no job has this name");
    let begun: Vec<String> = names.into_iter().chain(kept).collect();
    Err(fault.hint(match begun.as_slice() {
        [] => "start one with --csv, --ndjson, --lines or --total".to_owned(),
        begun => meant(name, begun),
    }))
}

/// Returns the list of jobs that have run here, with the most similar name first.
pub(crate) fn meant(name: &str, begun: &[String]) -> String {
    let names: Vec<&str> = begun.iter().map(String::as_str).collect();
    let likely = like(name, &names).map(|like| format!("did you mean {like}? "));
    let (shown, others) = names.split_at(names.len().min(SHOWN_MAX));
    let more = match others.len() {
        0 => String::new(),
        more => format!(" and {more} more (windrow job list)"),
    };
    format!(
        "{}past jobs: {}{more}",
        likely.unwrap_or_default(),
        shown.join(", ")
    )
}

fn unknown(name: &str, because: &str) -> Fault {
    Fault::new(Exit::NotFound, format!("no job {name} to resume"), because)
}

/// Returns the latest jobs that can be resumed.
pub(crate) async fn open_jobs(store: &impl TaskList) -> Result<Vec<TaskView>, Fault> {
    let open = Status::ALL.iter().copied().filter(|status| !status.is_terminal());
    jobs(store, open.collect()).await
}

/// Returns the latest jobs with one of these statuses, or with any status if the list is empty.
pub(crate) async fn jobs(store: &impl TaskList, statuses: Vec<Status>) -> Result<Vec<TaskView>, Fault> {
    let filter = TaskFilter {
        business: Some(BUSINESS.to_owned()),
        statuses,
        ..TaskFilter::default()
    };
    Ok(store.tasks(&filter, None, NAMED_MAX).await?.tasks)
}

/// Returns the list of files of a job started with a pattern, as of its first start.
///
/// # Errors
/// Same as [`spec`].
pub(crate) fn listed(task: &TaskView, state: &StateDir) -> Result<Option<SourceSpec>, Fault> {
    match piped_file(&task.source) {
        Some(file) if file.starts_with("glob-") => spec(task, state).map(Some),
        _ => Ok(None),
    }
}

/// Returns the source of a job's items.
///
/// # Errors
/// `Rejected` if the stored input of a pipe is gone.
pub(crate) fn spec(task: &TaskView, state: &StateDir) -> Result<SourceSpec, Fault> {
    let spec = SourceSpec::parse(&task.source).map_err(Fault::bug)?;
    if let SourceSpec::File {
        input: Input::Spooled(file),
        ..
    } = &spec
    {
        let path = state.spool().join(file);
        if !path.is_file() {
            let because = format!("{} no longer exists", path.display());
            return Err(
                Fault::new(Exit::Rejected, "the stored items are missing", because)
                    .hint("start over: pipe the items in again, with --restart"),
            );
        }
    }
    Ok(spec)
}

/// State of a job before it is resumed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Before {
    /// Rate of the job; shown so that users who change it, or omit the flag, see the effective value.
    pub(crate) rate: Option<RateLimit>,
    /// Calls that its last run left unfinished.
    pub(crate) may_repeat: Option<MayRepeat>,
    /// First item to be processed.
    goes_on_at: Option<ItemIndex>,
}

impl Before {
    /// Reads the state of a job that may exist.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub(crate) async fn of(
        store: &(impl TaskStore + ReportStore),
        business: &str,
        name: &str,
    ) -> Result<Before, Fault> {
        let Some(task) = store.find(business, name).await? else {
            return Ok(Before::default());
        };
        Ok(Before {
            rate: Some(task.tuning.rate),
            goes_on_at: Some(goes_on_at(store, &task).await?),
            may_repeat: may_repeat(store, &task).await?,
        })
    }

    /// Returns a clause such as `; up to 37 items may be called a second time, under the keys that they had`, printed
    /// before any of them is called.
    pub(crate) fn repeats(self) -> String {
        self.may_repeat
            .map_or_else(String::new, |repeats| format!("; {repeats}, with the same keys"))
    }
}

/// Returns the first item that a resumed job processes. The watermark may be past items that wait longer for their
/// next attempt.
///
/// # Errors
/// Fails if the store can't be read.
pub(crate) async fn goes_on_at(store: &impl ReportStore, task: &TaskView) -> Result<ItemIndex, Fault> {
    if task.counters.parked == 0 {
        return Ok(task.watermark);
    }
    let first = store.waiting_items(task.id).await?.into_iter().min();
    Ok(first.map_or(task.watermark, |first| first.min(task.watermark)))
}

/// Returns the line for a job that is being resumed.
pub(crate) fn told(task: &TaskView, before: Before) -> String {
    let done = task.counters.settled() + task.counters.excluded;
    let percent = match task.total.0 {
        0 => 100.0,
        total => done as f64 * 100.0 / total as f64,
    };
    let rate = task.tuning.rate;
    let change = before
        .rate
        .filter(|before| *before != rate)
        .map(|before| format!("; rate changed from {before} to {rate}"))
        .unwrap_or_default();
    format!(
        "resuming {}: {percent:.1} % done, {} failed, continues at index {}{change}{}",
        task.id,
        task.counters.failed,
        before.goes_on_at.unwrap_or(task.watermark).0,
        before.repeats()
    )
}

/// Removes the stored input of a refused job, unless an earlier job uses it too.
///
/// # Errors
/// Fails if the store can't be read, or the file can't be removed.
pub(crate) async fn forget_piped(store: &impl TaskList, source: &str, state: &StateDir) -> Result<(), Fault> {
    let Some(file) = piped_file(source) else {
        return Ok(());
    };
    let (filter, mut after) = (TaskFilter::default(), None);
    loop {
        let page = store.tasks(&filter, after, JOBS_AT_ONCE).await?;
        if page
            .tasks
            .iter()
            .any(|task| piped_file(&task.source).as_ref() == Some(&file))
        {
            return Ok(());
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let path = state.spool().join(file);
    let removed = match std::fs::remove_file(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    removed.map_err(|error| {
        Fault::new(
            Exit::Failed,
            format!("can't remove {}", path.display()),
            error.to_string(),
        )
    })
}

/// Returns the file with the stored input of a job's pipe.
fn piped_file(source: &str) -> Option<String> {
    match SourceSpec::parse(source) {
        Ok(SourceSpec::File {
            input: Input::Spooled(file),
            ..
        }) => Some(file),
        _ => None,
    }
}

/// Creates the fault for a job that was not resumed.
pub(crate) fn refused(error: JobError) -> Fault {
    let JobError::OtherMeaning { task } = error else {
        return error.into();
    };
    let because = format!("{} has {} other items", task.id, task.total.0);
    Fault::new(Exit::Rejected, "the job's items have changed", because)
        .hint("restore the old content, or start over: the source's own flag with --restart")
}

/// True if a job's items came through a pipe.
pub(crate) fn is_piped(task: &TaskView) -> bool {
    piped_file(&task.source).is_some_and(|file| file.starts_with("stdin-"))
}

/// Returns `windrow run --resume push`, quoted for a shell.
pub(crate) fn command(name: &str) -> String {
    let between = if name.starts_with('-') { '=' } else { ' ' };
    format!("windrow run --resume{between}{}", shell_word(name))
}

/// Returns the command for a job whose progress is in this directory, usable from any directory.
pub(crate) fn command_in(name: &str, state: Option<&Path>) -> String {
    let state = state.map(|state| {
        let state = std::path::absolute(state).unwrap_or_else(|_| state.to_owned());
        format!(" --state {}", shell_word(&state.display().to_string()))
    });
    command(name) + &state.unwrap_or_default()
}

/// Returns the advice on how to resume a job.
pub(crate) fn how(task: &TaskView) -> String {
    match &task.spec.name {
        Some(name) if is_piped(task) => format!(
            "{SAME} if the pipe brings the same items again, {} otherwise",
            command(name)
        ),
        _ => SAME.to_owned(),
    }
}

/// Returns the lines on other unfinished jobs that were started by a pipe.
///
/// # Errors
/// Fails if the store can't be read.
pub(crate) async fn others(store: &impl TaskList, begun: &TaskView) -> Result<Vec<String>, Fault> {
    let others = open_jobs(store)
        .await?
        .into_iter()
        .filter(|task| task.id != begun.id && is_piped(task));
    let line = |task: TaskView| {
        let done = task.counters.settled() + task.counters.excluded;
        let name = task.spec.name.as_deref().unwrap_or_default();
        format!(
            "{} from an earlier pipe is unfinished: {done} of {} items; {} resumes it",
            task.id,
            task.total.0,
            command(name)
        )
    };
    Ok(others.map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_as_a_shell_reads_it() {
        assert_eq!(command("push-1"), "windrow run --resume push-1");
        assert_eq!(command("it's $HOME"), r#"windrow run --resume "it's "'$HOME'"#);
        assert_eq!(command("-x"), "windrow run --resume=-x");
    }

    #[test]
    fn where_nothing_is_kept_there_is_no_job_and_nothing_is_made() {
        let home = tempfile::tempdir().expect("a directory");
        let env = [("HOME".to_owned(), home.path().display().to_string())];
        let fault = place("push", None, &env).expect_err("no job");
        assert_eq!(fault.exit, Exit::NotFound);
        assert!(fault.because[0].contains("/stdin"), "{fault}");
        assert_eq!(std::fs::read_dir(home.path()).expect("a directory").count(), 0);
    }
}
