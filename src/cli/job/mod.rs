//! Implementation of `windrow job`: controls and inspects the jobs of `windrow run` on this machine while they run,
//! and lists, shows and deletes them afterwards. Verbs shared with tasks run the code of `windrow task` on the job's
//! directory.

pub mod args;
mod ask;
mod json;
mod list;
mod remove;
mod shelf;
mod shown;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use self::args::{JobArgs, OneArgs, SetArgs, StopArgs, Verb, Which};
use self::json::{Job, JobChange};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::View;
use crate::link::here::{Directory, Here};
use crate::output::difference::difference_but;
use crate::output::screen;
use crate::output::shell_word;
use crate::output::table::human;
use crate::run::kept::only_failed;
use crate::shell::Shell;
use crate::task::args as task;
use windrow_client::Request;
use windrow_core::settings::table::TuningPatch;
use windrow_node::{Runtimes, StateDir};

/// Time a process may still take to end after its last call, to write the outcomes of its items.
const END_PATIENCE: Duration = Duration::from_secs(60);
/// Interval between two checks for the end of the process.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Executes the verb; lists the jobs without one.
///
/// # Errors
/// `NotFound` if there is no such job; `Conflict` if it isn't running; `Rejected` if the job refuses the command.
pub(crate) async fn job(args: Box<JobArgs>, shell: &Shell, runtimes: Arc<Runtimes>) -> Result<Exit, Fault> {
    let (verb, state) = match args.verb {
        None => return list::list(&args.list, shell).await,
        Some(Verb::List(args)) => return list::list(&args, shell).await,
        Some(Verb::Show(args)) => return show(&args, shell).await,
        Some(Verb::Set(args)) => return set(&args, shell).await,
        Some(Verb::Stop(args)) => return Box::pin(stop(&args, shell)).await,
        Some(Verb::Rm(args)) => return remove::remove(&args, shell).await,
        Some(Verb::Explain(of)) => (task::Verb::Explain(of.verb), of.state),
        Some(Verb::Watch(of)) => (task::Verb::Watch(of.verb), of.state),
        Some(Verb::Wait(of)) => (task::Verb::Wait(of.verb), of.state),
        Some(Verb::Skip(of)) => (task::Verb::Skip(of.verb), of.state),
        Some(Verb::Fail(of)) => (task::Verb::Fail(of.verb), of.state),
        Some(Verb::Failures(of)) => (task::Verb::Failures(of.verb), of.state),
        Some(Verb::Item(of)) => (task::Verb::Item(of.verb), of.state),
        Some(Verb::Results(of)) => (task::Verb::Results(of.verb), of.state),
        Some(Verb::Report(of)) => (task::Verb::Report(of.verb), of.state),
        Some(Verb::Log(of)) => (task::Verb::Log(of.verb), of.state),
        Some(Verb::Runs(of)) => (task::Verb::Runs(of.verb), of.state),
        Some(Verb::Revisions(of)) => (task::Verb::Revisions(of.verb), of.state),
    };
    Box::pin(on_task(&verb, state, shell, runtimes)).await
}

/// Executes a verb of `windrow task` on the task of a job.
async fn on_task(
    verb: &task::Verb,
    state: Option<PathBuf>,
    shell: &Shell,
    runtimes: Arc<Runtimes>,
) -> Result<Exit, Fault> {
    let names = named(verb);
    let [name] = names else {
        let because = format!("{} were named", human::counted(names.len() as u64, "job"));
        return Err(Fault::new(Exit::Usage, "more than one job given", because)
            .hint("give one name; `windrow job list` lists them"));
    };
    let which = Which {
        name: name.clone(),
        state,
    };
    let found = Box::pin(ask::find(&which, shell)).await?;
    // Without a process to make progress, the wait would never end.
    if matches!(verb, task::Verb::Wait(_) | task::Verb::Watch(_)) && !found.goes_on {
        return Err(ask::not_running(&which, &[]));
    }
    let directory = Directory::new(&found.place, shell.user(), runtimes);
    let done = {
        let shell = shell.on(Here {
            job: which.name,
            task: found.task,
            directory: directory.clone(),
        });
        crate::task::obey(verb, &shell).await
    };
    directory.close().await;
    done
}

/// Returns the jobs that a verb names.
fn named(verb: &task::Verb) -> &[String] {
    use std::slice::from_ref;
    match verb {
        task::Verb::Explain(args) => from_ref(&args.task),
        task::Verb::Watch(args) => from_ref(&args.task),
        task::Verb::Wait(args) => &args.tasks,
        task::Verb::Skip(args) => from_ref(&args.task),
        task::Verb::Fail(args) => &args.which.tasks,
        task::Verb::Failures(args) => from_ref(&args.task),
        task::Verb::Item(args) => from_ref(&args.task),
        task::Verb::Results(args) => from_ref(&args.task),
        task::Verb::Report(args) => from_ref(&args.task),
        task::Verb::Log(args) => from_ref(&args.task),
        task::Verb::Runs(args) | task::Verb::Revisions(args) => from_ref(&args.task),
        _ => unreachable!("jobs have no other task commands"),
    }
}

