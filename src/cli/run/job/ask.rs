//! Asks runs on this machine.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::args::Which;
use super::list;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::run::control::{Address, Command, Refusal, Reply};
use crate::run::json::Job;
use crate::run::kept::resume::{command_in, meant};
use crate::run::kept::{only_failed, place};
use crate::shell::Shell;

/// For so long a run may take to answer: its store may be busy.
const PATIENCE: Duration = Duration::from_secs(15);
/// The longest answer. Unit: bytes.
const TOLD_BYTES_MAX: u64 = 1 << 20;

/// Asks a job; its answer.
///
/// # Errors
/// As [`ask_in`].
pub(super) async fn ask<T: DeserializeOwned>(
    which: &Which,
    ask: &Command,
    shell: &Shell,
) -> Result<T, Fault> {
    ask_in(which, ask, shell).await.map(|(answer, _)| answer)
}

/// Asks a job; its answer, and the directory that its process holds. A job that doesn't run is, while its failures are gone
/// over, the run that does.
///
/// # Errors
/// `NotFound` when there is none; `Conflict` when it doesn't run; `Rejected` with what it refused.
pub(super) async fn ask_in<T: DeserializeOwned>(
    which: &Which,
    ask: &Command,
    shell: &Shell,
) -> Result<(T, PathBuf), Fault> {
    let state = which.state.as_deref();
    let mut places = place::candidates(&which.name, state, &shell.env)?;
    if let Some(job) = only_failed::over(&which.name) {
        // It is kept where its job is.
        places.extend(place::candidates(job, state, &shell.env)?);
    }
    for place in places {
        let Some(found) = reach(&place).await? else {
            continue;
        };
        let shown: Job = told(found, &place, &Command::Show).await?;
        let is_it = shown.name == which.name || only_failed::over(&shown.name) == Some(&which.name);
        if let (true, Some(again)) = (is_it, reach(&place).await?) {
            return Ok((told(again, &place, ask).await?, place));
        }
    }
    let running = all(shell).await?;
    let running: Vec<&str> = running.iter().map(|job| job.name.as_str()).collect();
    let names = place::names(&shell.env);
    Err(match list::kept(which, shell).await? {
        Some(_) => not_running(which, &running),
        None if which.state.is_none() && names.contains(&which.name) => never_began(&which.name),
        None => unknown(which, &running, &names),
    })
}

/// All jobs of this user that run.
///
/// # Errors
/// When the place of jobs can't be read.
pub(super) async fn all(shell: &Shell) -> Result<Vec<Job>, Fault> {
    let mut found = Vec::new();
    for shown in each(shell).await? {
        match shown {
            Ok(shown) => found.push(shown),
            // It ended meanwhile, or can't be asked; the others can.
            Err(fault) => shell.screen.say(&fault.what),
        }
    }
    Ok(found)
}

/// What each job that runs says of itself.
///
/// # Errors
/// As [`all`].
pub(super) async fn each(shell: &Shell) -> Result<Vec<Result<Job, Fault>>, Fault> {
    let mut found = Vec::new();
    for place in places(shell)? {
        found.extend(in_place(&place).await);
    }
    Ok(found)
}

/// What the job that runs in a directory says of itself.
pub(super) async fn in_place(place: &Path) -> Option<Result<Job, Fault>> {
    match reach(place).await {
        Ok(Some(stream)) => Some(told(stream, place, &Command::Show).await),
        Ok(None) => None,
        Err(fault) => Some(Err(fault)),
    }
}

/// Directories in which jobs without `--state` keep their progress.
///
/// # Errors
/// When the place of jobs can't be read.
pub(super) fn places(shell: &Shell) -> Result<Vec<PathBuf>, Fault> {
    let base = place::of_jobs(&shell.env)?;
    let listed = match std::fs::read_dir(&base) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unread(&base, &error)),
    };
    let mut places: Vec<PathBuf> = listed
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    places.sort_unstable();
    Ok(places)
}

