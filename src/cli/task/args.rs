//! `windrow task` on the command line.

use clap::{Args, Subcommand};

use super::{explain, wait, watch};
use crate::cli::remote::{Paging, Remote};

/// `windrow task`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TaskArgs {
    /// What to do; without it the tasks are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of the list.
    #[command(flatten)]
    pub list: ListArgs,
}

/// What to do with tasks.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List tasks, the newest first
    List(ListArgs),
    /// Show a task
    Show(ShowArgs),
    /// Wait until tasks are over
    #[command(after_help = wait::EXAMPLES)]
    Wait(wait::WaitArgs),
    /// Watch a task as it goes on
    #[command(after_help = watch::EXAMPLES)]
    Watch(watch::WatchArgs),
    /// Why a task is as fast as it is, and what would help
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::ExplainArgs),
}

/// `windrow task list`
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Of this business
    #[arg(long, short = 'b', value_name = "BUSINESS", help_heading = "Which")]
    pub business: Option<String>,
    /// Of one of these statuses, separated by commas
    #[arg(long, short = 's', value_name = "STATUSES", help_heading = "Which")]
    pub status: Option<String>,
    /// With this label
    #[arg(long, short = 'l', value_name = "KEY:VALUE", help_heading = "Which")]
    pub label: Option<String>,
    /// Whose name or business contains this
    #[arg(long, value_name = "TEXT", help_heading = "Which")]
    pub search: Option<String>,
    /// Redrives of this task
    #[arg(long, value_name = "TASK", help_heading = "Which")]
    pub parent: Option<String>,
    /// The oldest first
    #[arg(long, help_heading = "Which")]
    pub oldest: bool,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow task show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}
