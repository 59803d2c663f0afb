//! What makes a task: create, clone, redrive, apply.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use crate::input::attributes::{Attributes, Making};
use crate::input::flags::Items;
use crate::input::settings::Settings;
use crate::link::{Remote, Write};
use crate::run::args::IfEmpty;

/// clap's own is longer than a line.
pub(super) const CREATE_USAGE: &str = "\
windrow task create [OPTIONS] BUSINESS
                    --csv FILE|--ndjson FILE|--lines FILE|--total N|--url URL
                    |--items JSON|--open";

/// How `create` is used.
pub const CREATE_EXAMPLES: &str = "\
Examples:
  windrow task create push --name black-friday --csv users.csv --rate 500/s \\
    --start --canary 100
  psql -c \"copy (select …) to stdout csv header\" |
    windrow task create backfill --csv - --rate 2000/s --start
  windrow task create backfill --total 1000000 --label team=growth
  id=$(windrow task create push --ndjson users.ndjson --start -o name)";

/// How `apply` is used.
pub const APPLY_EXAMPLES: &str = "\
The file is TOML (.toml) or JSON and says what `POST /v1/tasks` takes; business and name are needed. Where no task of the
business has the name, it is made; else what differs is changed. start and canary are of the making only.

Example:
  business = \"push\"
  name = \"black-friday\"
  rate = \"500/s\"
  labels = { team = \"growth\" }
  [source]
  type = \"range\"
  total = 1000";

/// Whether it begins, and whether its end is awaited.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Begin {
    /// Start it at once
    #[arg(long)]
    pub start: bool,
    /// Start it, and wait for its end: exit 0, 8 with failures, 9 if it stopped
    #[arg(long)]
    pub wait: bool,
}

impl Begin {
    /// Whether it starts.
    pub fn starts(self) -> bool {
        self.start || self.wait
    }
}

/// Whether what a node would only warn of is refused.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Change")]
pub struct Strict {
    /// Refuse what would only be warned of, such as a deadline that can't be met
    #[arg(long)]
    pub strict: bool,
}

/// The first items, run before any other.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Canary")]
pub struct CanaryArgs {
    /// Run so many items first
    #[arg(long, value_name = "N")]
    pub canary: Option<NonZeroU64>,
    /// What follows: ask (a person at a terminal), continue (if none of them failed), or stop
    #[arg(long, value_enum, value_name = "WHAT", requires = "canary")]
    pub then: Option<Then>,
}

/// What follows a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Then {
    /// A person says.
    Ask,
    /// Go on if none failed.
    Continue,
    /// Stop.
    Stop,
}

impl CanaryArgs {
    /// What follows, where there is a canary.
    pub fn then(self) -> Option<Then> {
        self.canary.map(|_| self.then.unwrap_or(Then::Ask))
    }
}

/// What a task is found by.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Identity")]
pub struct Identity {
    /// Its name, unique within the business
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// A label to find it by; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Of what items carry, lists, log, watch and report show these columns only, separated by commas (the label
    /// key-column)
    #[arg(long, value_name = "COLUMNS")]
    pub key_column: Option<String>,
}

/// Reads a label.
///
/// # Errors
/// Says what one looks like.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').or_else(|| text.split_once(':')) {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is key=value, such as team=growth".to_owned()),
    }
}

/// Reads a label that is looked for, in either form; the API has it as `key:value`.
///
/// # Errors
/// As [`label`].
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

/// What is given to the handler, and how it is cut.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Content")]
pub struct Content {
    /// What the handler is given: JSON, or @FILE
    #[arg(long, value_name = "JSON|@FILE")]
    pub params: Option<String>,
    /// A limit that it shares with others (`windrow limit list`), beside those of its business; may be repeated
    #[arg(long = "limit", value_name = "NAME")]
    pub limits: Vec<String>,
    /// What has a plain value.
    #[command(flatten)]
    pub attributes: Attributes<Making>,
}

/// When it may run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Content")]
pub struct Times {
    /// Not before this time (22:00, tonight, 8h, tomorrow 06:00, RFC 3339), once it is started
    #[arg(long, value_name = "TIME")]
    pub start_at: Option<String>,
    /// Stop it at this time (22:00, tonight, 8h, tomorrow 06:00, RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub deadline: Option<String>,
}