/// The run that holds a directory; none where nobody does.
async fn reach(place: &Path) -> Result<Option<UnixStream>, Fault> {
    use io::ErrorKind::{ConnectionRefused, NotADirectory, NotFound};
    let reached = match Address::of(place) {
        Ok(address) => address.connect().await,
        Err(error) => Err(error),
    };
    match reached {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if [NotFound, ConnectionRefused, NotADirectory].contains(&error.kind()) => Ok(None),
        Err(error) => Err(unread(place, &error)),
    }
}

async fn told<T: DeserializeOwned>(mut stream: UnixStream, place: &Path, ask: &Command) -> Result<T, Fault> {
    let broken = |error: io::Error| {
        Fault::new(
            Exit::Unreachable,
            format!("the run in {} did not answer", place.display()),
            error.to_string(),
        )
        .hint("it may just have ended: windrow job list --running has those that run")
    };
    let talk = async {
        stream
            .write_all(format!("{}\n", serde_json::to_string(ask)?).as_bytes())
            .await?;
        let mut text = String::new();
        stream.take(TOLD_BYTES_MAX).read_to_string(&mut text).await?;
        Ok(serde_json::from_str::<Reply<T>>(&text)?)
    };
    let told = tokio::time::timeout(PATIENCE, talk)
        .await
        .unwrap_or_else(|late| Err(late.into()));
    match told.map_err(broken)? {
        Reply::Done(value) => Ok(value),
        Reply::Refused(Refusal { because, hint }) => {
            let fault = Fault {
                exit: Exit::Rejected,
                what: "the run refused the command".to_owned(),
                because,
                hint,
            };
            Err(fault.or_hint("windrow job show NAME says how it is driven now"))
        }
    }
}

/// It is kept, and no process runs it.
fn not_running(which: &Which, running: &[&str]) -> Fault {
    let because = match &which.state {
        Some(place) => format!("nobody runs it in {}", place.display()),
        None => "no `windrow run` of this user runs it".to_owned(),
    };
    let what = format!("the job {} doesn't run now", which.name);
    let go_on = format!(
        "{} goes on with it, or tells how it ended",
        command_in(&which.name, which.state.as_deref())
    );
    // As a node refuses it of a task: the job is there, its state is in the way.
    let fault = Fault::new(Exit::Conflict, what, because);
    match running {
        [] => fault.hint(go_on),
        names => fault.hint(format!("{go_on}; those that run: {}", names.join(", "))),
    }
}

/// What was to be its items was not read to its end.
fn never_began(name: &str) -> Fault {
    let because = "it ended before all its items were read, so nothing of it is kept to go on with";
    Fault::new(Exit::NotFound, format!("the job {name} never began"), because)
        .hint("begin it anew, with its source")
}

fn unknown(which: &Which, running: &[&str], kept: &[String]) -> Fault {
    let because = match &which.state {
        Some(place) => format!(
            "{} keeps none of this name, and nobody runs one there",
            place.display()
        ),
        None => "none of this name runs, and none is kept on this machine".to_owned(),
    };
    let fault = Fault::new(Exit::NotFound, format!("there is no job {}", which.name), because);
    let mut known: Vec<String> = running.iter().map(|name| (*name).to_owned()).collect();
    known.extend(
        kept.iter()
            .filter(|name| !running.contains(&name.as_str()))
            .cloned(),
    );
    fault.hint(match known.as_slice() {
        [] => {
            "`windrow run` begins one; one that was run with --state DIR is asked with --state DIR".to_owned()
        }
        known => {
            let meant = meant(&which.name, known);
            let running = match running {
                [] => String::new(),
                names => format!("; those that run: {}", names.join(", ")),
            };
            format!("{meant}{running}; --state DIR if it ran with one")
        }
    })
}

fn unread(path: &Path, error: &io::Error) -> Fault {
    Fault::new(
        Exit::Failed,
        format!("{} can't be read", path.display()),
        error.to_string(),
    )
}
