//! Output of schedules and fires.

use api::{Fire, Page, Schedule, ScheduleAhead};
use serde::Deserialize;

use super::args::{FiresArgs, ListArgs, NextArgs, OneArgs};
use super::{address, place};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, word};
use crate::output::body::joined;
use crate::output::shell_word;
use crate::output::table::human::counted;
use crate::output::table::times::{Times, parsed};
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone, clean};
use crate::shell::Shell;
use windrow_client::Request;
use windrow_core::ids::WallMs;
use windrow_core::schedule::cron::in_zone;

/// Number of newest fires examined for the state of a schedule.
const LAST_MAX: usize = 20;

/// Fire with the zone of its schedule, for commands that show local times.
#[derive(Debug, Deserialize)]
pub(super) struct Zoned {
    #[serde(flatten)]
    fire: Fire,
    #[serde(skip)]
    zone: Option<String>,
}

/// Listing of schedules with their last and next fires.
pub(super) const SCHEDULES: Listing<Schedule> = Listing {
    columns: &[
        Column::text("ID", Keep::Always, 2, |schedule: &Schedule| &schedule.id).tone(Tone::Strong),
        Column::new("SCHEDULE", Side::Left, Keep::Always, 10, |schedule, _| {
            Cell::new(address(schedule))
        }),
        Column::new("WHEN", Side::Left, Keep::Always, 8, |schedule, _| {
            Cell::new(when(schedule))
        }),
        Column::new("NEXT", Side::Left, Keep::Always, 6, next_cell),
        Column::text("OVERLAP", Keep::Rank(40), 5, |schedule| &schedule.overlap),
        Column::text("MISSED", Keep::Rank(20), 5, |schedule| &schedule.missed),
        Column::new("LAST", Side::Left, Keep::Rank(60), 8, last_cell).named("last"),
        Column::plain("REVISION", Keep::Wide, 3, |schedule| {
            Some(schedule.revision.to_string())
        }),
        Column::time("UPDATED", Keep::Wide, |schedule| Some(&schedule.updated_at)),
    ],
    name: |schedule| schedule.id.clone(),
    none: "no schedules",
};

/// Listing of fires with their outcomes.
pub(super) const FIRES: Listing<Zoned> = Listing {
    columns: &[
        Column::new("TIME", Side::Left, Keep::Always, 20, time_cell).named("time"),
        Column::new("OUTCOME", Side::Left, Keep::Always, 7, outcome),
        Column::maybe("TASK", Keep::Always, 3, |one| one.fire.task.as_deref()),
        Column::maybe("NAME", Keep::Wide, 8, |one| one.fire.name.as_deref()),
        Column::plain("FIRES", Keep::Rank(50), 3, |one| Some(one.fire.count.to_string())),
        Column::text("KIND", Keep::Rank(30), 6, |one| &one.fire.kind),
        Column::time("AT", Keep::Rank(20), |one: &Zoned| Some(&one.fire.decided_at)).named("decided"),
        Column::time("SETTLED", Keep::Wide, |one| one.fire.settled_at.as_deref()),
        Column::maybe("LAST", Keep::Wide, 20, |one| one.fire.last.as_deref()),
        Column::maybe("WHY", Keep::Rank(60), 10, |one| one.fire.text.as_deref()),
    ],
    name: |one| one.fire.time.clone(),
    none: "no fires yet",
};

/// Listing of fires that a backfill would order.
pub(super) const ORDERED: Listing<Zoned> = Listing {
    columns: &[
        Column::new("TIME", Side::Left, Keep::Always, 20, time_cell).named("time"),
        Column::maybe("TASK NAME", Keep::Always, 8, |one| one.fire.name.as_deref()),
        Column::new("OUTCOME", Side::Left, Keep::Rank(50), 7, outcome),
    ],
    name: |one| one.fire.time.clone(),
    none: "none: all those times already have fires",
};

/// Listing of future fire times.
const NEXT: Listing<Zoned> = Listing {
    columns: &[
        Column::new("TIME", Side::Left, Keep::Always, 20, time_cell).named("time"),
        Column::time("IN", Keep::Always, |one: &Zoned| Some(&one.fire.time)).named("from_now"),
    ],
    name: |one| one.fire.time.clone(),
    none: "no more fires",
};

