//! Schedules and fires, looked at.

use serde_json::{Value, json};

use super::args::{FiresArgs, ListArgs, NextArgs, OneArgs};
use super::{address, place};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, word};
use crate::output::body::{joined, list as items, number, text};
use crate::output::shell_word;
use crate::output::table::human::counted;
use crate::output::table::times::{Times, parsed};
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone, clean};
use crate::shell::Shell;
use windrow_client::Request;
use windrow_core::ids::WallMs;
use windrow_core::schedule::cron::in_zone;

/// So many of the newest fires are looked at for how a schedule fares.
const LAST_MAX: usize = 20;

/// Schedules.
pub(super) const SCHEDULES: Listing = Listing {
    columns: &[
        Column::text("ID", Keep::Always, 2, "id").tone(Tone::Strong),
        Column::new("SCHEDULE", Side::Left, Keep::Always, 10, |schedule, _| {
            Cell::new(address(schedule))
        }),
        Column::new("WHEN", Side::Left, Keep::Always, 8, |schedule, _| {
            Cell::new(when(schedule))
        }),
        Column::new("NEXT", Side::Left, Keep::Always, 6, next_cell),
        Column::text("OVERLAP", Keep::Rank(40), 5, "overlap"),
        Column::text("MISSED", Keep::Rank(20), 5, "missed"),
        Column::new("LAST", Side::Left, Keep::Rank(60), 8, last_cell).named("last"),
        Column::plain("REVISION", Keep::Wide, 3, "revision"),
        Column::time("UPDATED", Keep::Wide, "updated_at"),
    ],
    name: |schedule| text(&schedule["id"]).to_owned(),
    none: "no schedules",
};

/// Fires.
pub(super) const FIRES: Listing = Listing {
    columns: &[
        Column::new("TIME", Side::Left, Keep::Always, 20, time_cell).named("time"),
        Column::new("OUTCOME", Side::Left, Keep::Always, 7, outcome),
        Column::text("TASK", Keep::Always, 3, "task"),
        Column::text("NAME", Keep::Wide, 8, "name"),
        Column::plain("FIRES", Keep::Rank(50), 3, "count"),
        Column::text("KIND", Keep::Rank(30), 6, "kind"),
        Column::time("DECIDED", Keep::Rank(20), "decided_at"),
        Column::time("SETTLED", Keep::Wide, "settled_at"),
        Column::text("LAST", Keep::Wide, 20, "last"),
        Column::text("WHY", Keep::Rank(60), 10, "text"),
    ],
    name: |fire| text(&fire["time"]).to_owned(),
    none: "it has not fired yet",
};

/// Fires that would be ordered.
pub(super) const ORDERED: Listing = Listing {
    columns: &[
        Column::new("TIME", Side::Left, Keep::Always, 20, time_cell).named("time"),
        Column::text("TASK'S NAME", Keep::Always, 8, "name"),
        Column::new("OUTCOME", Side::Left, Keep::Rank(50), 7, outcome),
    ],
    name: |fire| text(&fire["time"]).to_owned(),
    none: "none: those times have their fires",
};

/// Times to come.
const NEXT: Listing = Listing {
    columns: &[
        Column::new("TIME", Side::Left, Keep::Always, 20, time_cell).named("time"),
        Column::time("FROM NOW", Keep::Always, "time").named("from_now"),
    ],
    name: |fire| text(&fire["time"]).to_owned(),
    none: "it fires no more",
};

