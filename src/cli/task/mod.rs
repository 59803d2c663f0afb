//! `windrow task`: the tasks of a node.

pub mod args;
mod columns;
mod ending;
pub mod explain;
mod list;
mod show;
pub mod wait;
pub mod watch;
pub mod words;

use self::args::{TaskArgs, Verb};
pub use self::columns::TASKS;
use super::Shell;
use super::exit::Exit;
use super::fault::Fault;

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
pub(super) async fn task(args: &TaskArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list::list(&args.list, shell).await,
        Some(Verb::List(args)) => list::list(args, shell).await,
        Some(Verb::Show(args)) => show::show(args, shell).await,
        Some(Verb::Explain(args)) => explain::explain(args, shell).await,
        Some(Verb::Wait(args)) => wait::wait(args, shell).await,
        Some(Verb::Watch(args)) => watch::watch(args, shell).await,
    }
}
