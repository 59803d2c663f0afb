//! Names for jobs that are only counted (`--total 5`). Only the number identifies them, so two experiments would
//! share one name; the second one, with another handler, gets its own job. Rows of a file are identified by the file:
//! they are never sent again because a word of the handler changed.

use super::only_failed;
use super::{beside, place};
use crate::fault::Fault;
use crate::run::args::RunArgs;
use crate::run::handler::identity;
use crate::shell::Shell;
use windrow_engine::ports::tasks::store::TaskStore;
use windrow_node::jobs::BUSINESS;
use windrow_node::{StateDir, Store};

/// Largest number of jobs of one total that are told apart; more need explicit names.
const APART_MAX: u32 = 1_000;

/// Gives the command the name `total-5-2`, `total-5-3` … if the jobs before have ended with other handlers.
///
/// # Errors
/// Fails if the existing jobs can't be read.
pub(in crate::run) async fn named(mut args: Box<RunArgs>, shell: &Shell) -> Result<Box<RunArgs>, Fault> {
    let Some(total) = args.total.filter(|_| is_free(&args)) else {
        return Ok(args);
    };
    let first = format!("total-{total}");
    for number in 1..=APART_MAX {
        let name = match number {
            1 => first.clone(),
            number => format!("{first}-{number}"),
        };
        if is_of_another(&name, &args, shell).await? {
            continue;
        }
        if number > 1 {
            let line = format!("{first} has finished with another handler; this one's job is {name}");
            shell.screen.say(&line);
            args.name = Some(name);
        }
        return Ok(args);
    }
    Ok(args)
}

/// True if no flag refers to an existing job.
fn is_free(args: &RunArgs) -> bool {
    let is_named = args.name.is_some() || args.resume.is_some();
    !is_named && !args.restart && !args.only_failed && args.if_finished.is_none()
}

async fn is_of_another(name: &str, args: &RunArgs, shell: &Shell) -> Result<bool, Fault> {
    let place = match &args.state {
        Some(place) => place.clone(),
        None => place::of_job(Some(name), &shell.env)?,
    };
    let look = async |store: &Store| ended_otherwise(store, name, args).await;
    let found = beside::looked_at(&StateDir::database_in(&place), look).await;
    found.unwrap_or(Ok(false))
}

/// True if a job has ended with another handler. A job with both successes and failures doesn't count: this handler
/// is probably meant to fix it, so it isn't started anew silently.
async fn ended_otherwise(store: &Store, name: &str, args: &RunArgs) -> Result<bool, Fault> {
    let Some(task) = store
        .find(BUSINESS, name)
        .await?
        .filter(|task| task.status.is_terminal())
    else {
        return Ok(false);
    };
    let net = only_failed::net(store, &task).await?;
    let recovered = net.as_ref().map_or(0, |net| net.recovered);
    let is_half_done = task.counters.succeeded > 0 && task.counters.failed > recovered;
    Ok(!is_half_done && identity::is_another(&task, net.as_ref(), args))
}
