//! `windrow task`: the tasks of a node.

mod apply;
pub mod args;
mod columns;
mod create;
mod draft;
mod ending;
pub mod explain;
mod export;
mod failures;
mod follow;
mod history;
mod item;
mod list;
mod redrive;
mod relocate;
mod report;
mod rows;
mod set;
mod show;
mod steer;
mod until;
pub mod wait;
mod warnings;
pub mod watch;
mod which;
pub mod words;

use self::args::{TaskArgs, Verb};
pub use self::columns::TASKS;
pub(super) use self::set::difference_but;
use super::Shell;
use super::exit::Exit;
use super::fault::Fault;
use super::log;

/// Does what the verb says; without one it lists.
///
/// # Errors
/// The verb's.
pub(super) async fn task(args: &TaskArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list::list(&args.list, shell).await,
        Some(Verb::List(args)) => list::list(args, shell).await,
        Some(Verb::Show(args)) => show::show(args, shell).await,
        Some(Verb::Create(args)) => Box::pin(create::create(args, shell)).await,
        Some(Verb::Preview(args)) => failures::preview(args, shell).await,
        Some(Verb::Start(args)) => steer::start(args, shell).await,
        Some(Verb::Stop(args)) => steer::stop(args, shell).await,
        Some(Verb::Cancel(args)) => steer::cancel(args, shell).await,
        Some(Verb::Finish(args)) => steer::finish(args, shell).await,
        Some(Verb::Abandon(args)) => steer::abandon(args, shell).await,
        Some(Verb::Recover(args)) => steer::recover(args, shell).await,
        Some(Verb::Set(args)) => set::set(args, shell).await,
        Some(Verb::Clone(args)) => create::clone(args, shell).await,
        Some(Verb::Delete(args)) => steer::delete(args, shell).await,
        Some(Verb::Move(args)) => relocate::relocate(args, shell).await,
        Some(Verb::Failures(args)) => failures::failures(args, shell).await,
        Some(Verb::Item(args)) => item::item(args, shell).await,
        Some(Verb::Redrive(args)) => redrive::redrive(args, shell).await,
        Some(Verb::Log(args)) => log::show(&args.flags, Some(&args.task), shell).await,
        Some(Verb::Runs(args)) => history::runs(args, shell).await,
        Some(Verb::Revisions(args)) => history::revisions(args, shell).await,
        Some(Verb::Report(args)) => report::report(args, shell).await,
        Some(Verb::Export(args)) => export::export(args, shell).await,
        Some(Verb::Apply(args)) => apply::apply(args, shell).await,
        Some(Verb::Explain(args)) => explain::explain(args, shell).await,
        Some(Verb::Wait(args)) => wait::wait(args, shell).await,
        Some(Verb::Watch(args)) => watch::watch(args, shell).await,
    }
}
