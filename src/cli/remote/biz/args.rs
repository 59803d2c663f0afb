//! `windrow biz` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub use super::settings::Settings;
use crate::link::{Paging, Remote, Write};

/// How it is registered.
pub(super) const REGISTER_EXAMPLES: &str = "\
Examples:
  windrow biz register push --url https://push.internal/windrow --batch 16
  windrow biz register report --command report --pool batch --force
  windrow biz register push --url https://push.internal/windrow \\
    --secret-header-file headers.txt --hook prepare

The handler is called with pings first; one that breaks the contract isn't registered (exit 11), unless with --force.
The secret that signs calls is printed once, on standard output.";

/// How it is applied.
pub(super) const APPLY_EXAMPLES: &str = "\
Examples:
  windrow biz apply -f push.toml --reason \"more room\"
  windrow biz show push -o json | jq '{name, url, defaults}' |
    windrow biz apply -f -

The file holds what `windrow biz show -o json` shows of a business: one as an object (TOML: the file), several as a list
(TOML: [[business]]). What the file names becomes as it says, a table as a whole; what it doesn't name stays.
Nothing to change is no change, and no error.";

/// `windrow biz`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BizArgs {
    /// What to do; without it the businesses are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of the list.
    #[command(flatten)]
    pub list: ListArgs,
}

/// What to do with businesses.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List businesses
    List(ListArgs),
    /// Show a business
    Show(NameArgs),
    /// Register a business: its name, and the URL or the command that does the work
    #[command(after_help = REGISTER_EXAMPLES)]
    Register(Box<RegisterArgs>),
    /// Change a business
    #[command(visible_alias = "set")]
    Edit(Box<EditArgs>),
    /// Check whether its handler keeps to the contract (exit 11 if it doesn't)
    Check(NameArgs),
    /// Hide a business: no new tasks, those it has go on
    Archive(ChangeArgs),
    /// Show an archived business again
    Unarchive(ChangeArgs),
    /// Give it a new signing secret; the old one stays valid for 24 hours
    RotateSecret(ChangeArgs),
    /// Who changed what of it, and why
    Revisions(RevisionsArgs),
    /// Make businesses as a file says: register what isn't there, change what differs
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(ApplyArgs),
}

/// `windrow biz list`
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Those that are archived
    #[arg(long, help_heading = "Which")]
    pub archived: bool,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow biz show`, `windrow biz check`
#[derive(Clone, Debug, Args)]
pub struct NameArgs {
    /// The business
    pub name: String,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow biz archive` and its like
#[derive(Clone, Debug, Args)]
pub struct ChangeArgs {
    /// The business
    pub name: String,
    /// Why.
    #[command(flatten)]
    pub write: Write,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow biz register`
#[derive(Clone, Debug, Args)]
pub struct RegisterArgs {
    /// Its name in URLs: a-z, 0-9 and -; it never changes
    pub name: String,
    /// What it is.
    #[command(flatten)]
    pub settings: Settings,
    /// Register it without calling its handler
    #[arg(long)]
    pub force: bool,
    /// Why.
    #[command(flatten)]
    pub write: Write,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow biz edit`
#[derive(Clone, Debug, Args)]
pub struct EditArgs {
    /// The business
    pub name: String,
    /// What it becomes.
    #[command(flatten)]
    pub settings: Settings,
    /// A member that becomes what it is without being set: display_name, defaults.rate, hooks.prepare …; may be repeated
    #[arg(long, value_name = "MEMBER")]
    pub unset: Vec<String>,
    /// Why.
    #[command(flatten)]
    pub write: Write,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow biz revisions`
#[derive(Clone, Debug, Args)]
pub struct RevisionsArgs {
    /// The business
    pub name: String,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow biz apply`
#[derive(Clone, Debug, Args)]
pub struct ApplyArgs {
    /// The file: TOML if its name ends in .toml, else JSON; - is JSON from standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Register what isn't there without calling its handler
    #[arg(long)]
    pub force: bool,
    /// Why.
    #[command(flatten)]
    pub write: Write,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}
