//! Arguments of the commands that control tasks: start, stop, cancel, finish, recover, set, delete, move.

use clap::{Args, ValueEnum};

use super::make::{Strict, label, label_sought};
use crate::input::attributes::{Attributes, Editing};
use crate::input::metering::UnitLimits;
use crate::input::settings::Settings;
use crate::link::Write;

/// Examples of moving a task, for the help.
pub(in crate::task) const MOVE_EXAMPLES: &str = "Examples:
  windrow task move t42 --to n2
  windrow task move push/black-friday --to n3 --shard 1 --wait

If that node hasn't taken the task within 30 s, any node may.";

/// Flags that select tasks: some by their addresses, or all that match.
#[derive(Clone, Debug, Default, Args)]
#[group(required = true, multiple = true)]
pub struct Which {
    /// Tasks to act on: t42, or business/name
    #[arg(value_name = "TASK", conflicts_with_all = ["business", "status", "label"])]
    pub tasks: Vec<String>,
    /// All tasks of this business
    #[arg(long, short = 'b', value_name = "BUSINESS", help_heading = "Selection")]
    pub business: Option<String>,
    /// All tasks in these statuses, separated by commas; by default those that the command applies to
    #[arg(long, short = 's', value_name = "STATUSES", help_heading = "Selection")]
    pub status: Option<String>,
    /// All tasks with this label
    #[arg(long, short = 'l', value_name = "KEY=VALUE", value_parser = label_sought, help_heading = "Selection")]
    pub label: Option<String>,
}

/// Arguments of `windrow task start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Flags that select the tasks.
    #[command(flatten)]
    pub which: Which,
    /// Earliest time to run; 22:00, tonight, 8h, tomorrow 06:00 or RFC 3339; replaces the task's start time
    #[arg(long, value_name = "TIME", conflicts_with = "now")]
    pub start_at: Option<String>,
    /// Start now, whatever the task's start time
    #[arg(long)]
    pub now: bool,
    /// Judge undecided failures at once by their attempts, as with --judge-after 0s
    #[arg(long, value_name = "WHAT", value_enum)]
    pub judge: Option<Judge>,
    /// Wait for the end: exit 0, 8 with failures, 9 if it stopped
    #[arg(long)]
    pub wait: bool,
    /// Flag that turns warnings into errors.
    #[command(flatten)]
    pub strict: Strict,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Cause of failures that are not decided yet, for `--judge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Judge {
    /// The items are at fault, the handler isn't down
    Items,
}

/// Arguments of `windrow task stop`.
#[derive(Debug, Args)]
pub struct StopArgs {
    /// Flags that select the tasks.
    #[command(flatten)]
    pub which: Which,
    /// Cut off calls in flight instead of waiting for them; their items may be repeated
    #[arg(long)]
    pub now: bool,
    /// Wait until nothing is in flight
    #[arg(long)]
    pub wait: bool,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow task cancel`, `recover` and `delete`.
