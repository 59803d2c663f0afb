//! `windrow task report`.

use serde_json::Value;

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link};
use crate::output::screen;
use crate::output::table::times::Times;
use crate::output::table::{Card, Tone, human};
use crate::task::args::look::{ReportArgs, ReportForm};
use crate::task::look::failures::origin;
use crate::task::wait::until::seconds;
use crate::task::watch::who;
use crate::task::words;
use windrow_client::{Request, segment};

/// The terms that add up to the total.
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
    let word = if form == ReportForm::Markdown {
        "markdown"
    } else {
        "json"
    };
    let request = Request::get(&format!("/v1/tasks/{}/report", segment(&id))).query("format", word);
    let answer = link.send(request).await?;
    match form {
        ReportForm::Json | ReportForm::Markdown => screen::put(&answer.text())?,
        ReportForm::Text => {
            let story: Value = answer.json()?;
            screen::put(&card(&story, &link.times(&answer)).text(link.look.paper))?;
        }
    }
    Ok(Exit::Ok)
}

fn card(story: &Value, times: &Times) -> Card {
    let task = &story["task"];
    let text = |name: &str| task[name].as_str();
    let (status, tone) = words::status(task);
    let took = task["took_seconds"]
        .as_f64()
        .and_then(|took| std::time::Duration::try_from_secs_f64(took).ok());
    let mut card = Card::new()
        .title(words::address(task), Tone::Strong)
        .title(text("id").unwrap_or_default(), Tone::Plain)
        .title(status, tone)
        .maybe(
            "because",
            text("status_text").map(|text| times.style.within(text)),
        )
        .line("items", counts(&story["counts"]))
        .maybe("took", took.map(seconds));
    for (label, name) in [
        ("created", "created_at"),
        ("started", "started_at"),
        ("finished", "finished_at"),
    ] {
        card = card.maybe(label, text(name).map(|at| times.text(at)));
    }
    for group in each(story, "failures") {
        let count = human::count(group["count"].as_u64().unwrap_or(0));
        let (code, example) = (group["code"].as_str(), group["example"].as_str());
        let line = format!(
            "{} ×{count}   #{}{} {}{}",
            code.unwrap_or_default(),
            group["example_index"],
            origin(group, "example_origin"),
            example.unwrap_or_default(),
            who(&group["example_data"])
        );
        card = card.toned("failure", line, Tone::Bad);
    }
    for redrive in each(story, "redrives") {
        let id = redrive["id"].as_str().unwrap_or_default();
        card = card.line(
            "redrive",
            format!(
                "{id}  {}   {}",
                words::status(redrive).0,
                counts(&redrive["counts"])
            ),
        );
    }
    card = card
        .line("net", net(&story["net"]))
        .line("runs", each(story, "runs").count().to_string());
    for entry in each(story, "timeline") {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        let reason = entry["reason"]
            .as_str()
            .map(|reason| format!("   {reason}"))
            .unwrap_or_default();
        card = card.line(
            &times.text(text("at")),
            format!("{}  {}{reason}", text("actor"), text("action")),
        );
    }
    proof(card, &story["proof"])
}

fn each<'a>(story: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    story[name].as_array().into_iter().flatten()
}

fn counts(counts: &Value) -> String {
    let terms = TERMS
        .iter()
        .filter_map(|name| Some((name, counts[*name].as_u64()?)));
    let terms =
        terms.filter(|(name, count)| *count > 0 || ["total", "succeeded", "abandoned"].contains(name));
    let terms = terms.map(|(name, count)| format!("{} {}", name.replace('_', " "), human::count(count)));
    terms.collect::<Vec<_>>().join("  ")
}

fn net(net: &Value) -> String {
    let count = |name: &str| human::count(net[name].as_u64().unwrap_or(0));
    let shared = if net["exact"] == false {
        " or more (too many to look at each)"
    } else {
        ""
    };
    format!(
        "abandoned {}  made good {}  still failed {}{shared}",
        count("abandoned"),
        count("made_good"),
        count("still_failed")
    )
}

fn proof(card: Card, proof: &Value) -> Card {
    let (word, tone) = match proof["holds"].as_bool() {
        Some(true) => ("✓ every item is accounted for", Tone::Good),
        _ => ("✗ not (yet) every item is accounted for", Tone::Warn),
    };
    let mut card = card.toned("proof", word, tone);
    for check in each(proof, "checks") {
        let text = |name: &str| check[name].as_str().unwrap_or_default();
        let sign = if check["holds"] == true { '✓' } else { '✗' };
        card = card.line("", format!("{sign} {}: {}", text("claim"), text("evidence")));
    }
    card.maybe("limit", proof["limit"].as_str())
}
