//! `windrow task`: the tasks of a node.

pub mod args;
mod ending;
pub mod log;
pub mod look;
pub(crate) mod make;
pub(crate) mod steer;
pub mod wait;
pub mod watch;
mod which;
pub mod words;

use self::args::{TaskArgs, Verb};
use super::exit::Exit;
use super::fault::Fault;
use crate::shell::Shell;

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
pub(super) async fn task(args: &TaskArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => look::list::list(&args.list, shell).await,
        Some(Verb::List(args)) => look::list::list(args, shell).await,
        Some(Verb::Show(args)) => look::show::show(args, shell).await,
        Some(Verb::Create(args)) => Box::pin(make::create::create(args, shell)).await,
        Some(Verb::Preview(args)) => look::failures::preview(args, shell).await,
        Some(Verb::Start(args)) => steer::start(args, shell).await,
        Some(Verb::Stop(args)) => steer::stop(args, shell).await,
        Some(Verb::Cancel(args)) => steer::cancel(args, shell).await,
        Some(Verb::Finish(args)) => steer::finish(args, shell).await,
        Some(Verb::Append(args)) => make::append::append(args, shell).await,
        Some(Verb::Seal(args)) => steer::seal(args, shell).await,
        Some(Verb::Abandon(args)) => steer::abandon(args, shell).await,
        Some(Verb::Skip(args)) => steer::skip::skip(args, shell).await,
        Some(Verb::Recover(args)) => steer::recover(args, shell).await,
        Some(Verb::Set(args)) => steer::set::set(args, shell).await,
        Some(Verb::Clone(args)) => make::create::clone(args, shell).await,
        Some(Verb::Delete(args)) => steer::delete(args, shell).await,
        Some(Verb::Move(args)) => steer::relocate::relocate(args, shell).await,
        Some(Verb::Failures(args)) => look::failures::failures(args, shell).await,
        Some(Verb::Item(args)) => look::item::item(args, shell).await,
        Some(Verb::Redrive(args)) => make::redrive::redrive(args, shell).await,
        Some(Verb::Log(args)) => log::show(&args.flags, Some(&args.task), shell).await,
        Some(Verb::Runs(args)) => look::history::runs(args, shell).await,
        Some(Verb::Revisions(args)) => look::history::revisions(args, shell).await,
        Some(Verb::Report(args)) => look::report::report(args, shell).await,
        Some(Verb::Results(args)) => look::results::results(args, shell).await,
        Some(Verb::Export(args)) => look::export::export(args, shell).await,
        Some(Verb::Apply(args)) => make::apply::apply(args, shell).await,
        Some(Verb::Explain(args)) => look::explain::explain(args, shell).await,
        Some(Verb::Wait(args)) => wait::wait(args, shell).await,
        Some(Verb::Watch(args)) => watch::watch(args, shell).await,
    }
}
