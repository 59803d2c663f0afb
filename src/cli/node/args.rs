//! `windrow node` on the command line.

use clap::{Args, Subcommand};

use crate::cli::remote::Remote;

/// `windrow node`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct NodeArgs {
    /// What to do; without it the nodes are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of the list.
    #[command(flatten)]
    pub list: ListArgs,
}

/// What to do with nodes.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List nodes
    List(ListArgs),
}

/// `windrow node list`
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}
