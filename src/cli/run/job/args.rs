//! `windrow job` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::link::View;
use crate::run::args::Tunes;

/// How a run is steered.
pub(crate) const EXAMPLES: &str = "\
Examples:
  windrow job
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
