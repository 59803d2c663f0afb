//! Implementation of `windrow job rm`: deletes the data of a job that isn't running.

use std::path::PathBuf;

use serde_json::json;

use super::args::RemoveArgs;
use super::shelf;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::job::shelf::KeptJob;
use crate::link::contexts::like;
use crate::link::{Danger, confirm};
use crate::output::screen;
use crate::output::shell_word;
use crate::output::table::human;
use crate::run::kept::{only_failed, place, resume};
use crate::shell::Shell;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::tasks::store::{Actor, TaskStore, Write};
use windrow_node::jobs::{self, BUSINESS};
use windrow_node::{StateDir, Store, SystemClock};
use windrow_server::service::JobError;

/// Deletes a job after the user confirms.
pub(super) async fn remove(args: &RemoveArgs, shell: &Shell) -> Result<Exit, Fault> {
    let name = &args.which.name;
    let (place, kept) = find(args, shell).await?;
    let question = format!("{} Delete {name}?", lost(name, kept.as_ref()));
    // Lock before asking: the job could start while the user decides.
    let held = StateDir::lock(&place).map_err(|error| runs(name, Fault::of_lock(&error, "--state")))?;
    confirm(Danger::Final, args.yes, shell, &question)?;
    let own = place::of_job(Some(name), &shell.env).ok();
    if args.which.state.is_none() && own.as_deref() == Some(&*place) {
        place::remove_directory(&place)?;
    } else {
        forget(&held, name, shell).await?;
    }
    drop(held);
    let text = if args.view.output.is_for_people() {
        format!("{name}  deleted")
    } else {
        json!({"name": name, "place": place, "deleted": true}).to_string()
    };
    screen::put(&text).map(|()| Exit::Ok)
}

/// Returns the directory and the stored state of a job, the latter only if this program can read it.
async fn find(args: &RemoveArgs, shell: &Shell) -> Result<(PathBuf, Option<KeptJob>), Fault> {
    let which = &args.which;
    let own = place::of_job(Some(&which.name), &shell.env).ok();
    for place in place::candidates(&which.name, which.state.as_deref(), &shell.env)? {
        if !StateDir::database_in(&place).is_file() {
            continue;
        }
        if let Some(job) = shelf::named(&place, &which.name).await {
            return Ok((place, Some(job)));
        }
        if which.state.is_none() && own.as_ref() == Some(&place) {
            return Ok((place, None));
        }
    }
    let names = place::names(&shell.env);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let what = format!("no job named {}", which.name);
    Err(
        Fault::new(Exit::NotFound, what, "nothing of it is kept on this machine")
            .hint("`windrow job list` lists the kept jobs; --state DIR if it ran with one")
            .meant(like(&which.name, &names)),
    )
}

/// Returns the sentence on what deletion would lose.
fn lost(name: &str, kept: Option<&KeptJob>) -> String {
    let Some(kept) = kept else {
        return format!("All data of {name} is lost; this version of Windrow can't read it.");
    };
    let task = &kept.task;
    let done = task.counters.settled() + task.counters.excluded;
    let (done, total) = (human::count(done), human::count(task.total.0));
    let failed = match kept.still_failed() {
        0 => String::new(),
        failed => format!(", {} of them failed", human::count(failed)),
    };
    let then = match task.status {
        Status::Finished | Status::Cancelled => "the same `windrow run` starts over with all items",
        _ => "it can't be resumed, and the same `windrow run` starts with the first item",
    };
    format!(
        "{name} has done {done} of {total} items{failed}. Its progress, results and failures will be \
            lost: {then}."
    )
}

fn runs(name: &str, fault: Fault) -> Fault {
    if fault.exit != Exit::Conflict {
        return fault;
    }
    Fault {
        what: format!("can't delete {name}: a process uses its directory"),
        hint: None,
        ..fault
    }
    .hint(format!(
        "`windrow job stop {}` stops it, if that job is running",
        shell_word(name)
    ))
}

/// Deletes one job of a shared directory: its rows and its piped input.
async fn forget(held: &StateDir, name: &str, shell: &Shell) -> Result<(), Fault> {
    let store = Store::open(&held.database()).await?;
    let write = Actor {
        name: shell.user(),
        source: "cli",
        ..Actor::windrow(None)
    }
    .writes();
    let forgotten = forget_in(&store, held, name, &write).await;
    store.close().await?;
    forgotten
}

async fn forget_in(store: &Store, held: &StateDir, name: &str, write: &Write) -> Result<(), Fault> {
    let Some(task) = store.find(BUSINESS, name).await? else {
        return Ok(());
    };
    let clock = SystemClock::new();
    for round in only_failed::later(store, &task).await? {
        jobs::forget(store, &round, write, &clock)
            .await
            .map_err(JobError::from)?;
    }
    jobs::forget(store, &task, write, &clock)
        .await
        .map_err(JobError::from)?;
    resume::forget_piped(store, &task.source, held).await
}