/// `2026-01-05T02:00:00Z (Mon 03:00 CET)`, whose day says where it is another date: with the clocks of the schedule's zone, where those are others.
fn time_cell(fire: &Value, _: &Times) -> Cell {
    let at = text(&fire["time"]);
    let cell = match fire["zone"].as_str().and_then(|zone| beside(at, zone)) {
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

/// What clocks of a zone show at a time of the API; none in UTC, where they show the same.
fn beside(at: &str, zone: &str) -> Option<String> {
    let time = parsed(at).filter(|_| zone != "UTC")?;
    in_zone(WallMs(time.timestamp_millis()), zone)
}

/// Things that have a `time`, with the zone of their schedule beside it.
pub(super) fn zoned(mut things: Vec<Value>, schedule: &Value) -> Vec<Value> {
    for thing in things.iter_mut().filter_map(Value::as_object_mut) {
        thing.insert("zone".to_owned(), schedule["zone"].clone());
    }
    things
}

/// `made (2m ago)`, `failed (2h ago)`: what its last fire came to.
fn last_cell(schedule: &Value, times: &Times) -> Cell {
    let fire = &schedule["last_fire"];
    let Some(word) = last_word(fire) else {
        return Cell::nothing();
    };
    let since = times.text(text(&fire["time"]));
    let tone = if schedule["trouble"].is_string() {
        Tone::Bad
    } else {
        Tone::Plain
    };
    Cell::new(format!("{word} ({since})"))
        .short(word)
        .plain(word)
        .tone(tone)
}

/// A fire that is tried again is in trouble, whatever will come of it.
fn last_word(fire: &Value) -> Option<&str> {
    let outcome = fire["outcome"].as_str()?;
    Some(if outcome == "pending" { "retrying" } else { outcome })
}

fn outcome(fire: &Value, _: &Times) -> Cell {
    let cell = Cell::member(fire, "outcome");
    match text(&fire["outcome"]) {
        "made" => cell.tone(Tone::Good),
        "missed" | "failed" => cell.tone(Tone::Bad),
        _ => cell,
    }
}

/// `every 30m`, or `0 3 * * * Europe/Berlin`.
pub(super) fn when(schedule: &Value) -> String {
    match schedule["every"].as_str() {
        Some(every) => format!("every {every}"),
        None => format!("{} {}", text(&schedule["cron"]), text(&schedule["zone"])),
    }
}

fn next_cell(schedule: &Value, times: &Times) -> Cell {
    match (schedule["paused"] == true, schedule["next_fire"].is_null()) {
        (true, _) => Cell::new("paused").tone(Tone::Dim),
        (false, true) => Cell::new("over").tone(Tone::Dim),
        (false, false) => Cell::time(schedule, "next_fire", times),
    }
}

/// Lists schedules.
pub(super) async fn list(args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.pages.remote, shell)?;
    let request = Request::get("/v1/schedules").query_option("business", args.business.as_ref());
    let listed = link.list(request, Some(&args.pages.paging)).await?;
    let things = listed.things()?;
    if things.is_empty() {
        link.is_business(args.business.as_deref()).await?;
    }
    let exit = link.show_list(&SCHEDULES, &listed, &things)?;
    for schedule in &things {
        let Some(trouble) = schedule["trouble"].as_str().map(clean) else {
            continue;
        };
        let (fire, address) = (&schedule["last_fire"], address(schedule));
        let gives_up = match fire["outcome"] == "pending" {
            true => format!("; windrow schedule skip {} gives it up", shell_word(&address)),
            false => String::new(),
        };
        link.hint(&format!(
            "{address}: {trouble}; windrow schedule fires {}{gives_up}",
            shell_word(&address)
        ));
    }
    Ok(exit)
}

/// Shows a schedule.
pub(super) async fn show(args: &OneArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let path = place(&link, &args.schedule).await?;
    let answer = link.get(&path).await?;
    let fires = match link.look.form.is_for_people() {
        true => {
            let newest = Request::get(&format!("{path}/fires")).query("limit", LAST_MAX);
            link.send(newest).await?.json()?
        }
        false => Value::Null,
    };
    let exit = link.show_one(&SCHEDULES, &answer, |schedule, times| {
        card(schedule, times).maybe("last", last(items(&fires["items"]), times))
    })?;
    let schedule: Value = answer.json()?;
    if open(&schedule).is_some() {
        let address = address(&schedule);
        link.hint(&format!(
            "windrow schedule skip {} gives up what is pending or queued",
            shell_word(&address)
        ));
    }
    Ok(exit)
}

/// `1 pending (being made, or tried again)  2 queued (until nothing of it runs)`
fn open(schedule: &Value) -> Option<String> {
    let open = [
        ("pending", "being made, or tried again"),
        ("queued", "until nothing of it runs"),
    ];
    let open = open.map(|(what, meaning)| (number(&schedule[what]), what, meaning));
    let open: Vec<String> = open
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, what, meaning)| format!("{count} {what} ({meaning})"))
        .collect();
    joined(&open, "  ")
}

