//! Arguments of `windrow task` and its verbs.

pub mod look;
pub mod make;
pub mod redrive;
pub mod steer;

use clap::{Args, Subcommand};

use self::look::{
    ExportArgs, FailuresArgs, ItemArgs, LogArgs, PagesArgs, PreviewArgs, ReportArgs, ResultsArgs,
};
use self::make::{AppendArgs, ApplyArgs, CloneArgs, CreateArgs};
use self::redrive::{RedriveArgs, ReplayArgs};
use self::steer::{FailArgs, FinishArgs, MoveArgs, PlainArgs, SetArgs, SkipArgs, StartArgs, StopArgs};
use super::{wait, watch};
use crate::link::{Paging, Remote};
use crate::task::look::explain;

/// Arguments of `windrow task`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TaskArgs {
    /// Verb to execute; without one the tasks are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Flags of the list, without a verb.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Builds the usage of a verb, since clap's own is longer than a line.
macro_rules! usage {
    ($verb:literal, $more:literal) => {
        concat!(
            "windrow task ",
            $verb,
            " [OPTIONS]",
            $more,
            "\n                    TASK…|--business NAME|--status STATUSES|--label KEY=VALUE"
        )
    };
}

/// Verbs of `windrow task`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List tasks, newest first
    List(ListArgs),
    /// Show a task with its progress and settings
    Show(ShowArgs),
    /// Create a task; its items come from a file, a pipe, a URL, a count or a list
    #[command(after_help = make::CREATE_EXAMPLES, override_usage = make::CREATE_USAGE)]
    Create(Box<CreateArgs>),
    /// Call the handler with some items of a task; records nothing
    Preview(PreviewArgs),
    /// Start tasks or resume them
    #[command(override_usage = usage!("start", ""))]
    Start(StartArgs),
    /// Stop tasks: no new calls; calls in flight may finish
    #[command(override_usage = usage!("stop", ""))]
    Stop(StopArgs),
    /// Cancel tasks for good
    #[command(override_usage = usage!("cancel", ""))]
    Cancel(PlainArgs),
    /// Finish tasks early: items already dispatched still settle
    #[command(override_usage = usage!("finish", ""))]
    Finish(FinishArgs),
    /// Append items to an open task, from a file or from a pipe as they arrive
    #[command(after_help = make::APPEND_EXAMPLES)]
    Append(AppendArgs),
    /// Seal open tasks: accept no more items, and finish once all are settled
    #[command(override_usage = usage!("seal", ""))]
    Seal(PlainArgs),
    /// Mark retrying items as failed, by failure code
    #[command(after_help = steer::FAIL_EXAMPLES, override_usage = usage!("fail", " --code CODE"))]
    Fail(FailArgs),
    /// Skip items, so that they are never called again
    #[command(after_help = steer::SKIP_EXAMPLES)]
    Skip(SkipArgs),
    /// Retry the recovery of tasks now
    #[command(override_usage = usage!("recover", ""))]
    Recover(PlainArgs),
    /// Change tasks, even while they run; prints old and new values
    #[command(visible_alias = "edit", override_usage = steer::SET_USAGE)]
    Set(Box<SetArgs>),
    /// Create a task like another one, with nothing done yet
    Clone(Box<CloneArgs>),
    /// Delete ended tasks with all records of their items
    #[command(override_usage = usage!("delete", ""))]
    Delete(PlainArgs),
    /// Move a running task to another node: calls in flight finish first, and nothing is done twice
    #[command(after_help = steer::MOVE_EXAMPLES)]
    Move(MoveArgs),
    /// Show failures, by code or item by item
    Failures(FailuresArgs),
    /// Show an item with its attempts
    Item(ItemArgs),
    /// Redo failed items in a new task
    #[command(override_usage = redrive::REDRIVE_USAGE, after_help = redrive::REDRIVE_EXITS)]
    Redrive(Box<RedriveArgs>),
    /// Send settled items again in a new task, also those that succeeded
    #[command(after_help = redrive::REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
    /// Show a task's log, newest line last, or follow it
    Log(LogArgs),
    /// List the runs of a task with their final counts, newest first; counts are per shard
    Runs(PagesArgs),
    /// List changes to a task with author and reason, newest first
    Revisions(PagesArgs),
    /// Print the full history of a task, with proof that every item is accounted for
    Report(ReportArgs),
    /// Print outputs in index order, one row per succeeded item; needs results = keep
    Results(ResultsArgs),
    /// Export failures or the log as CSV or NDJSON
    Export(ExportArgs),
    /// Create or update a task from a file
    #[command(after_help = make::APPLY_EXAMPLES)]
    Apply(ApplyArgs),
    /// Wait until tasks end
    #[command(after_help = wait::EXAMPLES)]
    Wait(wait::WaitArgs),
    /// Watch the progress of a task
    #[command(after_help = watch::EXAMPLES)]
    Watch(watch::WatchArgs),
    /// Explain the current speed of a task and how to raise it
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::ExplainArgs),
}

/// Arguments of `windrow task list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Only tasks of this business
    #[arg(long, short = 'b', value_name = "BUSINESS", help_heading = "Selection")]
    pub business: Option<String>,
    /// Only tasks in one of these statuses, separated by commas
    #[arg(long, short = 's', value_name = "STATUSES", help_heading = "Selection")]
    pub status: Option<String>,
    /// Only tasks with this label
    #[arg(long, short = 'l', value_name = "KEY=VALUE", value_parser = make::label_sought, help_heading = "Selection")]
    pub label: Option<String>,
    /// Only tasks whose name or business contains this text
    #[arg(long, value_name = "TEXT", help_heading = "Selection")]
    pub search: Option<String>,
    /// Only redrives of this task
    #[arg(long, value_name = "TASK", help_heading = "Selection")]
    pub parent: Option<String>,
    /// List the oldest tasks first
    #[arg(long, help_heading = "Selection")]
    pub oldest: bool,
    /// Flags for the number of entries.
    #[command(flatten)]
    pub paging: Paging,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow task show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Task to show: t42, or business/name
    pub task: String,
    /// Print only the address of the dashboard page
    #[arg(long)]
    pub web: bool,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}
