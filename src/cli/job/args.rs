//! Arguments of `windrow job` and its verbs.

use std::path::PathBuf;

use clap::{Arg, Args, Subcommand};

use crate::link::View;
use crate::run::args::Tunes;
use crate::task::args::look::{FailuresArgs, ItemArgs, LogArgs, PagesArgs, ReportArgs, ResultsArgs};
use crate::task::args::steer::{FailArgs, SkipArgs};
use crate::task::look::explain::ExplainArgs;
use crate::task::wait::WaitArgs;
use crate::task::watch::WatchArgs;

/// Examples of controlling a job, for the help.
pub(crate) const EXAMPLES: &str = "Examples:
  windrow job
  windrow job explain nightly
  windrow job set nightly --rate 50/s
  windrow job stop nightly
  windrow job rm nightly

The first line of a run names its job: `t1: 200 items (nightly)`. During
--only-failed, the name refers to the run over the job's failures.";

/// Arguments of `windrow job`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct JobArgs {
    /// Verb to execute; without one the jobs are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Flags of the list, without a verb.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Arguments of `windrow job list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only jobs that are running now
    #[arg(long)]
    pub running: bool,
    /// Flags for the output format.
    #[command(flatten)]
    pub view: View,
}

/// Verbs of `windrow job`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List this user's jobs on this machine: running, stopped and ended
    List(ListArgs),
    /// Show a job with its progress and settings
    Show(OneArgs),
    /// Change the settings of a job while it runs
    Set(Box<SetArgs>),
    /// Stop a job and wait for its end; calls in flight finish first, and the same `windrow run` resumes it
    Stop(StopArgs),
    /// Delete the data of a job that isn't running
    #[command(visible_alias = "delete")]
    Rm(RemoveArgs),
    /// Explain the current speed of a job and how to raise it
    Explain(OfJob<ExplainArgs>),
    /// Watch the progress of a job
    Watch(OfJob<WatchArgs>),
    /// Wait until a job ends
    Wait(OfJob<WaitArgs>),
    /// Skip items, so that they are never called again
    Skip(OfJob<SkipArgs>),
    /// Mark retrying items as failed, by failure code
    #[command(
        mut_args(of_job),
        override_usage = "windrow job fail [OPTIONS] --code CODE NAME"
    )]
    Fail(OfJob<FailArgs>),
    /// Show failures, by code or item by item
    Failures(OfJob<FailuresArgs>),
    /// Show an item with its attempts
    Item(OfJob<ItemArgs>),
    /// Print the outputs of items in index order, of a job that keeps them (--results-out, or results = keep)
    Results(OfJob<ResultsArgs>),
    /// Print the full history of a job, with proof that every item is accounted for
    Report(OfJob<ReportArgs>),
    /// Show a job's log, newest line last, or follow it
    Log(OfJob<LogArgs>),
    /// List the runs of a job with their final counts, newest first
    #[command(visible_alias = "history")]
    Runs(OfJob<PagesArgs>),
    /// List changes to a job with author and reason, newest first
    Revisions(OfJob<PagesArgs>),
}

/// Verb shared with `windrow task`, applied to a job.
#[derive(Debug, Args)]
#[command(mut_args(of_job))]
pub struct OfJob<A: Args> {
    /// Arguments of the verb in `windrow task`.
    #[command(flatten)]
    pub verb: A,
    /// Directory with the job's progress, if it was run with --state
    #[arg(long, value_name = "DIR", help_heading = None)]
    pub state: Option<PathBuf>,
}

/// Adapts an argument of a task's verb to a job: it takes the job's name and hides the server flags.
fn of_job(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "task" | "tasks" => arg.value_name("NAME").help("The job's name"),
        "context" | "server" | "token_file" | "ca_file" | "business" | "status" | "label" => arg.hide(true),
        _ => arg,
    }
}

/// Flags that select one job.
#[derive(Debug, Args)]
pub struct Which {
    /// Name of the job
    pub name: String,
    /// Directory with the job's progress, if it was run with --state
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// Arguments of `windrow job show`.
#[derive(Debug, Args)]
pub struct OneArgs {
    /// Job to act on, and its directory.
    #[command(flatten)]
    pub which: Which,
    /// Flags for the output format.
    #[command(flatten)]
    pub view: View,
}

/// Arguments of `windrow job set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Job to act on, and its directory.
    #[command(flatten)]
    pub which: Which,
    /// Settings to change, from flags.
    #[command(flatten)]
    pub tunes: Tunes,
    /// Flags for the output format.
    #[command(flatten)]
    pub view: View,
}

/// Arguments of `windrow job stop`.
#[derive(Debug, Args)]
pub struct StopArgs {
    /// Job to act on, and its directory.
    #[command(flatten)]
    pub which: Which,
    /// Don't wait for calls in flight; they will be repeated
    #[arg(long)]
    pub now: bool,
    /// Flags for the output format.
    #[command(flatten)]
    pub view: View,
}

/// Arguments of `windrow job rm`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Job to act on, and its directory.
    #[command(flatten)]
    pub which: Which,
    /// Don't ask for confirmation
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Flags for the output format.
    #[command(flatten)]
    pub view: View,
}
