//! `windrow node`: the nodes of a cluster.

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

/// How the tree is read.
const ACTORS_EXAMPLES: &str = "\
Examples:
  windrow node actors
  windrow node actors --task t42 --watch
  windrow node actors n1 --depth 2 -o json";

/// How a node is drained.
const DRAIN_EXAMPLES: &str = "\
Examples:
  windrow node drain n2 --reason \"new kernel\" --wait
  windrow node undrain n2

Any node can be asked, also while n2 itself can't be reached. Other nodes take its tasks over; where there is none, they
wait until a node is undrained. A node with a database of its own hands nothing over: what runs there goes on to its
end.";

/// How a node is changed.
const SET_EXAMPLES: &str = "\
Examples:
  windrow node set n1 --capacity 3000/s --reason \"the new database\"
  windrow node set n1 --log-filter info,windrow_engine=debug

It holds until the node's next restart; config.toml says what it begins with.";

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
    /// Show a node, and what runs on it
    Show(ShowArgs),
    /// Show the tree of a node's actors
    #[command(after_help = ACTORS_EXAMPLES)]
    Actors(ActorsArgs),
    /// Let a node hand its tasks over and take none
    #[command(after_help = DRAIN_EXAMPLES)]
    Drain(DrainArgs),
    /// Let a node take tasks again
    Undrain(NamedWrite),
    /// Change a node until its next restart
    #[command(after_help = SET_EXAMPLES)]
    Set(SetArgs),
}

/// `windrow node list`
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow node show`
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// The node; without it the one that answers
    pub node: Option<String>,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow node actors`
#[derive(Clone, Debug, Args)]
pub struct ActorsArgs {
    /// The node; without it the one that answers
    pub node: Option<String>,
    /// Only the actors of this task: t42, or business/name
    #[arg(long)]
    pub task: Option<String>,
    /// Levels below the root
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub depth: Option<u32>,
    /// Show it again and again, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// The time between two looks
    #[arg(long, value_name = "SPAN", value_parser = parse_span, default_value = "1s", requires = "watch")]
    pub every: Duration,
    /// How the node is reached.
    #[command(flatten)]
    pub remote: Remote,
}

/// `windrow node drain`
#[derive(Clone, Debug, Args)]
pub struct DrainArgs {
    /// The node
    pub node: String,
    /// Wait until nothing runs on it
    #[arg(long)]
    pub wait: bool,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// `windrow node set`
#[derive(Clone, Debug, Args)]
pub struct SetArgs {
    /// The node
    pub node: String,
    /// The sum of task rates that it may hold: 3000/s, or unlimited
    #[arg(long, value_name = "RATE", required_unless_present = "log_filter")]
    pub capacity: Option<RateLimit>,
    /// Which lines its own log has: a level, or levels by module
    #[arg(long, value_name = "FILTER")]
    pub log_filter: Option<String>,
    /// Why, or only to see.
    #[command(flatten)]
    pub write: Write,
}

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
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

/// Where a node is in the API.
fn path(name: &str) -> String {
    format!("/v1/nodes/{}", segment(name))
}

/// The node that is named, or the one that answers.
async fn named(link: &Link<'_>, name: Option<&str>) -> Result<String, Fault> {
    if let Some(name) = name {
        return Ok(name.to_owned());
    }
    let version: api::Version = link.get("/version").await?.read()?;
    Ok(version.node)
}
