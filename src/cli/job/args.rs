//! `windrow job` on the command line.

use std::path::PathBuf;

use clap::{Arg, Args, Subcommand};

use crate::link::View;
use crate::run::args::Tunes;
use crate::task::args::look::{FailuresArgs, ItemArgs, LogArgs, PagesArgs, ReportArgs, ResultsArgs};
use crate::task::args::steer::{FailArgs, SkipArgs};
use crate::task::look::explain::ExplainArgs;
use crate::task::wait::WaitArgs;
use crate::task::watch::WatchArgs;

/// How a run is steered.
pub(crate) const EXAMPLES: &str = "\
Examples:
  windrow job
  windrow job explain nightly
  windrow job set nightly --rate 50/s
  windrow job stop nightly
  windrow job rm nightly

The first line of a run names its job: `t1: 200 items (nightly)`. While the
failures of a job are gone over (--only-failed), its name means that run.";

/// `windrow job`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct JobArgs {
    /// What to do; without it the jobs are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of the list.
    #[command(flatten)]
    pub list: ListArgs,
}

/// `windrow job list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only those that run now
    #[arg(long)]
    pub running: bool,
    /// How they are shown.
    #[command(flatten)]
    pub view: View,
}

/// What to do with jobs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the jobs of this user on this machine: those that run, were stopped or ended
    List(ListArgs),
    /// Show a job
    Show(OneArgs),
    /// Change how a job is driven, while it runs
    Set(Box<SetArgs>),
    /// Stop a job and wait for its end: calls in flight end first, the same `windrow run` goes on with it
    Stop(StopArgs),
    /// Delete what a job that doesn't run keeps on this machine
    #[command(visible_alias = "delete")]
    Rm(RemoveArgs),
    /// Why a job is as fast as it is, and what would help
    Explain(OfJob<ExplainArgs>),
    /// Watch a job as it goes on
    Watch(OfJob<WatchArgs>),
    /// Wait until a job is over
    Wait(OfJob<WaitArgs>),
    /// Skip items that nobody should call any more
    Skip(OfJob<SkipArgs>),
    /// Give up the items that wait after a failure with a code
    #[command(
        mut_args(of_job),
        override_usage = "windrow job fail [OPTIONS] --code CODE NAME"
    )]
    Fail(OfJob<FailArgs>),
    /// Show failures by code, or item by item
    Failures(OfJob<FailuresArgs>),
    /// Show an item with its attempts
    Item(OfJob<ItemArgs>),
    /// Print the outputs of items in index order, of a job that keeps them (--results-out, or results = keep)
    Results(OfJob<ResultsArgs>),
    /// Tell the whole story of a job, with the proof that every item is accounted for
    Report(OfJob<ReportArgs>),
    /// Show a job's log, the newest line last, or follow it
    Log(OfJob<LogArgs>),
    /// List the runs of a job, the newest first, each with its counts at its end
    #[command(visible_alias = "history")]
    Runs(OfJob<PagesArgs>),
    /// List who changed what of a job and why, the newest first
    Revisions(OfJob<PagesArgs>),
}

/// A verb of tasks about a job.
#[derive(Debug, Args)]
#[command(mut_args(of_job))]
pub struct OfJob<A: Args> {
    /// As of a task.
    #[command(flatten)]
    pub verb: A,
    /// The directory with its progress, if it was run with --state
    #[arg(long, value_name = "DIR", help_heading = None)]
    pub state: Option<PathBuf>,
}

/// An argument of a verb of tasks as it is for a job: the job is named, and no server is asked.
fn of_job(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "task" | "tasks" => arg.value_name("NAME").help("The job's name"),
        "context" | "server" | "token_file" | "ca_file" | "business" | "status" | "label" => arg.hide(true),
        _ => arg,
    }
}

/// Which job.
#[derive(Debug, Args)]
pub struct Which {
    /// The job's name
    pub name: String,
    /// Where it keeps its progress, if it was run with --state
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// `windrow job show`
#[derive(Debug, Args)]
pub struct OneArgs {
    /// Which.
    #[command(flatten)]
    pub which: Which,
    /// How it is shown.
    #[command(flatten)]
    pub view: View,
}

/// `windrow job set`
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Which.
    #[command(flatten)]
    pub which: Which,
    /// What changes.
    #[command(flatten)]
    pub tunes: Tunes,
    /// How it is shown.
    #[command(flatten)]
    pub view: View,
}

/// `windrow job stop`
#[derive(Debug, Args)]
pub struct StopArgs {
    /// Which.
    #[command(flatten)]
    pub which: Which,
    /// Don't wait for calls in flight: they will be repeated
    #[arg(long)]
    pub now: bool,
    /// How it is shown.
    #[command(flatten)]
    pub view: View,
}

/// `windrow job rm`
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Which.
    #[command(flatten)]
    pub which: Which,
    /// Ask nothing
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// How it is shown.
    #[command(flatten)]
    pub view: View,
}
