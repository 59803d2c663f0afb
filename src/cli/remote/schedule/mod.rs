//! Implementation of `windrow schedule`, for recurring tasks.

pub mod args;
mod look;
mod make;
mod order;

use api::{Page, Schedule};

use self::args::{ScheduleArgs, Verb};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::shell::Shell;
use windrow_client::Request;
use windrow_core::ids::ScheduleId;

/// Executes the verb; lists the schedules without one.
///
/// # Errors
/// Same as the verb.
pub(crate) async fn schedule(args: &ScheduleArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => look::list(&args.list, shell).await,
        Some(Verb::List(args)) => look::list(args, shell).await,
        Some(Verb::Show(args)) => look::show(args, shell).await,
        Some(Verb::Create(args)) => make::create(args, shell).await,
        Some(Verb::Set(args)) => make::set(args, shell).await,
        Some(Verb::Delete(args)) => order::delete(args, shell).await,
        Some(Verb::Pause(args)) => order::pause(args, true, shell).await,
        Some(Verb::Resume(args)) => order::pause(args, false, shell).await,
        Some(Verb::Trigger(args)) => order::trigger(args, shell).await,
        Some(Verb::Backfill(args)) => order::backfill(args, shell).await,
        Some(Verb::Skip(args)) => order::skip(args, shell).await,
        Some(Verb::Fires(args)) => look::fires(args, shell).await,
        Some(Verb::Next(args)) => look::next(args, shell).await,
    }
}

/// Returns the API path of a schedule addressed as `s7` or `business/name`.
async fn place(link: &Link<'_>, address: &str) -> Result<String, Fault> {
    if let Ok(id) = address.parse::<ScheduleId>() {
        return Ok(format!("/v1/schedules/{id}"));
    }
    let parts = address
        .split_once('/')
        .filter(|(b, n)| !b.is_empty() && !n.is_empty());
    let Some((business, name)) = parts else {
        return Err(link.no_address("schedule", "s7", address).await);
    };
    let request = Request::get("/v1/schedules")
        .query("business", business)
        .query("name", name)
        .query("limit", 1);
    let found: Page<Schedule> = link.send(request).await?.read()?;
    match found.items.first() {
        Some(schedule) => Ok(format!("/v1/schedules/{}", schedule.id)),
        None => Err(link.no_such("schedule", business, name).await),
    }
}

/// Returns the address of a schedule, such as `push/team-board`.
fn address(schedule: &Schedule) -> String {
    format!("{}/{}", schedule.business, schedule.name)
}
