//! Arguments of the commands that create tasks: create, clone, redrive, apply.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use crate::input::attributes::{Attributes, Making};
use crate::input::flags::Items;
use crate::input::metering::{Costs, any_limit};
use crate::input::settings::Settings;
use crate::link::{Remote, Write};
use crate::run::args::IfEmpty;

/// Usage lines of the help, since clap's own is longer than a line.
pub(super) const CREATE_USAGE: &str = "\
windrow task create [OPTIONS] BUSINESS
                    --csv FILE|--ndjson FILE|--lines FILE|--total N|--url URL
                    |--items JSON|--open";

/// Examples of `create`, for the help.
pub const CREATE_EXAMPLES: &str = "\
Examples:
  windrow task create push --name black-friday --csv users.csv --rate 500/s \\
    --start --canary 100
  psql -c \"copy (select …) to stdout csv header\" |
    windrow task create backfill --csv - --rate 2000/s --start
  windrow task create backfill --total 1000000 --label team=growth
  id=$(windrow task create push --ndjson users.ndjson --start -o name)";

/// Description and example of `apply`, for the help.
pub const APPLY_EXAMPLES: &str = "The file is TOML (.toml) or JSON with the members of `POST /v1/tasks`; business and name are required. If the business has
no task of that name, it is created; otherwise the differences are applied. start and canary only apply to new tasks.

Example:
  business = \"push\"
  name = \"black-friday\"
  rate = \"500/s\"
  labels = { team = \"growth\" }
  [source]
  type = \"range\"
  total = 1000";

/// Flags that start a new task and wait for its end.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Begin {
    /// Start the task at once
    #[arg(long)]
    pub start: bool,
    /// Start the task and wait for its end: exit 0, 8 with failures, 9 if it stopped
    #[arg(long)]
    pub wait: bool,
}

impl Begin {
    /// True if the task is to be started.
    pub fn starts(self) -> bool {
        self.start || self.wait
    }
}

/// Flag that turns a node's warnings into errors.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Change")]
pub struct Strict {
    /// Treat warnings as errors, such as a deadline that can't be met
    #[arg(long)]
    pub strict: bool,
}

/// Flags for the canary: the first items, run before any other.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Canary")]
pub struct CanaryArgs {
    /// Run this many items first, then pause for review
    #[arg(long, value_name = "N")]
    pub canary: Option<NonZeroU64>,
    /// Action after the canary: ask (a person at a terminal), continue (if no item failed), or stop
    #[arg(long, value_enum, value_name = "WHAT", requires = "canary")]
    pub then: Option<Then>,
}

/// Actions after a canary, for `--then`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Then {
    /// Ask the person at the terminal.
    Ask,
    /// Continue if no item failed.
    Continue,
    /// Stop the task after the canary.
    Stop,
}

impl CanaryArgs {
    /// Returns the action after the canary, by default to ask. `None` without a canary.
    pub fn then(self) -> Option<Then> {
        self.canary.map(|_| self.then.unwrap_or(Then::Ask))
    }
}

/// Flags that identify a task.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Identity")]
pub struct Identity {
    /// Name of the task, unique within the business
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Label to find the task by; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Columns of items to show in lists, log, watch and report, separated by commas (label key-column)
    #[arg(long, value_name = "COLUMNS")]
    pub key_column: Option<String>,
}

/// Parses a label.
///
/// # Errors
/// The message shows the accepted form.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').or_else(|| text.split_once(':')) {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label must be key=value, such as team=growth".to_owned()),
    }
}

/// Parses a label to search for, in either form, and returns it as `key:value` for the API.
///
/// # Errors
/// Same as [`label`].
pub fn label_sought(text: &str) -> Result<String, String> {
    let is_pair = text
        .find('=')
        .is_some_and(|at| text.find(':').is_none_or(|colon| at < colon));
    let (key, value) = match text.split_once(':').filter(|_| !is_pair) {
        Some((key, value)) if !key.is_empty() => (key.to_owned(), value.to_owned()),
        _ => label(text)?,
    };
    Ok(format!("{key}:{value}"))
}

/// Flags for the data given to the handler, and for its division into calls.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Content")]
pub struct Content {
    /// Parameters for the handler: JSON, or @FILE
    #[arg(long, value_name = "JSON|@FILE")]
    pub params: Option<String>,
    /// Limit in units (300/min, '5 eur'), or the name of one to share (`windrow limit list`); may be repeated
    #[arg(long = "limit", value_name = "LIMIT|NAME", value_parser = any_limit)]
    pub limits: Vec<String>,
    /// Flags for the costs of a call.
    #[command(flatten)]
    pub costs: Costs,
    /// Flags for attributes with plain values.
    #[command(flatten)]
    pub attributes: Attributes<Making>,
}

/// Flags for the times at which a task may run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Content")]
pub struct Times {
    /// Earliest time to run, once started; 22:00, tonight, 8h, tomorrow 06:00 or RFC 3339
    #[arg(long, value_name = "TIME")]
    pub start_at: Option<String>,
    /// Stop the task at this time; 22:00, tonight, 8h, tomorrow 06:00 or RFC 3339
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<String>,
}