/// Formats a fire time such as `2026-01-05T02:00:00Z (Mon 03:00 CET)`. The local time of the schedule's zone follows
/// if it differs, with the weekday if the date differs.
fn time_cell(one: &Zoned, _: &Times) -> Cell {
    let at = one.fire.time.as_str();
    let cell = match one.zone.as_ref().and_then(|zone| beside(at, zone)) {
        Some(local) => {
            let parts: Vec<&str> = local.split(' ').collect();
            let clock = match parts.as_slice() {
                [day, _date, clock, zone] => {
                    format!("{day} {} {zone}", clock.strip_suffix(":00").unwrap_or(clock))
                }
                _ => local,
            };
            Cell::new(format!("{} ({clock})", at.replace(".000Z", "Z"))).short(at)
        }
        None => Cell::new(at),
    };
    cell.plain(at).tone(Tone::Strong)
}

/// Returns the local time in a zone, or `None` if it is the same as UTC.
fn beside(at: &str, zone: &str) -> Option<String> {
    let time = parsed(at).filter(|_| zone != "UTC")?;
    in_zone(WallMs(time.timestamp_millis()), zone)
}

/// Attaches the schedule's zone to its fires.
pub(super) fn zoned(fires: impl IntoIterator<Item = Fire>, zone: Option<String>) -> Vec<Zoned> {
    let zoned = |fire| Zoned {
        fire,
        zone: zone.clone(),
    };
    fires.into_iter().map(zoned).collect()
}

/// Formats the outcome of the last fire: `created (2m ago)`, `failed (2h ago)`.
fn last_cell(schedule: &Schedule, times: &Times) -> Cell {
    let Some(fire) = &schedule.last_fire else {
        return Cell::nothing();
    };
    let (word, since) = (last_word(fire), times.text(&fire.time));
    let tone = match schedule.trouble {
        Some(_) => Tone::Bad,
        None => Tone::Plain,
    };
    let shown = shown_outcome(word);
    Cell::new(format!("{shown} ({since})"))
        .short(shown)
        .plain(word)
        .tone(tone)
}

/// Returns the outcome in one word. A pending fire counts as `retrying`, whatever its final outcome.
fn last_word(fire: &Fire) -> &str {
    match fire.outcome.as_str() {
        "pending" => "retrying",
        outcome => outcome,
    }
}

/// Returns the API's outcome as people read it.
fn shown_outcome(outcome: &str) -> &str {
    match outcome {
        "made" => "created",
        outcome => outcome,
    }
}

fn outcome(one: &Zoned, _: &Times) -> Cell {
    let outcome = &one.fire.outcome;
    let cell = Cell::new(shown_outcome(outcome)).plain(outcome);
    match outcome.as_str() {
        "made" => cell.tone(Tone::Good),
        "missed" | "failed" => cell.tone(Tone::Bad),
        _ => cell,
    }
}

/// Formats the times of a schedule: `every 30m`, or `0 3 * * * Europe/Berlin`.
fn when(schedule: &Schedule) -> String {
    let [every, cron, zone] = [&schedule.every, &schedule.cron, &schedule.zone].map(Option::as_deref);
    match every {
        Some(every) => format!("every {every}"),
        None => format!("{} {}", cron.unwrap_or_default(), zone.unwrap_or_default()),
    }
}

fn next_cell(schedule: &Schedule, times: &Times) -> Cell {
    match &schedule.next_fire {
        _ if schedule.paused => Cell::new("paused").tone(Tone::Dim),
        None => Cell::new("over").tone(Tone::Dim),
        next => Cell::time(next.as_deref(), times),
    }
}

/// Lists schedules with their last outcomes.
pub(super) async fn list(args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.pages.remote, shell)?;
    let request = Request::get("/v1/schedules").query_option("business", args.business.as_ref());
    let listed = link.list(request, Some(&args.pages.paging)).await?;
    let things: Vec<Schedule> = listed.things()?;
    if things.is_empty() {
        link.is_business(args.business.as_deref()).await?;
    }
    let exit = link.show_list(&SCHEDULES, &listed, &things)?;
    for schedule in &things {
        let Some(trouble) = schedule.trouble.as_deref().map(clean) else {
            continue;
        };
        let (fire, address) = (schedule.last_fire.as_ref(), address(schedule));
        let gives_up = match fire.is_some_and(|fire| fire.outcome == "pending") {
            true => format!("; windrow schedule skip {} drops it", shell_word(&address)),
            false => String::new(),
        };
        link.hint(&format!(
            "{address}: {trouble}; windrow schedule fires {}{gives_up}",
            shell_word(&address)
        ));
    }
    Ok(exit)
}

