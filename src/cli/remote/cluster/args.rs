//! `windrow cluster` on the command line.

use clap::{Args, Subcommand};

use crate::link::Remote;

/// How the cluster is looked at.
pub(super) const STATUS_EXAMPLES: &str = "\
Examples:
  windrow cluster status
  windrow cluster status -o json

Nodes are a cluster when they have the same database server: 'windrow help serve' says how one joins.

Exit: 0 when all is well, 1 when something isn't.";

/// `windrow cluster`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ClusterArgs {
    /// What to do; without it the status is shown.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// The flags of the status.
    #[command(flatten)]
    pub status: StatusArgs,
}

/// What to do with a cluster.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show whether all nodes are well, what they have, and what waits to be taken over
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
}

/// `windrow cluster status`
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}
