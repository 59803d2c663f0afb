//! `windrow task` on the command line.

pub mod look;
pub mod make;
pub mod redrive;
pub mod steer;

use clap::{Args, Subcommand};

use self::look::{
    ExportArgs, FailuresArgs, ItemArgs, LogArgs, PagesArgs, PreviewArgs, ReportArgs, ResultsArgs,
};
use self::make::{AppendArgs, ApplyArgs, CloneArgs, CreateArgs};
use self::redrive::RedriveArgs;
use self::steer::{FailArgs, FinishArgs, MoveArgs, PlainArgs, SetArgs, SkipArgs, StartArgs, StopArgs};
use super::{wait, watch};
use crate::link::{Paging, Remote};
use crate::task::look::explain;

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

/// clap's own is longer than a line.
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

/// What to do with tasks.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List tasks, the newest first
    List(ListArgs),
    /// Show a task
    Show(ShowArgs),
    /// Make a task of a file, a pipe, a URL, a count or a few items
    #[command(after_help = make::CREATE_EXAMPLES, override_usage = make::CREATE_USAGE)]
    Create(Box<CreateArgs>),
    /// Call the handler with some items; nothing is recorded
    Preview(PreviewArgs),
    /// Start tasks, or let them go on
    #[command(override_usage = usage!("start", ""))]
    Start(StartArgs),
    /// Stop tasks: no new calls; calls in flight may finish
    #[command(override_usage = usage!("stop", ""))]
    Stop(StopArgs),
    /// End tasks for good
    #[command(override_usage = usage!("cancel", ""))]
    Cancel(PlainArgs),
    /// Finish tasks early: what was dispatched still settles
    #[command(override_usage = usage!("finish", ""))]
    Finish(FinishArgs),
    /// Append items to an open task: the lines of a file, or of a pipe as they come
    #[command(after_help = make::APPEND_EXAMPLES)]
    Append(AppendArgs),
    /// Seal open tasks: they take no more items, and finish once those that they have are settled
    #[command(override_usage = usage!("seal", ""))]
    Seal(PlainArgs),
    /// Give up the items that wait after a failure with a code
    #[command(after_help = steer::FAIL_EXAMPLES, override_usage = usage!("fail", " --code CODE"))]
    Fail(FailArgs),
    /// Skip items that nobody should call any more
    #[command(after_help = steer::SKIP_EXAMPLES)]
    Skip(SkipArgs),
    /// Try recovering tasks now
    #[command(override_usage = usage!("recover", ""))]
    Recover(PlainArgs),
    /// Change tasks, also while they run; what was and what is are printed
    #[command(visible_alias = "edit", override_usage = steer::SET_USAGE)]
    Set(Box<SetArgs>),
    /// Make a task like another one, with nothing done yet
    Clone(Box<CloneArgs>),
    /// Delete tasks that have ended, with all that is known of their items
    #[command(override_usage = usage!("delete", ""))]
    Delete(PlainArgs),
    /// Move a running task to another node: calls in flight end first, and nothing is done twice
    #[command(after_help = steer::MOVE_EXAMPLES)]
    Move(MoveArgs),
    /// Show failures by code, or item by item
    Failures(FailuresArgs),
    /// Show an item with its attempts
    Item(ItemArgs),
    /// Do failures again, in a task of their own
    #[command(override_usage = redrive::REDRIVE_USAGE, after_help = redrive::REDRIVE_EXITS)]
    Redrive(Box<RedriveArgs>),
    /// Show a task's log, the newest line last, or follow it
    Log(LogArgs),
    /// List the runs of a task, the newest first, each with the counts of its shard at its end
    Runs(PagesArgs),
    /// List who changed what of a task and why, the newest first
    Revisions(PagesArgs),
    /// Tell the whole story of a task, with the proof that every item is accounted for
    Report(ReportArgs),
    /// What items came to, in index order, of a task with results = keep: a row for each that succeeded with an output; while
    /// it runs, up to the first item that isn't settled
    Results(ResultsArgs),
    /// Export failures or the log as CSV or NDJSON
    Export(ExportArgs),
    /// Make a task as a file says, or change it to what the file says
    #[command(after_help = make::APPLY_EXAMPLES)]
    Apply(ApplyArgs),
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
    #[arg(long, short = 'l', value_name = "KEY=VALUE", value_parser = make::label_sought, help_heading = "Which")]
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
    /// Print the address of its page in the dashboard, and nothing else
    #[arg(long)]
    pub web: bool,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}