/// Shows a schedule with its next fires.
pub(super) async fn show(args: &OneArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let path = place(&link, &args.schedule).await?;
    let answer = link.get(&path).await?;
    let fires = match link.look.form.is_for_people() {
        true => {
            let newest = Request::get(&format!("{path}/fires")).query("limit", LAST_MAX);
            link.send(newest).await?.read()?
        }
        false => Page::default(),
    };
    let schedule: ScheduleAhead = answer.read()?;
    let exit = link.show_one(&SCHEDULES, &answer, |_, times| {
        card(&schedule, times).maybe("last", last(&fires.items, times))
    })?;
    if open(&schedule).is_some() {
        let address = address(&schedule.schedule);
        link.hint(&format!(
            "windrow schedule skip {} drops pending and queued fires",
            shell_word(&address)
        ));
    }
    Ok(exit)
}

/// Formats the unfinished fires: `1 pending (being made, or tried again)  2 queued (until nothing of it runs)`.
fn open(schedule: &ScheduleAhead) -> Option<String> {
    let open = [
        (schedule.pending, "pending", "creating the task, or retrying"),
        (schedule.queued, "queued", "waiting for the previous task to end"),
    ];
    let open: Vec<String> = open
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, what, meaning)| format!("{count} {what} ({meaning})"))
        .collect();
    joined(&open, "  ")
}

/// Formats the outcomes of the newest fires: `created t9 (2m ago)`, `failed (2m ago), 3 in a row: the name is taken`,
/// `retrying (2m ago), tried 2 times: no such file`.
fn last(fires: &[Fire], times: &Times) -> Option<String> {
    let newest = fires.first()?;
    let outcome = &newest.outcome;
    let since = times.text(&newest.time);
    let why = newest.text.as_ref().map(|why| format!(": {why}"));
    if let ("pending", Some(why)) = (outcome.as_str(), &why) {
        let tries = counted(newest.attempts.into(), "time");
        return Some(format!("retrying ({since}), tried {tries}{why}"));
    }
    if outcome != "failed" {
        let task = newest.task.as_ref().map(|task| format!(" {task}"));
        return Some(format!(
            "{}{} ({since})",
            shown_outcome(outcome),
            task.unwrap_or_default()
        ));
    }
    let row = fires.iter().take_while(|fire| fire.outcome == "failed").count();
    let more = if row == fires.len() && row >= LAST_MAX {
        " or more"
    } else {
        ""
    };
    Some(format!(
        "failed ({since}), {row}{more} in a row{}",
        why.unwrap_or_default()
    ))
}

/// Formats a schedule as a card.
pub(super) fn card(ahead: &ScheduleAhead, times: &Times) -> Card {
    let schedule = &ahead.schedule;
    let jitter = Some(schedule.jitter.as_str()).filter(|jitter| *jitter != "0s");
    let zone = schedule.zone.as_deref().unwrap_or_default();
    let exact = |at: &str| match beside(at, zone) {
        Some(local) => format!("{}  {local}", at.replace(".000Z", "Z")),
        None => at.replace(".000Z", "Z"),
    };
    let paused = if schedule.paused { "paused" } else { "" };
    let mut card = Card::new()
        .title(address(schedule), Tone::Strong)
        .title(&schedule.id, Tone::Plain)
        .title(paused, Tone::Dim)
        .line("when", when(schedule))
        .maybe("start", schedule.start.as_deref().map(exact))
        .maybe("end", schedule.end.as_deref().map(exact))
        .maybe("jitter", jitter)
        .line("overlap", &schedule.overlap)
        .line("missed", &schedule.missed)
        .maybe("trouble", schedule.trouble.as_deref())
        .maybe("fires", open(ahead));
    let when_next = if paused.is_empty() { "next" } else { "if resumed" };
    for at in &ahead.next_fires {
        card = card.line(when_next, format!("{} ({})", exact(at), times.text(at)));
    }
    card.maybe("task", schedule.task.as_ref().map(|task| task.get()))
        .line("created by", &schedule.created_by)
        .line("revision", schedule.revision.to_string())
        .time("updated", Some(&schedule.updated_at), times)
}

/// Lists fires of a schedule.
pub(super) async fn fires(args: &FiresArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let place = place(&link, &args.schedule).await?;
    let path = format!("{place}/fires");
    let request = Request::get(&path).query_option("outcome", args.outcome.as_ref().map(word));
    let listed = link.list(request, Some(&args.paging)).await?;
    let schedule = of(&link, &place).await?;
    let things = zoned(listed.things::<Fire>()?, schedule.zone);
    link.show_list(&FIRES, &listed, &things)
}

