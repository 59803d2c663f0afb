//! `windrow biz`: businesses, who do the work.

pub mod args;
mod list;

use self::args::{BizArgs, Verb};
use super::Shell;
use super::exit::Exit;
use super::fault::Fault;

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
pub(super) async fn biz(args: &BizArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list::list(&args.list, shell).await,
        Some(Verb::List(args)) => list::list(args, shell).await,
    }
}
