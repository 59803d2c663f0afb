//! `windrow task report`.

use std::time::Duration;

use serde_json::Value;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link};
use crate::output::body::{list, number, text};
use crate::output::screen;
use crate::output::table::human::seconds;
use crate::output::table::times::Times;
use crate::output::table::{Card, Tone, human};
use crate::shell::Shell;
use crate::task::args::look::{ReportArgs, ReportForm};
use crate::task::look::failures;
use crate::task::make::redrive::at_least;
use crate::task::words;
use windrow_client::Request;

/// The total, and the terms that add up to it.
const TERMS: [&str; 8] = [
    "total",
    "succeeded",
    "skipped",
    "abandoned",
    "parked",
    "in_flight",
    "pending",
    "excluded",
];
/// Those that are named only where they are there.
const RARE: [&str; 5] = ["skipped", "parked", "in_flight", "pending", "excluded"];

/// Tells the whole story of a task.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn report(args: &ReportArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let by_output = match link.look.form {
        Form::Json | Form::Ndjson => ReportForm::Json,
        Form::Table | Form::Wide => ReportForm::Text,
        Form::Name | Form::Csv => {
            let hint =
                "-o table, -o json or --format markdown; `windrow task failures -o csv` lists failures";
            return Err(Fault::no_form("a report is no list", hint));
        }
    };
    let id = link.task(&args.task).await?;
    let form = args.format.unwrap_or(by_output);
    let format = if form == ReportForm::Markdown {
        "markdown"
    } else {
        "json"
    };
    let request = Request::get(&format!("/v1/tasks/{id}/report")).query("format", format);
    let answer = link.send(request).await?;
    screen::put(&match form {
        ReportForm::Json | ReportForm::Markdown => answer.text(),
        ReportForm::Text => card(&answer.json()?, &link.times(&answer)).text(link.look.paper),
    })?;
    Ok(Exit::Ok)
}

/// What redrives made of a task's failures, and which they are; none where there are none.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn redriven(link: &Link<'_>, id: &str) -> Result<Option<String>, Fault> {
    let one = Request::get("/v1/tasks").query("parent", id).query("limit", 1);
    if link.list(one, None).await?.things()?.is_empty() {
        return Ok(None);
    }
    let story = link.get(&format!("/v1/tasks/{id}/report")).await?.json()?;
    let ids: Vec<&str> = list(&story["redrives"])
        .iter()
        .map(|task| text(&task["id"]))
        .collect();
    Ok((!ids.is_empty()).then(|| format!("{}   ({})", net(&story["net"]), ids.join(", "))))
}

fn card(story: &Value, times: &Times) -> Card {
    let task = &story["task"];
    let (status, tone) = words::status(&judged(story));
    let because = task["status_text"].as_str().map(|text| times.style.within(text));
    let took = task["took_seconds"].as_f64();
    let took = took.and_then(|took| Duration::try_from_secs_f64(took).ok());
    let mut card = Card::new()
        .title(words::address(task), Tone::Strong)
        .title(text(&task["id"]), Tone::Plain)
        .title(status, tone)
        .maybe("because", because)
        .line("items", counts(&story["counts"]))
        .maybe("took", took.map(seconds))
        .time("created", &task["created_at"], times)
        .time("started", &task["started_at"], times)
        .time("finished", &task["finished_at"], times);
    for group in list(&story["failures"]) {
        card = card.toned("failure", failures::group(group), Tone::Bad);
    }
    for redrive in list(&story["redrives"]) {
        let (id, status) = (text(&redrive["id"]), words::status(redrive).0);
        card = card.line(
            "redrive",
            format!("{id}  {status}   {}", counts(&redrive["counts"])),
        );
    }
    card = card
        .line("net", net(&story["net"]))
        .line("runs", list(&story["runs"]).len().to_string());
    for entry in list(&story["timeline"]) {
        let reason = entry["reason"].as_str().map(|reason| format!("   {reason}"));
        let who = format!("{}  {}", text(&entry["actor"]), text(&entry["action"]));
        card = card.line(&times.text(text(&entry["at"])), who + &reason.unwrap_or_default());
    }
    proof(card, &story["proof"])
}

/// The task of a report as it is elsewhere: with its counts, and with what its redrives made good, where it has any.
fn judged(story: &Value) -> Value {
    let mut task = story["task"].clone();
    task["counts"] = story["counts"].clone();
    if !list(&story["redrives"]).is_empty() {
        task["redriven"] = story["net"].clone();
    }
    task
}

fn counts(counts: &Value) -> String {
    words::counts(counts, &TERMS, &RARE)
}

fn net(net: &Value) -> String {
    let [abandoned, made_good, still_failed] =
        ["abandoned", "made_good", "still_failed"].map(|name| human::count(number(&net[name])));
    let at_least = at_least(net);
    format!("abandoned {abandoned}  made good {made_good}  still failed {still_failed}{at_least}")
}

fn proof(card: Card, proof: &Value) -> Card {
    let (word, tone) = match proof["holds"] == true {
        true => ("✓ every item is accounted for", Tone::Good),
        false => ("✗ not (yet) every item is accounted for", Tone::Warn),
    };
    let mut card = card.toned("proof", word, tone);
    for check in list(&proof["checks"]) {
        let sign = if check["holds"] == true { '✓' } else { '✗' };
        let (claim, evidence) = (text(&check["claim"]), text(&check["evidence"]));
        card = card.line("", format!("{sign} {claim}: {evidence}"));
    }
    card.maybe("limit", proof["limit"].as_str())
}
