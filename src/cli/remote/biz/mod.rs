//! `windrow biz`: businesses, who do the work.

mod apply;
pub mod args;
mod check;
mod edit;
mod list;
mod register;
mod settings;
mod show;

use self::args::{BizArgs, Verb};
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use windrow_client::segment;

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
pub(crate) async fn biz(args: &BizArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list::list(&args.list, shell).await,
        Some(Verb::List(args)) => list::list(args, shell).await,
        Some(Verb::Show(args)) => show::show(args, shell).await,
        Some(Verb::Register(args)) => register::register(args, shell).await,
        Some(Verb::Edit(args)) => edit::edit(args, shell).await,
        Some(Verb::Check(args)) => check::check(args, shell).await,
        Some(Verb::Archive(args)) => edit::archive(args, shell, "archive").await,
        Some(Verb::Unarchive(args)) => edit::archive(args, shell, "unarchive").await,
        Some(Verb::RotateSecret(args)) => register::rotate_secret(args, shell).await,
        Some(Verb::Revisions(args)) => show::revisions(args, shell).await,
        Some(Verb::Apply(args)) => apply::apply(args, shell).await,
    }
}

/// Where a business is in the API.
fn path(name: &str) -> String {
    format!("/v1/businesses/{}", segment(name))
}
