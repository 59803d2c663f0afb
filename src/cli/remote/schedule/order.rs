//! Pausing, resuming and deleting of schedules, and fires ordered by hand.

use api::{Fire, Page, Schedule, ScheduleAhead};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::args::{BackfillArgs, OneWrite, SkipArgs};
use super::look::{FIRES, ORDERED, SCHEDULES, zoned};
use super::{address, place};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::moment::{Lean, zones};
use crate::link::{Danger, Form, Link, Write};
use crate::output::screen;
use crate::output::table::human;
use crate::shell::Shell;
use windrow_client::{Answer, Request};

/// Answer to a dry run.
#[derive(Deserialize)]
pub(super) struct Plan<T> {
    /// Object as it would be after the change.
    pub(super) would: T,
}

/// Pauses a schedule or resumes it.
pub(super) async fn pause(args: &OneWrite, pauses: bool, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let verb = if pauses { "pause" } else { "resume" };
    let request = Request::post(&format!("{}/{verb}", place(&link, &args.schedule).await?));
    let Some(answer) = link.change(&args.write, request, Map::new()).await? else {
        return Ok(Exit::Ok);
    };
    let after: ScheduleAhead = answer.read()?;
    let address = address(&after.schedule);
    let line = match after.next_fires.first().filter(|_| !pauses) {
        Some(next) => format!("{address}  next fire {}", link.times(&answer).text(next)),
        None => format!("{address}  paused"),
    };
    link.show_done(&SCHEDULES, &answer, &line)
}

/// Deletes a schedule after confirmation.
pub(super) async fn delete(args: &OneWrite, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let path = place(&link, &args.schedule).await?;
    if !args.write.dry_run {
        let question = format!("Delete the schedule {} and its fire history?", args.schedule);
        link.confirm(Danger::Final, &question)?;
    }
    match link
        .change(&args.write, Request::delete(&path), Map::new())
        .await?
    {
        Some(_) => link.show_gone(&args.schedule, &format!("deleted the schedule {}", args.schedule)),
        None => Ok(Exit::Ok),
    }
}

/// Fires a schedule now.
pub(super) async fn trigger(args: &OneWrite, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let request = Request::post(&format!("{}/trigger", place(&link, &args.schedule).await?));
    let Some(answer) = link.change(&args.write, request, Map::new()).await? else {
        return Ok(Exit::Ok);
    };
    let fire: Fire = answer.read()?;
    let (time, outcome) = (fire.time, fire.outcome);
    let line = match (fire.task, fire.text) {
        (Some(task), _) => format!("fired  {task}"),
        (None, Some(why)) => format!("fired at {time}: {outcome}  {why}"),
        (None, None) => format!("fired at {time}: {outcome}"),
    };
    link.show_done(&FIRES, &answer, &line)
}

/// Skips fires that are queued or whose task doesn't exist yet.
pub(super) async fn skip(args: &SkipArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let place = place(&link, &args.schedule).await?;
    let mut body = Map::new();
    if let Some(fire) = &args.fire {
        let schedule: Schedule = link.get(&place).await?.read()?;
        let clocks = (Lean::Back, schedule.zone.as_deref());
        let time = zones::given("--fire", fire, clocks, &link)?.exact;
        body.insert("time".to_owned(), json!(time));
    }
    let request = Request::post(&format!("{place}/skip"));
    if args.write.dry_run && link.look.form.is_for_people() {
        return try_skip(&link, &args.write, request, body).await;
    }
    let Some(answer) = link.change(&args.write, request, body).await? else {
        return Ok(Exit::Ok);
    };
    let skipped: Page<Fire> = answer.read()?;
    let line = match skipped.items.len() {
        0 => format!("{}  no pending or queued fires", args.schedule),
        count => format!(
            "{}  {} dropped",
            args.schedule,
            human::counted(count as u64, "fire")
        ),
    };
    show_fires(&link, &answer, &line)
}

/// Orders fires for past times.
pub(super) async fn backfill(args: &BackfillArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let place = place(&link, &args.schedule).await?;
    let schedule: Schedule = link.get(&place).await?.read()?;
    let clocks = (Lean::Back, schedule.zone.as_deref());
    let from = zones::given("--from", &args.from, clocks, &link)?.exact;
    let to = args.to.as_ref().map(|to| zones::given("--to", to, clocks, &link));
    let mut body = Map::from_iter([("from".to_owned(), json!(from))]);
    body.extend(to.transpose()?.map(|to| ("to".to_owned(), json!(to.exact))));
    body.extend(args.publish.then(|| ("publish".to_owned(), json!(true))));
    let request = Request::post(&format!("{place}/backfill"));
    if args.write.dry_run && link.look.form.is_for_people() {
        return try_backfill(&link, &args.write, (request, body), schedule.zone).await;
    }
    let Some(answer) = link.change(&args.write, request, body).await? else {
        return Ok(Exit::Ok);
    };
    let ordered: Page<Fire> = answer.read()?;
    let count = ordered.items.len();
    let line = format!(
        "{}  {} ordered",
        args.schedule,
        human::counted(count as u64, "fire")
    );
    show_fires(&link, &answer, &line)
}

/// Prints the resulting fires, for people as a single line.
fn show_fires(link: &Link<'_>, answer: &Answer, line: &str) -> Result<Exit, Fault> {
    match link.look.form {
        Form::Table | Form::Wide => screen::put(line).map(|()| Exit::Ok),
        Form::Ndjson => screen::put(&answer.line()).map(|()| Exit::Ok),
        Form::Json | Form::Name | Form::Csv => {
            let listed = link.page(answer)?;
            link.show_list(&FIRES, &listed, &listed.things()?)
        }
    }
}

/// Prints the fires that would be skipped, for people.
async fn try_skip(
    link: &Link<'_>,
    write: &Write,
    request: Request,
    body: Map<String, Value>,
) -> Result<Exit, Fault> {
    let (answer, _) = link.try_out(write.request(request, body)).await?;
    let plan: Plan<Page<Fire>> = answer.read()?;
    let fires = zoned(plan.would.items, None);
    let wide = link.look.form == Form::Wide;
    if !fires.is_empty() {
        screen::put(&FIRES.table(&fires, &link.times(&answer), link.look.paper, wide))?;
    }
    link.say(&format!(
        "{} would be dropped",
        human::counted(fires.len() as u64, "fire")
    ));
    Ok(Exit::Ok)
}

/// Prints the fires that would be ordered, for people.
async fn try_backfill(
    link: &Link<'_>,
    write: &Write,
    (request, body): (Request, Map<String, Value>),
    zone: Option<String>,
) -> Result<Exit, Fault> {
    let (answer, _) = link.try_out(write.request(request, body)).await?;
    let plan: Plan<Page<Fire>> = answer.read()?;
    let fires = zoned(plan.would.items, zone);
    let wide = link.look.form == Form::Wide;
    screen::put(&ORDERED.table(&fires, &link.times(&answer), link.look.paper, wide))?;
    link.say(&format!(
        "{} would be ordered",
        human::counted(fires.len() as u64, "fire")
    ));
    Ok(Exit::Ok)
}