/// What its newest fires came to: `made t9 (2m ago)`, `failed (2m ago), 3 in a row: the name is taken`, `retrying (2m ago), tried
/// 2 times: no such file`.
fn last(fires: &[Value], times: &Times) -> Option<String> {
    let newest = fires.first()?;
    let outcome = text(&newest["outcome"]);
    let since = times.text(text(&newest["time"]));
    let why = newest["text"].as_str().map(|why| format!(": {why}"));
    if let (Some("retrying"), Some(why)) = (last_word(newest), &why) {
        let tries = counted(number(&newest["attempts"]), "time");
        return Some(format!("retrying ({since}), tried {tries}{why}"));
    }
    if outcome != "failed" {
        let task = newest["task"].as_str().map(|task| format!(" {task}"));
        return Some(format!("{outcome}{} ({since})", task.unwrap_or_default()));
    }
    let row = fires
        .iter()
        .take_while(|fire| fire["outcome"] == "failed")
        .count();
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

/// A schedule for people.
pub(super) fn card(schedule: &Value, times: &Times) -> Card {
    let jitter = schedule["jitter"].as_str().filter(|jitter| *jitter != "0s");
    let next = items(&schedule["next_fires"]).iter().map(text);
    let zone = text(&schedule["zone"]);
    let exact = |at: &str| match beside(at, zone) {
        Some(local) => format!("{}  {local}", at.replace(".000Z", "Z")),
        None => at.replace(".000Z", "Z"),
    };
    let next: Vec<String> = next
        .map(|at| format!("{} ({})", exact(at), times.text(at)))
        .collect();
    let bound = |member: &str| schedule[member].as_str().map(exact);
    let paused = if schedule["paused"] == true { "paused" } else { "" };
    let mut card = Card::new()
        .title(address(schedule), Tone::Strong)
        .title(text(&schedule["id"]), Tone::Plain)
        .title(paused, Tone::Dim)
        .line("when", when(schedule))
        .maybe("start", bound("start"))
        .maybe("end", bound("end"))
        .maybe("jitter", jitter)
        .line("overlap", text(&schedule["overlap"]))
        .line("missed", text(&schedule["missed"]))
        .maybe("trouble", schedule["trouble"].as_str())
        .maybe("fires", open(schedule));
    let when_next = if paused.is_empty() { "next" } else { "if resumed" };
    for at in next {
        card = card.line(when_next, at);
    }
    card.line("task", schedule["task"].to_string())
        .maybe("made by", schedule["created_by"].as_str())
        .line("revision", schedule["revision"].to_string())
        .time("updated", &schedule["updated_at"], times)
}

/// Lists fires.
pub(super) async fn fires(args: &FiresArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let place = place(&link, &args.schedule).await?;
    let path = format!("{place}/fires");
    let request = Request::get(&path).query_option("outcome", args.outcome.as_ref().map(word));
    let listed = link.list(request, Some(&args.paging)).await?;
    let things = zoned(listed.things()?, &of(&link, &place).await?);
    link.show_list(&FIRES, &listed, &things)
}

/// The schedule, where people see times in its zone.
pub(super) async fn of(link: &Link<'_>, place: &str) -> Result<Value, Fault> {
    match link.look.form.is_for_people() {
        true => Ok(link.get(place).await?.json()?),
        false => Ok(Value::Null),
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
    let things: Vec<Value> = listed
        .things()?
        .into_iter()
        .map(|at| json!({ "time": at }))
        .collect();
    let schedule = of(&link, &place).await?;
    if schedule["paused"] == true {
        link.say("paused: none of these happens before `windrow schedule resume`");
    }
    let things = zoned(things, &schedule);
    link.show_list(&NEXT, &listed, &things)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::times::TimeStyle;

    #[test]
    fn when_it_fires_is_told_in_a_few_words() {
        assert_eq!(when(&json!({"every": "30m", "cron": null})), "every 30m");
        let cron = json!({"every": null, "cron": "0 3 * * *", "zone": "Europe/Berlin"});
        assert_eq!(when(&cron), "0 3 * * * Europe/Berlin");
    }

    #[test]
    fn a_time_is_shown_with_the_clocks_of_the_schedule_s_zone() {
        let times = Times {
            style: TimeStyle::Utc,
            now_ms: 0,
        };
        let fire = |zone: Value| json!({"time": "2026-01-05T02:00:00.000Z", "zone": zone});
        let cell = time_cell(&fire(json!("Europe/Berlin")), &times);
        assert_eq!(cell.text, "2026-01-05T02:00:00Z (Mon 03:00 CET)");
        assert_eq!(cell.plain.as_deref(), Some("2026-01-05T02:00:00.000Z"));
        for zone in [json!("UTC"), Value::Null] {
            assert_eq!(time_cell(&fire(zone), &times).text, "2026-01-05T02:00:00.000Z");
        }
    }

    #[test]
    fn a_schedule_whose_last_fire_is_in_trouble_is_marked() {
        let times = Times {
            style: TimeStyle::Utc,
            now_ms: 0,
        };
        let cell = |outcome: &str, trouble: Option<&str>| {
            let fire = json!({"time": "2026-01-05T02:00:00.000Z", "outcome": outcome});
            last_cell(&json!({ "last_fire": fire, "trouble": trouble }), &times)
        };
        assert_eq!(cell("made", None).tone, Tone::Plain);
        assert_eq!(cell("made", Some("t9 is failing")).tone, Tone::Bad);
        let again = cell("pending", Some("no such file"));
        assert!(
            again.text.starts_with("retrying (") && again.tone == Tone::Bad,
            "{again:?}"
        );
        assert_eq!(last_cell(&json!({"last_fire": null}), &times), Cell::nothing());
    }

    #[test]
    fn a_schedule_whose_fires_fail_says_how_many_in_a_row_and_why() {
        let times = Times {
            style: TimeStyle::Utc,
            now_ms: 0,
        };
        let fire = |outcome: &str| {
            let time = "2026-01-02T03:00:00.000Z";
            json!({"time": time, "outcome": outcome, "task": "t9", "text": "the name is taken"})
        };
        let said = |fires: &[Value]| last(fires, &times);
        assert_eq!(said(&[]), None);
        let failing =
            said(&[fire("failed"), fire("failed"), fire("made"), fire("failed")]).expect("it fired");
        assert!(
            failing.starts_with("failed (") && failing.ends_with("), 2 in a row: the name is taken"),
            "{failing}"
        );
        let well = said(&[fire("made"), fire("failed")]).expect("it fired");
        assert!(well.starts_with("made t9 ("), "{well}");
        let mut again = fire("pending");
        again["attempts"] = json!(2);
        let again = said(&[again]).expect("it fired");
        assert!(
            again.starts_with("retrying (") && again.ends_with("), tried 2 times: the name is taken"),
            "{again}"
        );
        let always = vec![fire("failed"); LAST_MAX];
        assert!(said(&always).is_some_and(|text| text.contains(", 20 or more in a row: ")));
    }
}
