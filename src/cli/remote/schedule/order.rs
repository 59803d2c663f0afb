//! Schedules paused, resumed and deleted; fires ordered by hand.

use serde_json::{Map, Value, json};

use super::args::{BackfillArgs, OneWrite, SkipArgs};
use super::look::{FIRES, ORDERED, SCHEDULES, zoned};
use super::{address, place};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::moment::{Lean, zones};
use crate::link::{Danger, Form, Link, Write};
use crate::output::body::{list, text};
use crate::output::screen;
use crate::output::table::human;
use crate::shell::Shell;
use windrow_client::Request;

/// Pauses a schedule, or lets it go on.
pub(super) async fn pause(args: &OneWrite, pauses: bool, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let verb = if pauses { "pause" } else { "resume" };
    let request = Request::post(&format!("{}/{verb}", place(&link, &args.schedule).await?));
    let Some(answer) = link.change(&args.write, request, Map::new()).await? else {
        return Ok(Exit::Ok);
    };
    let after: Value = answer.json()?;
    let line = match after["next_fires"].get(0).filter(|_| !pauses) {
        Some(next) => format!(
            "{}  fires next {}",
            address(&after),
            link.times(&answer).text(text(next))
        ),
        None => format!("{}  paused", address(&after)),
    };
    link.show_done(&SCHEDULES, &answer, &line)
}

/// Deletes a schedule.
pub(super) async fn delete(args: &OneWrite, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let path = place(&link, &args.schedule).await?;
    if !args.write.dry_run {
        let question = format!(
            "Delete the schedule {} and what is known of its fires?",
            args.schedule
        );
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
    let fire: Value = answer.json()?;
    let (time, outcome) = (text(&fire["time"]), text(&fire["outcome"]));
    let line = match (fire["task"].as_str(), fire["text"].as_str()) {
        (Some(task), _) => format!("fired  {task}"),
        (None, Some(why)) => format!("fired at {time}: {outcome}  {why}"),
        (None, None) => format!("fired at {time}: {outcome}"),
    };
    link.show_done(&FIRES, &answer, &line)
}

/// Gives up fires that wait or whose task isn't made yet.
pub(super) async fn skip(args: &SkipArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let place = place(&link, &args.schedule).await?;
    let mut body = Map::new();
    if let Some(fire) = &args.fire {
        let schedule: Value = link.get(&place).await?.json()?;
        let clocks = (Lean::Back, schedule["zone"].as_str());
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
    let skipped: Value = answer.json()?;
    let line = match list(&skipped["items"]).len() {
        0 => format!("{}  no fire waits", args.schedule),
        count => format!(
            "{}  {} given up",
            args.schedule,
            human::counted(count as u64, "fire")
        ),
    };
    link.show_done(&FIRES, &answer, &line)
}

/// Orders fires for a time that is over.
pub(super) async fn backfill(args: &BackfillArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let place = place(&link, &args.schedule).await?;
    let schedule: Value = link.get(&place).await?.json()?;
    let clocks = (Lean::Back, schedule["zone"].as_str());
    let from = zones::given("--from", &args.from, clocks, &link)?.exact;
    let to = args.to.as_ref().map(|to| zones::given("--to", to, clocks, &link));
    let mut body = Map::from_iter([("from".to_owned(), json!(from))]);
    body.extend(to.transpose()?.map(|to| ("to".to_owned(), json!(to.exact))));
    body.extend(args.publish.then(|| ("publish".to_owned(), json!(true))));
    let request = Request::post(&format!("{place}/backfill"));
    if args.write.dry_run && link.look.form.is_for_people() {
        return try_backfill(&link, &args.write, (request, body), &schedule).await;
    }
    let Some(answer) = link.change(&args.write, request, body).await? else {
        return Ok(Exit::Ok);
    };
    let ordered: Value = answer.json()?;
    let count = ordered["items"].as_array().map_or(0, Vec::len);
    let line = format!(
        "{}  {} ordered",
        args.schedule,
        human::counted(count as u64, "fire")
    );
    link.show_done(&FIRES, &answer, &line)
}

/// The fires that would be given up, for people.
async fn try_skip(
    link: &Link<'_>,
    write: &Write,
    request: Request,
    body: Map<String, Value>,
) -> Result<Exit, Fault> {
    let (answer, plan) = link.try_out(write.request(request, body)).await?;
    let fires = list(&plan["would"]["items"]);
    let wide = link.look.form == Form::Wide;
    if !fires.is_empty() {
        screen::put(&FIRES.table(fires, &link.times(&answer), link.look.paper, wide))?;
    }
    link.say(&format!(
        "{} would be given up",
        human::counted(fires.len() as u64, "fire")
    ));
    Ok(Exit::Ok)
}

/// The fires that would be ordered, for people.
async fn try_backfill(
    link: &Link<'_>,
    write: &Write,
    (request, mut body): (Request, Map<String, Value>),
    schedule: &Value,
) -> Result<Exit, Fault> {
    body.extend(
        write
            .reason
            .iter()
            .map(|reason| ("reason".to_owned(), json!(reason))),
    );
    let (answer, plan) = link.try_out(request.json(&Value::Object(body))).await?;
    let fires = zoned(list(&plan["would"]["items"]).to_vec(), schedule);
    let wide = link.look.form == Form::Wide;
    screen::put(&ORDERED.table(&fires, &link.times(&answer), link.look.paper, wide))?;
    link.say(&format!(
        "{} would be ordered",
        human::counted(fires.len() as u64, "fire")
    ));
    Ok(Exit::Ok)
}
