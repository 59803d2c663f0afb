//! Implementation of `windrow node`, for the nodes of a cluster.

mod actors;
mod change;
pub(crate) mod list;

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, NamedWrite, Remote, Write};
use crate::shell::Shell;
use windrow_client::segment;
use windrow_core::settings::RateLimit;
use windrow_core::settings::text::parse_span;

/// Examples of the actor tree, for the help.
const ACTORS_EXAMPLES: &str = "\
Examples:
  windrow node actors
  windrow node actors --task t42 --watch
  windrow node actors n1 --depth 2 -o json";

/// Examples of draining, for the help.
const DRAIN_EXAMPLES: &str = "Examples:
  windrow node drain n2 --reason \"new kernel\" --wait
  windrow node undrain n2

Any node accepts the command, even while n2 is unreachable. Other nodes take over its tasks; without another node they
wait until one is undrained. A node with its own database hands nothing over: its runs continue to their
end.";

/// Examples of changing a node, for the help.
const SET_EXAMPLES: &str = "Examples:
  windrow node set n1 --capacity 3000/s --reason \"the new database\"
  windrow node set n1 --log-filter info,windrow_engine=debug

Changes last until the node's next restart; config.toml has the initial values.";

/// Arguments of `windrow node`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct NodeArgs {
    /// Verb to execute; without one the nodes are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Flags of the list, without a verb.
    #[command(flatten)]
    pub list: ListArgs,
}

/// Verbs of `windrow node`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the nodes of the cluster
    List(ListArgs),
    /// Show a node and its runs
    Show(ShowArgs),
    /// Show the actor tree of a node
    #[command(after_help = ACTORS_EXAMPLES)]
    Actors(ActorsArgs),
    /// Drain a node: move its tasks away, accept no new ones
    #[command(after_help = DRAIN_EXAMPLES)]
    Drain(DrainArgs),
    /// Undrain a node, so that it accepts tasks again
    Undrain(NamedWrite),
    /// Change the settings of a node until its next restart
    #[command(after_help = SET_EXAMPLES)]
    Set(SetArgs),
}

/// Arguments of `windrow node list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow node show`.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// Node to show; defaults to the one that answers
    pub node: Option<String>,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow node actors`.
#[derive(Clone, Debug, Args)]
pub struct ActorsArgs {
    /// Node to inspect; defaults to the one that answers
    pub node: Option<String>,
    /// Only the actors of this task: t42, or business/name
    #[arg(long)]
    pub task: Option<String>,
    /// Number of levels below the root
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub depth: Option<u32>,
    /// Refresh the tree until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// Interval between two refreshes
    #[arg(long, value_name = "SPAN", value_parser = parse_span, default_value = "1s", requires = "watch")]
    pub every: Duration,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Arguments of `windrow node drain`.
#[derive(Clone, Debug, Args)]
pub struct DrainArgs {
    /// Name of the node
    pub node: String,
    /// Wait until nothing runs on the node
    #[arg(long)]
    pub wait: bool,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow node set`.
#[derive(Clone, Debug, Args)]
pub struct SetArgs {
    /// Name of the node
    pub node: String,
    /// Maximum sum of the rates of its tasks: 3000/s, or unlimited
    #[arg(long, value_name = "RATE", required_unless_present = "log_filter")]
    pub capacity: Option<RateLimit>,
    /// Filter of the node's own log: a level, or levels by module
    #[arg(long, value_name = "FILTER")]
    pub log_filter: Option<String>,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Executes the verb; lists the nodes without one.
///
/// # Errors
/// Same as the verb.
pub(crate) async fn node(args: &NodeArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list::list(&args.list, shell).await,
        Some(Verb::List(args)) => list::list(args, shell).await,
        Some(Verb::Show(args)) => list::show(args, shell).await,
        Some(Verb::Actors(args)) => actors::actors(args, shell).await,
        Some(Verb::Drain(args)) => change::drain(args, shell).await,
        Some(Verb::Undrain(args)) => change::undrain(args, shell).await,
        Some(Verb::Set(args)) => change::set(args, shell).await,
    }
}

/// Returns the API path of a node.
fn path(name: &str) -> String {
    format!("/v1/nodes/{}", segment(name))
}

/// Returns the given name, or the name of the node that answers.
async fn named(link: &Link<'_>, name: Option<&str>) -> Result<String, Fault> {
    if let Some(name) = name {
        return Ok(name.to_owned());
    }
    let version: api::Version = link.get("/version").await?.read()?;
    Ok(version.node)
}