/// What its results become.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Publication")]
pub struct PublishArgs {
    /// Make its results a generation of this dataset once it is finished (`windrow dataset list`)
    #[arg(long, value_name = "DATASET")]
    pub publish: Option<String>,
    /// Publish only if so many items succeeded: all, any, or 99%
    #[arg(long, value_name = "PART", requires = "publish")]
    pub publish_if: Option<String>,
    /// The member of the outputs by which readers look up in the generation
    #[arg(long, value_name = "MEMBER", requires = "publish")]
    pub publish_key: Option<String>,
    /// What makes a summary of the results: hook, command:NAME, or none
    #[arg(long, value_name = "HOW", requires = "publish")]
    pub reduce: Option<String>,
}

/// What a new task becomes, wherever its items come from.
#[derive(Clone, Debug, Args)]
pub struct NewTask {
    /// What it is found by.
    #[command(flatten)]
    pub identity: Identity,
    /// What is given to the handler.
    #[command(flatten)]
    pub content: Content,
    /// When it may run.
    #[command(flatten)]
    pub times: Times,
    /// How items are driven.
    #[command(flatten)]
    pub settings: Settings,
    /// What its results become.
    #[command(flatten)]
    pub publish: PublishArgs,
    /// The first items.
    #[command(flatten)]
    pub canary: CanaryArgs,
    /// Whether it begins.
    #[command(flatten)]
    pub begin: Begin,
    /// Whether warnings refuse.
    #[command(flatten)]
    pub strict: Strict,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowForm {
    /// Values with a character between them
    Csv,
    /// A JSON value a line
    Ndjson,
}

/// How the bytes of a file become rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileForm {
    /// Values with a character between them
    Csv,
    /// A JSON value a line
    Ndjson,
    /// A text a line
    Lines,
}

/// Items that the node has or fetches by itself.
#[derive(Clone, Debug, Default, Args)]
pub struct NamedItems {
    /// So many items without data: 0, 1, 2 …
    #[arg(long, value_name = "N", help_heading = "Items")]
    pub total: Option<u64>,
    /// A CSV, NDJSON or lines of text that the node fetches
    #[arg(long, value_name = "URL", help_heading = "Items")]
    pub url: Option<String>,
    /// How the bytes at the URL become rows; without it the ending of the path says
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        requires = "url",
        help_heading = "Items"
    )]
    pub format: Option<FileForm>,
    /// A few items: a JSON array, or @FILE
    #[arg(
        long = "items",
        id = "inline",
        value_name = "JSON|@FILE",
        help_heading = "Items"
    )]
    pub inline: Option<String>,
}

/// `windrow task create`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("rows").required(true).args(["csv", "ndjson", "lines", "total", "url", "inline", "open"])))]
pub struct CreateArgs {
    /// The business
    pub business: String,
    /// Where items come from.
    #[command(flatten)]
    pub items: Items,
    /// Or items that the node has by itself.
    #[command(flatten)]
    pub named: NamedItems,
    /// None yet: they are appended while it runs (windrow task append), until it is sealed
    #[arg(long, help_heading = "Items")]
    pub open: bool,
    /// A source without items: ok (nothing to do, the task finishes at once) or error (exit 7)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = IfEmpty::Ok, help_heading = "Items")]
    pub if_empty: IfEmpty,
    /// What it becomes.
    #[command(flatten)]
    pub new: NewTask,
}

/// How `append` is used.
pub(in crate::task) const APPEND_EXAMPLES: &str = "\
Examples:
  windrow task create push --open --name inbox --rate 50/s --start
  windrow task append push/inbox --ndjson new.ndjson --key 2026-11-25
  tail -F orders.ndjson | windrow task append push/inbox --ndjson -
  windrow task seal push/inbox

What is acknowledged is processed. With --key the same lines can be sent again after anything, and are added once.";

/// `windrow task append`
#[derive(Debug, Args)]
pub struct AppendArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// Lines of JSON; - is standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub ndjson: String,
    /// A name for these lines: sent again under the same name, they are not added twice
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow task clone`
#[derive(Debug, Args)]
pub struct CloneArgs {
    /// The task: t42, or business/name
    pub task: String,
    /// What it becomes.
    #[command(flatten)]
    pub new: NewTask,
}

/// `windrow task apply`
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The file: TOML or JSON; - is JSON on standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Whether warnings refuse.
    #[command(flatten)]
    pub strict: Strict,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}