/// Flags for publishing the results.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Publication")]
pub struct PublishArgs {
    /// Publish the results as a generation of this dataset, when the task finishes (`windrow dataset list`)
    #[arg(long, value_name = "DATASET")]
    pub publish: Option<String>,
    /// Publish only if this share of the items succeeded: all, any, or 99%
    #[arg(long, value_name = "PART", requires = "publish")]
    pub publish_if: Option<String>,
    /// Output member by which readers look up items in the generation
    #[arg(long, value_name = "MEMBER", requires = "publish")]
    pub publish_key: Option<String>,
    /// Reducer that summarizes the results: hook, command:NAME, or none
    #[arg(long, value_name = "HOW", requires = "publish")]
    pub reduce: Option<String>,
}

/// Flags of a new task, wherever its items come from.
#[derive(Clone, Debug, Args)]
pub struct NewTask {
    /// Flags that identify the task.
    #[command(flatten)]
    pub identity: Identity,
    /// Flags for the data given to the handler.
    #[command(flatten)]
    pub content: Content,
    /// Flags for the times at which the task may run.
    #[command(flatten)]
    pub times: Times,
    /// Flags for the live settings.
    #[command(flatten)]
    pub settings: Settings,
    /// Flags for publishing the results.
    #[command(flatten)]
    pub publish: PublishArgs,
    /// Flags for the canary, the first items.
    #[command(flatten)]
    pub canary: CanaryArgs,
    /// Flags that start the task.
    #[command(flatten)]
    pub begin: Begin,
    /// Flag that turns warnings into errors.
    #[command(flatten)]
    pub strict: Strict,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Formats of rows that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowForm {
    /// Values with a separator between them
    Csv,
    /// One JSON value per line
    Ndjson,
}

/// Formats of files with rows to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileForm {
    /// Values with a separator between them
    Csv,
    /// One JSON value per line
    Ndjson,
    /// One text per line
    Lines,
}

/// Flags for items that the node counts, fetches or gets inline.
#[derive(Clone, Debug, Default, Args)]
pub struct NamedItems {
    /// Run this many items without data, numbered 0, 1, 2 …
    #[arg(long, value_name = "N", help_heading = "Items")]
    pub total: Option<u64>,
    /// Data that the node fetches from a URL: CSV, NDJSON or lines of text
    #[arg(long, value_name = "URL", help_heading = "Items")]
    pub url: Option<String>,
    /// Format of the data at the URL; by default the ending of its path decides
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        requires = "url",
        help_heading = "Items"
    )]
    pub format: Option<FileForm>,
    /// A few items inline: a JSON array, or @FILE
    #[arg(
        long = "items",
        id = "inline",
        value_name = "JSON|@FILE",
        help_heading = "Items"
    )]
    pub inline: Option<String>,
}

/// Arguments of `windrow task create`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("rows").required(true).args(["csv", "ndjson", "lines", "total", "url", "inline", "open"])))]
pub struct CreateArgs {
    /// Name of the business
    pub business: String,
    /// Flags for items that this program reads.
    #[command(flatten)]
    pub items: Items,
    /// Flags for items that the node gets itself.
    #[command(flatten)]
    pub named: NamedItems,
    /// Create the task without items: append them while it runs (windrow task append), until it is sealed
    #[arg(long, help_heading = "Items")]
    pub open: bool,
    /// Outcome for a source without items: ok (nothing to do, the task finishes at once) or error (exit 7)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = IfEmpty::Ok, help_heading = "Items")]
    pub if_empty: IfEmpty,
    /// Flags of the new task.
    #[command(flatten)]
    pub new: NewTask,
}

/// Examples of `append`, for the help.
pub(in crate::task) const APPEND_EXAMPLES: &str = "Examples:
  windrow task create push --open --name inbox --rate 50/s --start
  windrow task append push/inbox --ndjson new.ndjson --key 2026-11-25
  tail -F orders.ndjson | windrow task append push/inbox --ndjson -
  windrow task seal push/inbox

Acknowledged lines are processed. With --key, the same lines may be sent again at any time and are added only once.";

/// Arguments of `windrow task append`.
#[derive(Debug, Args)]
pub struct AppendArgs {
    /// Task to append to: t42, or business/name
    pub task: String,
    /// Read items from the lines of an NDJSON file; - is standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub ndjson: String,
    /// Idempotency key of these lines: sent again under the same key, they are not added twice
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow task clone`.
#[derive(Debug, Args)]
pub struct CloneArgs {
    /// Task to clone: t42, or business/name
    pub task: String,
    /// Flags of the new task.
    #[command(flatten)]
    pub new: NewTask,
}

/// Arguments of `windrow task apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// File that describes the task: TOML or JSON; - is JSON on standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Flag that turns warnings into errors.
    #[command(flatten)]
    pub strict: Strict,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}
