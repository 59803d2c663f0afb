//! `windrow node`: the nodes of a cluster.

mod actors;
pub mod args;
mod change;
pub(crate) mod list;
mod show;

use self::args::{NodeArgs, Verb};
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use windrow_client::segment;

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
pub(crate) async fn node(args: &NodeArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list::list(&args.list, shell).await,
        Some(Verb::List(args)) => list::list(args, shell).await,
        Some(Verb::Show(args)) => show::show(args, shell).await,
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
    let version = link.get("/version").await?.json()?;
    version["node"].as_str().map(str::to_owned).ok_or_else(|| {
        Fault::new(
            Exit::Failed,
            "the node doesn't tell its name",
            "/version has none",
        )
        .hint("name it: `windrow node list` shows names")
    })
}
