//! `windrow ctx`: which node is asked, and who asks. Nothing here talks to one.

pub mod args;
mod edit;
mod shown;

use self::args::{CtxArgs, Verb};
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
pub(crate) fn ctx(args: &CtxArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => shown::list(&args.list, shell),
        Some(Verb::List(args)) => shown::list(args, shell),
        Some(Verb::Show(args)) => shown::show(args, shell),
        Some(Verb::Use(args)) => edit::use_(&args.name, shell),
        Some(Verb::Add(args)) => edit::add(args, shell),
        Some(Verb::Remove(args)) => edit::remove(&args.name, shell),
    }
}
