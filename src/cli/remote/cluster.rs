//! `windrow cluster`: all nodes together.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link, Remote};
use crate::output::body::{list, number, text};
use crate::output::screen;
use crate::output::table::human;
use crate::remote::node::list::NODES;
use crate::shell::Shell;

/// How the cluster is looked at.
const STATUS_EXAMPLES: &str = "\
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

/// Shows whether all is well.
///
/// # Errors
/// `Usage` for a form that is for lists; else as [`Link::send`].
pub(crate) async fn cluster(args: &ClusterArgs, shell: &Shell) -> Result<Exit, Fault> {
    let Some(Verb::Status(args)) = &args.verb else {
        return status(&args.status, shell).await;
    };
    status(args, shell).await
}

async fn status(args: &StatusArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link.get("/v1/cluster").await?;
    let cluster = answer.json()?;
    match link.look.form {
        Form::Json => screen::put(&answer.text())?,
        Form::Table | Form::Wide => {
            for line in head(&cluster) {
                screen::put(&line)?;
            }
            let is_wide = link.look.form == Form::Wide;
            let nodes = list(&cluster["nodes"]);
            screen::put(&NODES.table(nodes, &link.look.times(0), link.look.paper, is_wide))?;
        }
        Form::Ndjson | Form::Name | Form::Csv => {
            let hint = "-o table, or -o json; `windrow node list` lists nodes";
            return Err(Fault::no_form("a cluster is no list", hint));
        }
    }
    let is_well = cluster["status"] == "ok";
    Ok(if is_well { Exit::Ok } else { Exit::Failed })
}

fn head(cluster: &Value) -> Vec<String> {
    let texts = ["status", "store", "database", "witness"];
    let [status, store, database, witness] = texts.map(|name| text(&cluster[name]));
    let counts = ["owned", "orphaned", "released", "recovering"];
    let [owned, orphaned, released, recovering] =
        counts.map(|name| human::count(number(&cluster["shards"][name])));
    let versions = cluster["versions"].as_object().into_iter().flatten();
    let versions: Vec<String> = versions
        .map(|(version, nodes)| format!("{version} on {nodes}"))
        .collect();
    let mut lines = vec![
        format!("status    {status}"),
        format!("store     {store}  {database}; witness {witness}"),
        format!("versions  {}", versions.join(", ")),
        format!(
            "shards    {owned} owned  {orphaned} to be taken over  {released} waiting for a node  {recovering} recovering"
        ),
    ];
    for reason in list(&cluster["reasons"]) {
        lines.push(format!("  !  {}", text(&reason["text"])));
    }
    lines.push(String::new());
    lines
}
