//! `windrow job`: the jobs that `windrow run` runs now on this machine, steered from another terminal.

pub mod args;
mod ask;
mod shown;

use std::path::Path;

use serde_json::Value;

use self::args::{JobArgs, SetArgs, StopArgs, Verb};
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::View;
use crate::output::screen;
use crate::run::control::Command;
use crate::run::kept::{beside, place};
use crate::task::difference_but;
use windrow_core::settings::table::TuningPatch;

/// Does what the verb says; without one it lists.
///
/// # Errors
/// `NotFound` when the job doesn't run; `Rejected` with what it refused.
pub(crate) async fn job(args: &JobArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list(&args.list, shell).await,
        Some(Verb::List(view)) => list(view, shell).await,
        Some(Verb::Show(args)) => shown::one(
            &ask::ask(&args.which, &Command::Show, shell).await?,
            &args.view,
            shell,
        ),
        Some(Verb::Set(args)) => set(args, shell).await,
        Some(Verb::Stop(args)) => stop(args, shell).await,
    }
}

/// The names of the jobs that run, or of the one in a directory; what can't be asked is left out without a word.
pub(crate) async fn running(state: Option<&Path>, shell: &Shell) -> Vec<String> {
    let jobs = match state {
        Some(place) => ask::in_place(place).await.into_iter().collect(),
        None => ask::each(shell).await.unwrap_or_default(),
    };
    let name = |job: Value| Some(job["name"].as_str()?.to_owned());
    jobs.into_iter().flatten().filter_map(name).collect()
}

async fn list(view: &View, shell: &Shell) -> Result<Exit, Fault> {
    let jobs = ask::all(shell).await?;
    let exit = shown::list(&jobs, view, shell)?;
    let mut rest = place::readable_names(&shell.env);
    rest.extend(beside::piped(&shell.env).await);
    if jobs.is_empty() && !rest.is_empty() && view.output.is_for_people() {
        let names = rest.join(", ");
        shell.screen.say(&format!(
            "have run here: {names}; `windrow run --resume NAME …` goes on with one that was stopped"
        ));
    }
    Ok(exit)
}

async fn set(args: &SetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let settings = args.tunes.0.clone();
    if settings == TuningPatch::default() {
        return Err(
            Fault::new(Exit::Usage, "nothing is to be changed", "no flag names a setting")
                .hint("--rate 50/s, --concurrency 8 … `windrow job set --help` has them all"),
        );
    }
    let ask = Command::Set {
        settings: Box::new(settings),
    };
    let changed = ask::ask(&args.which, &ask, shell).await?;
    let difference = difference_but(&changed["before"], &changed["after"], &[]);
    say(
        &changed,
        &format!("{}  {difference}", args.which.name),
        &args.view,
    )
}

async fn stop(args: &StopArgs, shell: &Shell) -> Result<Exit, Fault> {
    let stopping = ask::ask(&args.which, &Command::Stop { now: args.now }, shell).await?;
    let in_flight = stopping["counts"]["in_flight"].as_u64().unwrap_or(0);
    let what = match args.now {
        true => format!("stopping at once: {in_flight} items in flight will be repeated"),
        false => format!("stopping: no new calls; waiting for {in_flight} items in flight"),
    };
    say(&stopping, &format!("{}  {what}", args.which.name), &args.view)
}

/// What was done: a sentence for people, the answer for scripts.
fn say(answer: &Value, sentence: &str, view: &View) -> Result<Exit, Fault> {
    let text = if view.output.is_for_people() {
        sentence.to_owned()
    } else {
        answer.to_string()
    };
    screen::put(&text).map(|()| Exit::Ok)
}
