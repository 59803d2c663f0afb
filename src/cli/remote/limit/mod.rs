//! `windrow limit`: what several businesses and tasks may have together.

pub mod args;
mod change;
mod show;

use self::args::{LimitArgs, Verb};
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use windrow_client::segment;

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
pub(crate) async fn limit(args: &LimitArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => show::list(&args.list, shell).await,
        Some(Verb::List(args)) => show::list(args, shell).await,
        Some(Verb::Show(args)) => show::show(args, shell).await,
        Some(Verb::Create(args)) => change::create(args, shell).await,
        Some(Verb::Set(args)) => change::set(args, shell).await,
        Some(Verb::Delete(args)) => change::delete(args, shell).await,
    }
}

/// Where a limit is in the API.
fn path(name: &str) -> String {
    format!("/v1/limits/{}", segment(name))
}