/// Returns the names of the running jobs, or of the one in a directory. Jobs that don't answer are silently left out.
pub(crate) async fn running(state: Option<&Path>, shell: &Shell) -> Vec<String> {
    let jobs = match state {
        Some(place) => ask::in_place(place).await.into_iter().collect(),
        None => ask::each(shell).await.unwrap_or_default(),
    };
    jobs.into_iter().flatten().map(|there| there.job.name).collect()
}

/// Shows a job as its process reports it while it runs, otherwise from its directory.
async fn show(args: &OneArgs, shell: &Shell) -> Result<Exit, Fault> {
    let which = &args.which;
    let job = match Box::pin(ask::live(which, shell)).await {
        Err(fault) if [Exit::NotFound, Exit::Conflict].contains(&fault.exit) => {
            list::kept(which, shell).await?.ok_or(fault)?
        }
        live => Box::pin(live?.job()).await,
    };
    shown::one(&job, &args.view, shell)
}

async fn set(args: &SetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let settings = args.tunes.0.clone();
    if settings == TuningPatch::default() {
        return Err(
            Fault::new(Exit::Usage, "nothing to change", "no setting was given")
                .hint("--rate 50/s, --concurrency 8 … `windrow job set --help` lists them all"),
        );
    }
    let live = Box::pin(ask::live(&args.which, shell)).await?;
    let request = Request::patch(&live.path("")).json(&json!(settings));
    let after = Box::pin(live.send(request)).await?;
    let changed = JobChange {
        before: json::settings(&live.task.settings.tuning),
        after: json::settings(&after.settings.tuning),
    };
    let difference = difference_but(&json!(changed.before), &json!(changed.after), &[]);
    say(
        &changed,
        &format!("{}  {difference}", args.which.name),
        &args.view,
    )
}

/// Stops a job and waits for its process to end, so that the next command finds the directory unlocked.
async fn stop(args: &StopArgs, shell: &Shell) -> Result<Exit, Fault> {
    let which = &args.which;
    let mut live = Box::pin(ask::live(which, shell)).await?;
    let stop = match args.now {
        true => json!({"now": true}),
        false => json!({}),
    };
    let request = Request::post(&live.path("/stop")).json(&stop);
    live.task = Box::pin(live.send(request)).await?;
    let (stopping, place) = (Box::pin(live.job()).await, live.place().to_owned());
    let in_flight = stopping.counts.as_ref().map_or(0, |counts| counts.in_flight);
    let is_idle = in_flight == 0;
    let in_flight = human::counted(in_flight, "item");
    let what = match args.now {
        _ if is_idle => "stopping: no new calls".to_owned(),
        true => format!("stopping now: {in_flight} in flight will be repeated"),
        false => format!("stopping: no new calls; waiting for {in_flight} in flight"),
    };
    let sentence = format!("{}  {what}", stopping.name);
    if shell.env.iter().any(|(name, _)| name == "WINDROW_TASK") {
        // Called from a handler: waiting would deadlock, since the job waits for this call.
        return say(&stopping, &sentence, &args.view);
    }
    shell.screen.say(&sentence);
    let timeout = stopping.settings.as_ref().and_then(|settings| settings.timeout);
    let until = Instant::now() + timeout.unwrap_or_default().saturating_add(END_PATIENCE);
    while StateDir::is_held(&place) {
        if Instant::now() >= until {
            return Err(still_stopping(&which.name, &stopping));
        }
        sleep(LOOK_EVERY).await;
    }
    let ended = ended(which, stopping, &place, shell).await?;
    let go_on = ended.go_on.iter().flatten();
    let go_on: String = go_on.map(|go_on| format!("; {go_on} resumes it")).collect();
    let sentence = format!("{}  {}{go_on}", ended.name, ended.status());
    say(&ended, &sentence, &args.view)
}

/// Returns the stopped job from its directory. A run over failures is stored with its job, which knows the command
/// that resumes it.
async fn ended(which: &Which, stopping: Job, place: &Path, shell: &Shell) -> Result<Job, Fault> {
    let Some(job) = only_failed::over(&stopping.name) else {
        return Ok(list::kept(which, shell).await?.unwrap_or(stopping));
    };
    let job = Which {
        name: job.to_owned(),
        state: which.state.clone(),
    };
    let kept = list::kept(&job, shell).await?;
    let status = shelf::status_of(place, &stopping.name).await;
    Ok(Job {
        status: status.map(|status| status.as_str().to_owned()),
        go_on: Some(kept.and_then(|kept| kept.go_on).flatten()),
        process: None,
        ..stopping
    })
}

fn still_stopping(name: &str, stopping: &Job) -> Fault {
    let because = format!(
        "process {} is still running although its calls should have ended",
        json!(stopping.process)
    );
    Fault::new(
        Exit::Conflict,
        format!("the job {name} is still stopping"),
        because,
    )
    .hint(format!(
        "windrow job show {0} shows what it waits for, windrow job stop {0} --now aborts its calls",
        shell_word(name)
    ))
}

/// Prints a sentence for people, the answer for scripts.
fn say(answer: &impl Serialize, sentence: &str, view: &View) -> Result<Exit, Fault> {
    let text = if view.output.is_for_people() {
        sentence.to_owned()
    } else {
        json!(answer).to_string()
    };
    screen::put(&text).map(|()| Exit::Ok)
}
