//! Implementation of `windrow cluster`, for all nodes together.

use api::Cluster;
use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link, Remote};
use crate::output::screen;
use crate::output::table::human;
use crate::remote::node::list::NODES;
use crate::shell::Shell;

/// Examples of the status, for the help.
const STATUS_EXAMPLES: &str = "Examples:
  windrow cluster status
  windrow cluster status -o json

Nodes with the same database server form a cluster; see 'windrow help serve'.

Exit: 0 if the cluster is healthy, 1 otherwise.";

/// Arguments of `windrow cluster`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ClusterArgs {
    /// Verb to execute; without one the status is shown.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Flags of the status, without a verb.
    #[command(flatten)]
    pub status: StatusArgs,
}

/// Verbs of `windrow cluster`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show whether all nodes are healthy, what they run, and which shards wait for a takeover
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
}

/// Arguments of `windrow cluster status`.
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Shows the status of the cluster.
///
/// # Errors
/// `Usage` for an output format that only lists have; otherwise same as [`Link::send`].
pub(crate) async fn cluster(args: &ClusterArgs, shell: &Shell) -> Result<Exit, Fault> {
    let Some(Verb::Status(args)) = &args.verb else {
        return status(&args.status, shell).await;
    };
    status(args, shell).await
}

async fn status(args: &StatusArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link.get("/v1/cluster").await?;
    let cluster: Cluster = answer.read()?;
    match link.look.form {
        Form::Json => screen::put(&answer.text())?,
        Form::Table | Form::Wide => {
            for line in head(&cluster) {
                screen::put(&line)?;
            }
            let is_wide = link.look.form == Form::Wide;
            screen::put(&NODES.table(&cluster.nodes, &link.look.times(0), link.look.paper, is_wide))?;
        }
        Form::Ndjson | Form::Name | Form::Csv => {
            let hint = "use -o table or -o json; `windrow node list` lists nodes";
            return Err(Fault::no_form("the cluster isn't a list", hint));
        }
    }
    Ok(match cluster.status.as_str() {
        "ok" => Exit::Ok,
        _ => Exit::Failed,
    })
}

fn head(cluster: &Cluster) -> Vec<String> {
    let (status, store, shards) = (&cluster.status, &cluster.store, &cluster.shards);
    let (database, witness) = (&cluster.database, &cluster.witness);
    let counts = [shards.owned, shards.orphaned, shards.released, shards.recovering];
    let [owned, orphaned, released, recovering] = counts.map(human::count);
    let versions = cluster.versions.iter();
    let versions: Vec<String> = versions
        .map(|(version, nodes)| format!("{version} on {nodes}"))
        .collect();
    let mut lines = vec![
        format!("status    {status}"),
        format!("store     {store}  {database}; witness {witness}"),
        format!("versions  {}", versions.join(", ")),
        format!(
            "shards    {owned} owned  {orphaned} awaiting takeover  {released} waiting for a node  \
                {recovering} recovering"
        ),
    ];
    lines.extend(
        cluster
            .reasons
            .iter()
            .map(|reason| format!("  !  {}", reason.text)),
    );
    lines.push(String::new());
    lines
}
