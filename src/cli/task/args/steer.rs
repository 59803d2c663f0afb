//! What steers tasks: start, stop, cancel, finish, recover, set, delete, move.

use clap::{Args, ValueEnum};

use super::make::{Strict, label, label_sought};
use crate::input::attributes::{Attributes, Editing};
use crate::input::settings::Settings;
use crate::link::Write;

/// How a task is moved.
pub(in crate::task) const MOVE_EXAMPLES: &str = "\
Examples:
  windrow task move t42 --to n2
  windrow task move push/black-friday --to n3 --shard 1 --wait

If that node hasn't taken it within 30 s, any node may.";

/// Which tasks: some by their addresses, or all that fit.
#[derive(Clone, Debug, Default, Args)]
#[group(required = true, multiple = true)]
pub struct Which {
    /// The tasks: t42, or business/name
    #[arg(value_name = "TASK", conflicts_with_all = ["business", "status", "label"])]
    pub tasks: Vec<String>,
    /// All tasks of this business
    #[arg(long, short = 'b', value_name = "BUSINESS", help_heading = "Which")]
    pub business: Option<String>,
    /// All of these statuses, separated by commas; without it those that it can be done to
    #[arg(long, short = 's', value_name = "STATUSES", help_heading = "Which")]
    pub status: Option<String>,
    /// All with this label
    #[arg(long, short = 'l', value_name = "KEY=VALUE", value_parser = label_sought, help_heading = "Which")]
    pub label: Option<String>,
}

/// `windrow task start`
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Which tasks.
    #[command(flatten)]
    pub which: Which,
    /// Not before this time (22:00, tonight, 8h, tomorrow 06:00, RFC 3339); replaces the one that the task has
    #[arg(long, value_name = "TIME", conflicts_with = "now")]
    pub start_at: Option<String>,
    /// Now, whatever start time the task has
    #[arg(long)]
    pub now: bool,
    /// What failed without a verdict: items are judged by their attempts at once, as with --judge-after 0s, also where no
    /// item ever succeeded
    #[arg(long, value_name = "WHAT", value_enum)]
    pub judge: Option<Judge>,
    /// Wait for the end: exit 0, 8 with failures, 9 if it stopped
    #[arg(long)]
    pub wait: bool,
    /// Whether warnings refuse.
    #[command(flatten)]
    pub strict: Strict,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// Whose fault failures without a verdict are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Judge {
    /// It is the items, and no outage
    Items,
}

/// `windrow task stop`
#[derive(Debug, Args)]
pub struct StopArgs {
    /// Which tasks.
    #[command(flatten)]
    pub which: Which,
    /// Cut off calls in flight instead of waiting for them; their items may be done again
    #[arg(long)]
    pub now: bool,
    /// Wait until nothing is in flight
    #[arg(long)]
    pub wait: bool,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// `windrow task cancel`, `recover` and `delete`
#[derive(Debug, Args)]
pub struct PlainArgs {
    /// Which tasks.
    #[command(flatten)]
    pub which: Which,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// `windrow task finish`
#[derive(Debug, Args)]
pub struct FinishArgs {
    /// Which tasks.
    #[command(flatten)]
    pub which: Which,
    /// Leave out items from this index on; without it, all that were not dispatched
    #[arg(long, value_name = "N")]
    pub total: Option<u64>,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// How items are given up.
pub(in crate::task) const FAIL_EXAMPLES: &str = "\
Examples:
  windrow task fail t42 --code TIMEOUT --reason 'the device is gone'
  windrow task fail push/black-friday --code HTTP_500 --dry-run

Items in flight aren't touched; what fails with the code later is tried again as usual. Without a run it is done as soon
as the task runs. windrow task redrive does them again.";

/// `windrow task fail`
#[derive(Debug, Args)]
pub struct FailArgs {
    /// Which tasks.
    #[command(flatten)]
    pub which: Which,
    /// The code of their last failure, such as TIMEOUT; a wrong one is answered with those that there are
    #[arg(long, value_name = "CODE")]
    pub code: String,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// clap's own is longer than a line.
pub(super) const SET_USAGE: &str = "\
windrow task set [OPTIONS]
             TASK…|--business NAME|--status STATUSES|--with-label KEY=VALUE";

/// How items are skipped.
pub(in crate::task) const SKIP_EXAMPLES: &str = "\
Examples:
  windrow task skip t42 --indexes 5-9,12 --reason 'withdrawn by the customer'
  windrow task skip push/friday --indexes 1000-1999 --reason test --dry-run

They are settled as skipped, and not called any more. A call that is out is awaited:
where it succeeds the item has succeeded. What is settled stays as it is. It can't
be taken back.";

/// `windrow task skip`
#[derive(Debug, Args)]
#[command(mut_arg("reason", |arg| arg.required(true)))]
pub struct SkipArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// Which items: indexes and ranges with both ends, separated by commas
    #[arg(long, value_name = "INDEXES")]
    pub indexes: String,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// `windrow task set`
// `--label` sets one here.
#[derive(Debug, Args)]
#[command(mut_arg("label", |arg| arg.long("with-label").short(None).help("All with this label (--label sets one)")))]
pub struct SetArgs {
    /// Which tasks.
    #[command(flatten)]
    pub which: Which,
    /// How items are driven.
    #[command(flatten)]
    pub settings: Settings,
    /// Its name, unique within the business
    #[arg(long, value_name = "NAME", help_heading = "Identity")]
    pub name: Option<String>,
    /// Take its name away
    #[arg(long, conflicts_with = "name", help_heading = "Identity")]
    pub no_name: bool,
    /// A label, beside those that it has; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label, help_heading = "Identity")]
    pub labels: Vec<(String, String)>,
    /// Take a label away; may be repeated
    #[arg(long = "unlabel", value_name = "KEY", help_heading = "Identity")]
    pub unlabels: Vec<String>,
    /// What the handler is given: JSON, or @FILE; only while it doesn't run
    #[arg(long, value_name = "JSON|@FILE", help_heading = "Content")]
    pub params: Option<String>,
    /// How many items; only while it doesn't run
    #[arg(long, value_name = "N", help_heading = "Content")]
    pub total: Option<u64>,
    /// What has a plain value.
    #[command(flatten)]
    pub attributes: Attributes<Editing>,
    /// Stop it at this time (22:00, tonight, 8h, tomorrow 06:00, RFC 3339), or none
    #[arg(long, value_name = "TIME|none", help_heading = "Content")]
    pub deadline: Option<String>,
    /// Take its deadline away
    #[arg(long, conflicts_with = "deadline", help_heading = "Content")]
    pub no_deadline: bool,
    /// Whether warnings refuse.
    #[command(flatten)]
    pub strict: Strict,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// `windrow task move`
#[derive(Debug, Args)]
pub struct MoveArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// The node that is to run it
    #[arg(long, value_name = "NODE", required_unless_present = "node")]
    pub to: Option<String>,
    /// The node that is to run it; the same as --to
    #[arg(conflicts_with = "to", hide = true)]
    pub node: Option<String>,
    /// Only this part of it, by its number
    #[arg(long, value_name = "K")]
    pub shard: Option<u32>,
    /// Wait until it is there
    #[arg(long)]
    pub wait: bool,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}
