//! Creation and changes of schedules.

use api::{Schedule, ScheduleAhead};
use serde_json::Value;
use serde_json::value::RawValue;

use super::args::{CreateArgs, SetArgs, When, span};
use super::look::{SCHEDULES, card};
use super::order::Plan;
use super::{address, place};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::metering;
use crate::input::moment::{Lean, zones};
use crate::link::{Link, Write};
use crate::output::body::joined;
use crate::output::difference::differences;
use crate::output::screen;
use crate::shell::Shell;
use crate::task::args::make::Begin;
use crate::task::look::rows::check_url;
use crate::task::make::draft::{Draft, json};
use crate::task::make::warnings;
use windrow_client::{Answer, Request};
use windrow_core::meter::metering::Metering;

/// Word that removes a time.
const NO_TIME: &str = "none";

/// Creates a schedule from flags.
pub(super) async fn create(args: &CreateArgs, shell: &Shell) -> Result<Exit, Fault> {
    let task = task(args)?;
    let link = Link::open(&args.write.remote, shell)?;
    let mut draft = Draft::default();
    draft.put("business", &args.business)?;
    draft.put("name", &args.schedule)?;
    draft.put("task", task.raw()?)?;
    draft.put_option("paused", args.paused.then_some(true))?;
    when(&mut draft, &args.when, args.when.clocks(None), &link)?;
    let answer = match send(&link, &draft, &args.write, Request::post("/v1/schedules")).await {
        Ok(Some(answer)) => answer,
        Ok(None) => return Ok(Exit::Ok),
        Err(fault) => {
            let (business, name) = (&args.business, &args.schedule);
            return Err(link.turned_round(fault, "schedule create", business, name).await);
        }
    };
    let made: ScheduleAhead = answer.read()?;
    warn(&link, &made);
    let schedule = &made.schedule;
    let next = match made.next_fires.first().filter(|_| !schedule.paused) {
        Some(next) => format!("first fire {}", link.times(&answer).text(next)),
        None => "paused".to_owned(),
    };
    let line = format!("created  {}  {}   {next}", schedule.id, address(schedule));
    link.show_done(&SCHEDULES, &answer, &line)
}

/// Changes a schedule from flags.
pub(super) async fn set(args: &SetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let mut draft = Draft::default();
    draft.put_option("task", task_change(args)?)?;
    if draft.is_empty() && args.when.is_empty() {
        let fault = Fault::new(Exit::Usage, "nothing to change", "no change was given");
        return Err(fault.hint("windrow schedule set --help lists the flags"));
    }
    let path = place(&link, &args.schedule).await?;
    let before = link.get(&path).await?;
    let schedule: Schedule = before.read()?;
    let clocks = args.when.clocks(schedule.zone.as_deref());
    when(&mut draft, &args.when, clocks, &link)?;
    let mut request = Request::patch(&path);
    if let Some(tag) = before.header("etag") {
        request = request.header("if-match", tag);
    }
    let Some(answer) = send(&link, &draft, &args.write, request).await? else {
        return Ok(Exit::Ok);
    };
    let after: ScheduleAhead = answer.read()?;
    warn(&link, &after);
    let changed: Vec<String> = differences(&before.json()?, &answer.json()?)
        .iter()
        .filter(|one| {
            !one.member.starts_with("next_")
                && !one.member.starts_with("last_fire")
                && one.member != "warnings"
        })
        .map(|one| one.line())
        .collect();
    let what = joined(&changed, "  ").unwrap_or_else(|| "unchanged".to_owned());
    let line = format!("{}  {what}", address(&after.schedule));
    link.show_done(&SCHEDULES, &answer, &line)
}

/// Returns the changes to the task of each fire, `None` if there are none.
fn task_change(args: &SetArgs) -> Result<Option<Box<RawValue>>, Fault> {
    let mut change = Draft::default();
    change.put_option("name", args.name.as_ref())?;
    if args.no_name {
        change.put("name", Value::Null)?;
    }
    match &args.task {
        Some(task) => json("--task", task).map(Some),
        None if change.is_empty() => Ok(None),
        None => change.raw().map(Some),
    }
}

/// Sends a change. Returns `None` for a dry run, for which people see the resulting schedule with its next fires.
async fn send(
    link: &Link<'_>,
    draft: &Draft,
    write: &Write,
    request: Request,
) -> Result<Option<Answer>, Fault> {
    let request = draft.request(write, request)?;
    if !write.dry_run {
        return link.send(request).await.map(Some);
    }
    let (answer, _) = link.try_out(request).await?;
    let Plan { would } = answer.read()?;
    warn(link, &would);
    match link.look.form.is_for_people() {
        true => screen::put(&card(&would, &link.times(&answer)).text(link.look.paper))?,
        false => screen::put(&answer.text())?,
    }
    Ok(None)
}

/// Prints the warnings of a node.
fn warn(link: &Link<'_>, schedule: &ScheduleAhead) {
    for line in warnings::lines(&schedule.warnings, "", link.look.style) {
        link.must_say(&format!("warning: {line}"));
    }
}

/// Adds the times of the schedule to a draft.
fn when(draft: &mut Draft, when: &When, clocks: Option<&str>, link: &Link<'_>) -> Result<(), Fault> {
    for (flag, given) in [("--every", &when.every), ("--jitter", &when.jitter)] {
        if let Some(Err(why)) = given.as_deref().map(span) {
            let fault = Fault::new(Exit::Usage, format!("invalid {flag}"), why);
            return Err(fault.hint(format!("{flag} 30m; units are s, m, h and d")));
        }
    }
    draft.put_option("cron", when.cron.as_ref())?;
    draft.put_option("zone", when.zone.as_ref())?;
    draft.put_option("every", when.every.as_ref())?;
    draft.put_option("jitter", when.jitter.as_ref())?;
    draft.put_option("overlap", when.overlap.map(|overlap| overlap.as_str()))?;
    draft.put_option("missed", when.missed.as_ref())?;
    time(draft, "start", (when.start.as_ref(), clocks), link)?;
    time(draft, "end", (when.end.as_ref(), clocks), link)
}

fn time(
    draft: &mut Draft,
    name: &str,
    (text, clocks): (Option<&String>, Option<&str>),
    link: &Link<'_>,
) -> Result<(), Fault> {
    match text {
        Some(text) if text == NO_TIME => draft.put(name, Value::Null),
        text => {
            let flag = format!("--{name}");
            let at = text.map(|text| zones::given(&flag, text, (Lean::Ahead, clocks), link));
            let at = at.transpose()?;
            draft.put_option(name, at.map(|at| at.exact))
        }
    }
}

/// Drafts the task of each fire.
fn task(args: &CreateArgs) -> Result<Draft, Fault> {
    check_url(
        args.items.url.as_deref(),
        "every fire fetches its items again: serve the file over HTTP at a URL the node can reach",
    )?;
    let mut task = Draft::default();
    task.identity(&args.identity)?;
    task.content(&args.content)?;
    let (limits, _) = metering::divided(&args.content.limits);
    task.metering(&limits, &args.content.costs, &Metering::default())?;
    task.put_option("deadline_after", args.deadline_after.as_ref())?;
    task.settings(&args.settings)?;
    task.publication(&args.publish)?;
    task.begin(args.canary, Begin::default())?;
    task.named_items(&args.items, None)?;
    Ok(task)
}
