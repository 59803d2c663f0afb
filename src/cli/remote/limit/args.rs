//! `windrow limit` on the command line.

use std::error::Error;
use std::num::NonZeroU32;
use std::str::FromStr;

use clap::{Args, Subcommand};

use crate::link::{Paging, Remote, Write};
use windrow_core::settings::Rate;

/// How one is made and used.
pub(super) const CREATE_EXAMPLES: &str = "\
Examples:
  windrow limit create vendor-x --rate 300/s --concurrency 50
  windrow biz edit push --limit vendor-x
  windrow task create mail --csv users.csv --limit vendor-x

All tasks that name a limit, or whose business does, share it, on all nodes.";

/// `windrow limit`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct LimitArgs {
    /// What to do; without it the limits are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of the list.
    #[command(flatten)]
    pub list: ListArgs,
}

/// What to do with limits.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List limits
    List(ListArgs),
    /// Show a limit: what it allows, who uses it, and what each node has of it
    Show(ShowArgs),
    /// Make a limit
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// Change what a limit allows; tasks under way obey within seconds
    #[command(visible_alias = "edit")]
    Set(SetArgs),
    /// Delete a limit that nobody names any more
    Delete(DeleteArgs),
}

/// `windrow limit list`
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow limit show`
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// The limit
    pub name: String,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow limit create`
#[derive(Clone, Debug, Args)]
pub struct CreateArgs {
    /// Its name in URLs: a-z, 0-9 and -; it never changes
    pub name: String,
    /// Attempts in a time of all that use it together: 300/s, 30/m
    #[arg(long, required_unless_present = "concurrency")]
    pub rate: Option<Rate>,
    /// Items in flight of all that use it together
    #[arg(long, value_name = "N")]
    pub concurrency: Option<NonZeroU32>,
    /// Why.
    #[command(flatten)]
    pub write: Write,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// A bound as it is set: a value, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound<T>(pub Option<T>);

impl<T: FromStr<Err: Error + Send + Sync + 'static>> FromStr for Bound<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Bound<T>, T::Err> {
        if text == "none" {
            return Ok(Bound(None));
        }
        text.parse().map(|value| Bound(Some(value)))
    }
}

/// `windrow limit set`
#[derive(Clone, Debug, Args)]
pub struct SetArgs {
    /// The limit
    pub name: String,
    /// Attempts in a time of all that use it together: 300/s, 30/m; or none
    #[arg(long, required_unless_present = "concurrency")]
    pub rate: Option<Bound<Rate>>,
    /// Items in flight of all that use it together; or none
    #[arg(long, value_name = "N")]
    pub concurrency: Option<Bound<NonZeroU32>>,
    /// Why.
    #[command(flatten)]
    pub write: Write,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow limit delete`
#[derive(Clone, Debug, Args)]
pub struct DeleteArgs {
    /// The limit
    pub name: String,
    /// Why.
    #[command(flatten)]
    pub write: Write,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}
