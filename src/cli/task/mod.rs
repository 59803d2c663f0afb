//! Implementation of `windrow task`, for the tasks of a node.

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

/// Executes the verb; lists the tasks without one.
///
/// # Errors
/// Same as the verb.
pub(super) async fn task(args: &TaskArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => look::list::list(&args.list, shell).await,
        Some(verb) => obey(verb, shell).await,
    }
}

/// Executes a verb.
///
/// # Errors
/// Same as the verb.
pub(crate) async fn obey(verb: &Verb, shell: &Shell) -> Result<Exit, Fault> {
    match verb {
        Verb::List(args) => look::list::list(args, shell).await,
        Verb::Show(args) => look::show::show(args, shell).await,
        Verb::Create(args) => Box::pin(make::create::create(args, shell)).await,
        Verb::Preview(args) => look::failures::preview(args, shell).await,
        Verb::Start(args) => steer::start(args, shell).await,
        Verb::Stop(args) => steer::stop(args, shell).await,
        Verb::Cancel(args) => steer::cancel(args, shell).await,
        Verb::Finish(args) => steer::finish(args, shell).await,
        Verb::Append(args) => make::append::append(args, shell).await,
        Verb::Seal(args) => steer::seal(args, shell).await,
        Verb::Fail(args) => steer::fail(args, shell).await,
        Verb::Skip(args) => steer::skip::skip(args, shell).await,
        Verb::Recover(args) => steer::recover(args, shell).await,
        Verb::Set(args) => steer::set::set(args, shell).await,
        Verb::Clone(args) => make::create::clone(args, shell).await,
        Verb::Delete(args) => steer::delete(args, shell).await,
        Verb::Move(args) => steer::relocate::relocate(args, shell).await,
        Verb::Failures(args) => look::failures::failures(args, shell).await,
        Verb::Item(args) => look::item::item(args, shell).await,
        Verb::Redrive(args) => make::redrive::redrive(args, shell).await,
        Verb::Replay(args) => make::redrive::replay(args, shell).await,
        Verb::Log(args) => log::show(&args.flags, Some(&args.task), shell).await,
        Verb::Runs(args) => look::history::runs(args, shell).await,
        Verb::Revisions(args) => look::history::revisions(args, shell).await,
        Verb::Report(args) => look::report::report(args, shell).await,
        Verb::Results(args) => look::results::results(args, shell).await,
        Verb::Export(args) => look::export::export(args, shell).await,
        Verb::Apply(args) => make::apply::apply(args, shell).await,
        Verb::Explain(args) => look::explain::explain(args, shell).await,
        Verb::Wait(args) => wait::wait(args, shell).await,
        Verb::Watch(args) => watch::watch(args, shell).await,
    }
}
