//! `windrow token`: who may call.

pub mod args;
mod change;
mod list;

use self::args::{TokenArgs, Verb};
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
pub(crate) async fn token(args: &TokenArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list::list(&args.list, shell).await,
        Some(Verb::List(args)) => list::list(args, shell).await,
        Some(Verb::Create(args)) => change::create(args, shell).await,
        Some(Verb::Revoke(args)) => change::revoke(args, shell).await,
    }
}