#[derive(Debug, Args)]
pub struct PlainArgs {
    /// Flags that select the tasks.
    #[command(flatten)]
    pub which: Which,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow task finish`.
#[derive(Debug, Args)]
pub struct FinishArgs {
    /// Flags that select the tasks.
    #[command(flatten)]
    pub which: Which,
    /// Exclude items from this index on; by default all that were not dispatched
    #[arg(long, value_name = "N")]
    pub total: Option<u64>,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Examples of marking items as failed, for the help.
pub(in crate::task) const FAIL_EXAMPLES: &str = "Examples:
  windrow task fail t42 --code TIMEOUT --reason 'the device is gone'
  windrow task fail push/black-friday --code HTTP_500 --dry-run

Items in flight are not affected; those that fail with the code later are retried as usual. If the task isn't running, the
change applies at its next run. windrow task redrive retries the items.";

/// Arguments of the command that marks retrying items as failed.
#[derive(Debug, Args)]
pub struct FailArgs {
    /// Flags that select the tasks.
    #[command(flatten)]
    pub which: Which,
    /// Code of the items' last failure, such as TIMEOUT; an unknown code prints the existing ones
    #[arg(long, value_name = "CODE")]
    pub code: String,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Usage of `set`, since clap's own is longer than a line.
pub(super) const SET_USAGE: &str = "\
windrow task set [OPTIONS]
             TASK…|--business NAME|--status STATUSES|--with-label KEY=VALUE";

/// Examples of skipping items, for the help.
pub(in crate::task) const SKIP_EXAMPLES: &str = "Examples:
  windrow task skip t42 --indexes 5-9,12 --reason 'withdrawn by the customer'
  windrow task skip push/friday --indexes 1000-1999 --reason test --dry-run

The items are settled as skipped and not called any more. A call in flight is
awaited: if it succeeds, the item has succeeded. Settled items don't change.
This can't be undone.";

/// Arguments of `windrow task skip`.
#[derive(Debug, Args)]
#[command(mut_arg("reason", |arg| arg.required(true)))]
pub struct SkipArgs {
    /// Task with the items: t42, or business/name
    pub task: String,
    /// Items to skip: indexes and inclusive ranges, separated by commas
    #[arg(long, value_name = "INDEXES")]
    pub indexes: String,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow task set`.
// `--label` sets a label here, so the selection by label is `--with-label`.
#[derive(Debug, Args)]
#[command(mut_arg("label", |arg| arg.long("with-label").short(None).help("Only tasks with this label (--label sets one)")))]
pub struct SetArgs {
    /// Flags that select the tasks.
    #[command(flatten)]
    pub which: Which,
    /// Flags for limits in units; only while the task isn't running.
    #[command(flatten)]
    pub limits: UnitLimits,
    /// Flags for the live settings.
    #[command(flatten)]
    pub settings: Settings,
    /// New name, unique within the business
    #[arg(long, value_name = "NAME", help_heading = "Identity")]
    pub name: Option<String>,
    /// Remove the task's name
    #[arg(long, conflicts_with = "name", help_heading = "Identity")]
    pub no_name: bool,
    /// Label to set, in addition to the present ones; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label, help_heading = "Identity")]
    pub labels: Vec<(String, String)>,
    /// Label to remove; may be repeated
    #[arg(long = "unlabel", value_name = "KEY", help_heading = "Identity")]
    pub unlabels: Vec<String>,
    /// Parameters for the handler: JSON, or @FILE; only while the task isn't running
    #[arg(long, value_name = "JSON|@FILE", help_heading = "Content")]
    pub params: Option<String>,
    /// Total number of items; only while the task isn't running
    #[arg(long, value_name = "N", help_heading = "Content")]
    pub total: Option<u64>,
    /// Flags for attributes with plain values.
    #[command(flatten)]
    pub attributes: Attributes<Editing>,
    /// Stop the task at this time, or none; 22:00, tonight, 8h, tomorrow 06:00 or RFC 3339
    #[arg(long, value_name = "TIME|none", help_heading = "Content")]
    pub deadline: Option<String>,
    /// Remove the task's deadline
    #[arg(long, conflicts_with = "deadline", help_heading = "Content")]
    pub no_deadline: bool,
    /// Flag that turns warnings into errors.
    #[command(flatten)]
    pub strict: Strict,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow task move`.
#[derive(Debug, Args)]
pub struct MoveArgs {
    /// Task to move: t42, or business/name
    pub task: String,
    /// Node that is to run the task
    #[arg(long, value_name = "NODE", required_unless_present = "node")]
    pub to: Option<String>,
    /// Node that is to run the task; same as --to
    #[arg(conflicts_with = "to", hide = true)]
    pub node: Option<String>,
    /// Move only this shard, by its number
    #[arg(long, value_name = "K")]
    pub shard: Option<u32>,
    /// Wait until the task has arrived
    #[arg(long)]
    pub wait: bool,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}