/// Fetches the schedule, for commands that show times in its zone.
async fn of(link: &Link<'_>, place: &str) -> Result<Schedule, Fault> {
    match link.look.form.is_for_people() {
        true => Ok(link.get(place).await?.read()?),
        false => Ok(Schedule::default()),
    }
}

/// Lists the next fires.
pub(super) async fn next(args: &NextArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let place = place(&link, &args.schedule).await?;
    let path = format!("{place}/next");
    let listed = link
        .list(Request::get(&path).query("count", args.count), None)
        .await?;
    let schedule = of(&link, &place).await?;
    if schedule.paused {
        link.say("paused: none of these fires before `windrow schedule resume`");
    }
    let at = |time| Fire {
        time,
        ..Fire::default()
    };
    let things = zoned(listed.things()?.into_iter().map(at), schedule.zone);
    link.show_list(&NEXT, &listed, &things)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::times::TimeStyle;

    fn fire(time: &str, outcome: &str) -> Fire {
        Fire {
            time: time.to_owned(),
            outcome: outcome.to_owned(),
            ..Fire::default()
        }
    }

    #[test]
    fn when_it_fires_is_told_in_a_few_words() {
        let every = Schedule {
            every: Some("30m".to_owned()),
            ..Schedule::default()
        };
        assert_eq!(when(&every), "every 30m");
        let cron = Schedule {
            cron: Some("0 3 * * *".to_owned()),
            zone: Some("Europe/Berlin".to_owned()),
            ..Schedule::default()
        };
        assert_eq!(when(&cron), "0 3 * * * Europe/Berlin");
    }

    #[test]
    fn a_time_is_shown_with_the_clocks_of_the_schedule_s_zone() {
        let times = Times {
            style: TimeStyle::Utc,
            now_ms: 0,
        };
        let shown = |zone: Option<&str>| {
            let fires = zoned(
                [fire("2026-01-05T02:00:00.000Z", "made")],
                zone.map(str::to_owned),
            );
            time_cell(&fires[0], &times)
        };
        let cell = shown(Some("Europe/Berlin"));
        assert_eq!(cell.text, "2026-01-05T02:00:00Z (Mon 03:00 CET)");
        assert_eq!(cell.plain.as_deref(), Some("2026-01-05T02:00:00.000Z"));
        for zone in [Some("UTC"), None] {
            assert_eq!(shown(zone).text, "2026-01-05T02:00:00.000Z");
        }
    }

    #[test]
    fn a_schedule_whose_last_fire_is_in_trouble_is_marked() {
        let times = Times {
            style: TimeStyle::Utc,
            now_ms: 0,
        };
        let cell = |outcome: &str, trouble: Option<&str>| {
            let schedule = Schedule {
                last_fire: Some(fire("2026-01-05T02:00:00.000Z", outcome)),
                trouble: trouble.map(str::to_owned),
                ..Schedule::default()
            };
            last_cell(&schedule, &times)
        };
        assert_eq!(cell("made", None).tone, Tone::Plain);
        assert_eq!(cell("made", Some("t9 is failing")).tone, Tone::Bad);
        let again = cell("pending", Some("no such file"));
        assert!(
            again.text.starts_with("retrying (") && again.tone == Tone::Bad,
            "{again:?}"
        );
        assert_eq!(last_cell(&Schedule::default(), &times), Cell::nothing());
    }

    #[test]
    fn a_schedule_whose_fires_fail_says_how_many_in_a_row_and_why() {
        let times = Times {
            style: TimeStyle::Utc,
            now_ms: 0,
        };
        let fire = |outcome: &str| Fire {
            task: Some("t9".to_owned()),
            text: Some("the name is taken".to_owned()),
            ..fire("2026-01-02T03:00:00.000Z", outcome)
        };
        let said = |fires: &[Fire]| last(fires, &times);
        assert_eq!(said(&[]), None);
        let failing =
            said(&[fire("failed"), fire("failed"), fire("made"), fire("failed")]).expect("it fired");
        assert!(
            failing.starts_with("failed (") && failing.ends_with("), 2 in a row: the name is taken"),
            "{failing}"
        );
        let well = said(&[fire("made"), fire("failed")]).expect("it fired");
        assert!(well.starts_with("created t9 ("), "{well}");
        let mut again = fire("pending");
        again.attempts = 2;
        let again = said(&[again]).expect("it fired");
        assert!(
            again.starts_with("retrying (") && again.ends_with("), tried 2 times: the name is taken"),
            "{again}"
        );
        let always = vec![fire("failed"); LAST_MAX];
        assert!(said(&always).is_some_and(|text| text.contains(", 20 or more in a row: ")));
    }
}
