//! `windrow biz` on the command line.

use clap::{Args, Subcommand};

use crate::cli::remote::{Paging, Remote};

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
