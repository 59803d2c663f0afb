//! `windrow node`: the nodes of a cluster.

pub mod args;
mod list;

use self::args::{NodeArgs, Verb};
use super::Shell;
use super::exit::Exit;
use super::fault::Fault;

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
pub(super) async fn node(args: &NodeArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list::list(&args.list, shell).await,
        Some(Verb::List(args)) => list::list(args, shell).await,
    }
}
