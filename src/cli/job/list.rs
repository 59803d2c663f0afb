//! Implementation of `windrow job list`: running jobs, and jobs kept on this machine.

use std::path::Path;

use super::args::{ListArgs, Which};
use super::{ask, shelf, shown};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::job::json::Job;
use crate::run::kept::place;
use crate::run::kept::resume::{command, command_in};
use crate::shell::Shell;
use windrow_node::StateDir;

/// Job with a flag for whether a process runs it.
struct Row {
    job: Job,
    runs: bool,
}

/// Lists the jobs: running ones first, then by last run, newest first.
pub(super) async fn list(args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut rows = Vec::new();
    for place in ask::places(shell)? {
        rows.append(&mut in_place(&place, shell).await);
    }
    rows.retain(|row| row.runs || !args.running);
    rows.sort_by(|one, other| {
        let key = |row: &Row| (row.runs, row.job.ran_at().map(str::to_owned));
        key(other).cmp(&key(one))
    });
    let jobs: Vec<Job> = rows.into_iter().map(|row| row.job).collect();
    shown::list(&jobs, args, shell)
}

/// Returns the jobs of a directory.
async fn in_place(place: &Path, shell: &Shell) -> Vec<Row> {
    if !StateDir::database_in(place).is_file() {
        return Vec::new();
    }
    let mut live = live_in(place, shell).await;
    let Some(kept) = shelf::of(place).await else {
        let unread = |name: String| Row {
            job: shelf::unread(place, &name),
            runs: false,
        };
        let live = live.map(|job| Row { job, runs: true });
        return live
            .or_else(|| place::readable(place).map(unread))
            .into_iter()
            .collect();
    };
    // A run without a control socket (`--control=off`) is recognized by the lock on its directory.
    let mut is_held =
        live.is_none() && kept.iter().any(shelf::KeptJob::claims_to_run) && StateDir::is_held(place);
    let mut rows = Vec::new();
    for job in &kept {
        // If the job ended after its process answered, the stored state is newer.
        let answer = live
            .take_if(|live| is_of(live, job))
            .filter(|_| job.claims_to_run());
        let runs = answer.is_some() || (job.claims_to_run() && std::mem::take(&mut is_held));
        let shown = job.shown(place, runs);
        let (kept, go_on) = (shown.kept.clone(), shown.go_on.clone());
        let answer = answer.map(|answer| Job {
            kept,
            go_on,
            ..answer
        });
        let job = answer.unwrap_or(shown);
        rows.push(Row { job, runs });
    }
    rows.extend(live.map(|job| Row { job, runs: true }));
    rows
}

/// Returns the job running in a directory, as its process reports it.
async fn live_in(place: &Path, shell: &Shell) -> Option<Job> {
    let there = Box::pin(ask::in_place(place)).await?;
    let live = match there {
        Ok(there) => Box::pin(there.look()).await,
        Err(fault) => Err(fault),
    };
    match live {
        Ok(live) => Some(Box::pin(live.job()).await),
        Err(fault) => {
            // It has just ended, or doesn't answer; the others may.
            shell.screen.say(&fault.what);
            None
        }
    }
}

/// Returns a job with its stored state, running or not. `None` if there is no such job.
pub(super) async fn kept(which: &Which, shell: &Shell) -> Result<Option<Job>, Fault> {
    for place in place::candidates(&which.name, which.state.as_deref(), &shell.env)? {
        let rows = Box::pin(in_place(&place, shell)).await;
        let found = rows.into_iter().find(|row| row.job.name == which.name);
        if let Some(Row { mut job, .. }) = found {
            if let Some(Some(go_on)) = &mut job.go_on
                && let Some(rest) = go_on.strip_prefix(&command(&which.name))
            {
                *go_on = command_in(&which.name, which.state.as_deref()) + rest;
            }
            return Ok(Some(job));
        }
    }
    Ok(None)
}

/// True if the answer of a process is about this job, not about a run over its failures.
fn is_of(live: &Job, job: &shelf::KeptJob) -> bool {
    live.task.as_ref() == Some(&job.task.id.to_string())
}
