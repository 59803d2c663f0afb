//! `windrow task show`.

use serde_json::Value;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::body::{joined, labels, list, number, shown, text, texts};
use crate::output::table::times::Times;
use crate::output::table::{Card, Tone, human};
use crate::shell::Shell;
use crate::task::args::ShowArgs;
use crate::task::look::columns::TASKS;
use crate::task::look::failures;
use crate::task::make::warnings;
use crate::task::words;

/// Settings, in the order of `config.toml`.
const SETTINGS: [&str; 8] = [
    "rate",
    "burst",
    "concurrency",
    "window",
    "batch",
    "timeout",
    "error_budget",
    "ordered",
];
/// Shards on lines of their own.
const SHARDS_SHOWN: usize = 16;
/// Failures, by code, that are named.
const FAILURES_SHOWN: usize = 5;
/// Characters of the items that people want skipped.
const INDEXES_SHOWN: usize = 60;
/// Cells of the bar.
const BAR_CELLS: usize = 40;

/// Shows a task.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn show(args: &ShowArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let answer = link.get(&format!("/v1/tasks/{id}")).await?;
    if args.web {
        let page = format!("{}/tasks/{id}\n", link.client.server());
        return link.put(page.as_bytes());
    }
    let failures = match link.look.form.is_for_people() && words::has_failures(&answer.json()?) {
        true => failures::told(&link, &id).await?,
        false => Vec::new(),
    };
    let net = match failures.is_empty() {
        true => None,
        false => failures::redriven_for_people(&link, &id).await?,
    };
    link.show_one(&TASKS, &answer, |task, times| {
        let shown = failures.iter().take(FAILURES_SHOWN);
        let card = shown.fold(card(task, times), |card, failure| {
            card.toned("failure", failure, Tone::Bad)
        });
        card.maybe("redriven", net.as_deref())
    })
}

/// A task for people.
pub(crate) fn card(task: &Value, times: &Times) -> Card {
    let id = text(&task["id"]);
    let (status, tone) = words::status_at(task, times);
    let bar = words::bar(task, BAR_CELLS);
    let progress = format!("{bar} {}   {}", words::percent(task), words::done_of(task));
    let mut card = Card::new()
        .title(words::address(task), Tone::Strong)
        .title(id, Tone::Plain)
        .title(status, tone)
        .maybe("because", because(task, times))
        .time("since", &task["since"], times)
        .maybe("next", next(task, times))
        .line("progress", progress)
        .line(
            "items",
            words::counts(&task["counts"], &words::TERMS, &words::RARE),
        )
        .maybe("canary", canary(task))
        .maybe("skipped", skips(task))
        .maybe("pace", words::rate(task, times).map(|rate| pace(task, &rate)))
        .maybe("nodes", nodes(task))
        .line("window", window(task))
        .line("settings", settings(task))
        .line("source", source(&task["source"]))
        .maybe("params", params(task))
        .maybe("labels", labels(&task["labels"]));
    for (label, shard) in shards(task, times) {
        card = card.line(label, shard);
    }
    card = card
        .maybe("publishes", publishes(task))
        .maybe("parent", task["parent"].as_str())
        .maybe("schedule", fire(task))
        .maybe("pool", task["pool"].as_str())
        .maybe("limits", joined(&texts(&task["limits"]), "  "))
        .time("created", &task["created_at"], times)
        .time("not before", &task["start_at"], times)
        .time("started", &task["started_at"], times)
        .time("deadline", &task["deadline"], times)
        .time("finished", &task["finished_at"], times);
    let warnings = warnings::lines(task, id, times.style).into_iter();
    warnings.fold(card, |card, warning| card.line("warning", warning))
}

/// `generation 3 of board`, and that it came to nothing.
fn publishes(task: &Value) -> Option<String> {
    let publish = &task["publish"];
    let generation = format!(
        "generation {} of {}",
        publish["generation"],
        publish["dataset"].as_str()?
    );
    Some(match publish["withheld"] == true {
        true => format!(
            "{generation}: withheld (`windrow dataset generations {}` says why)",
            text(&publish["dataset"])
        ),
        false => generation,
    })
}

/// `s7 for 2026-11-20T17:00:00.000Z`: the fire that made it.
fn fire(task: &Value) -> Option<String> {
    let (schedule, time) = (task["schedule"].as_str()?, task["fire_time"].as_str()?);
    Some(format!("{schedule} for {time}"))
}

/// `20 items, then continue`
fn canary(task: &Value) -> Option<String> {
    let canary = &task["canary"];
    let items = human::counted(canary["items"].as_u64()?, "item");
    Some(format!("{items} first, then {}", text(&canary["then"])))
}

/// `5-9,12: 6 items, as people asked`
fn skips(task: &Value) -> Option<String> {
    let skips = &task["skips"];
    let indexes = skips["indexes"].as_str()?;
    let items = human::counted(number(&skips["items"]), "item");
    Some(format!("{items} as people asked: {}", shortened(indexes)))
}

/// As many of the ranges as a line takes.
fn shortened(indexes: &str) -> String {
    match indexes.char_indices().nth(INDEXES_SHOWN) {
        None => indexes.to_owned(),
        Some((at, _)) => format!("{}… (-o json shows all)", &indexes[..at]),
    }
}

fn params(task: &Value) -> Option<String> {
    let params = task.get("params").filter(|params| !params.is_null());
    params.map(Value::to_string)
}

fn because(task: &Value, times: &Times) -> Option<String> {
    task["status_text"].as_str().map(|text| times.style.within(text))
}

/// Each shard on a line of its own; a task of one has nothing to say here.
fn shards(task: &Value, times: &Times) -> Vec<(&'static str, String)> {
    let list = list(&task["shard_list"]);
    if list.len() < 2 {
        return Vec::new();
    }
    let silent = words::silent(task);
    let labels = std::iter::once("shards").chain(std::iter::repeat(""));
    let shown = list
        .iter()
        .take(SHARDS_SHOWN)
        .map(|shard| shard_line(shard, &silent, times));
    let more = list.len().saturating_sub(SHARDS_SHOWN);
    let more = (more > 0).then(|| format!("… and {more} more (-o json shows all)"));
    labels.zip(shown.chain(more)).collect()
}

fn shard_line(shard: &Value, silent: &[String], times: &Times) -> String {
    let count = |name: &str| number(&shard[name]);
    let at = shard["next_at"]
        .as_str()
        .map(|at| format!(" until {}", times.text(at)));
    let node = shard["node"].as_str().map(|node| {
        let silent = silent.iter().any(|one| one == node);
        format!(" on {node}{}", if silent { ", which gives no sign" } else { "" })
    });
    let share = shard["rate_share"].as_f64().filter(|share| *share > 0.0);
    let share = share.map(|share| format!("   {:.1} % of the rate", share * 100.0));
    format!(
        "{}  {}{}{}   {} of {}   low water {}{}",
        text(&shard["shard"]),
        text(&shard["state"]),
        node.unwrap_or_default(),
        at.unwrap_or_default(),
        human::count(count("settled")),
        human::count(count("end").saturating_sub(count("first"))),
        human::count(count("low_water")),
        share.unwrap_or_default()
    )
}

fn next(task: &Value, times: &Times) -> Option<String> {
    let next = &task["next"];
    Some(format!(
        "{} {}",
        next["action"].as_str()?,
        times.text(next["at"].as_str()?)
    ))
}

fn pace(task: &Value, rate: &str) -> String {
    let live = &task["live"];
    let parts = [
        Some(rate.to_owned()),
        joined(&words::silent(task), ", ").map(|nodes| format!("not known without {nodes}")),
        live["latency_p95_seconds"]
            .as_f64()
            .map(|p95| format!("p95 {:.0} ms", p95 * 1000.0)),
        words::eta_text(task).map(|eta| format!("ETA {eta}")),
        live["stall"]
            .as_str()
            .filter(|_| !words::waits_for_items(task))
            .map(|stall| format!("held by {}", stall.replace('_', " "))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("   ")
}

/// The nodes that run it, and those that can't be asked.
fn nodes(task: &Value) -> Option<String> {
    let live = &task["live"];
    let asked = joined(&texts(&live["nodes"]), ", ");
    let silent = list(&live["unreachable"]).iter();
    let silent = silent.map(|one| format!("{} is unreachable: {}", text(&one["node"]), text(&one["why"])));
    joined(&asked.into_iter().chain(silent).collect::<Vec<_>>(), "; ")
}

fn window(task: &Value) -> String {
    let live = &task["live"];
    let parts = [
        ("low water", &task["low_water"]),
        ("high water", &live["high_water"]),
        ("window", &live["window"]),
        ("concurrency", &live["concurrency"]),
    ];
    let parts = parts.map(|(name, value)| Some(format!("{name} {}", human::count(value.as_u64()?))));
    parts.into_iter().flatten().collect::<Vec<_>>().join("   ")
}

fn settings(task: &Value) -> String {
    let written = |name: &&str| match &task[*name] {
        Value::Null | Value::Bool(false) => None,
        value => Some(format!("{} {}", name.replace('_', " "), shown(value))),
    };
    let retries = ["max_attempts", "backoff"]
        .iter()
        .filter_map(|name| match &task["retry"][*name] {
            Value::Null => None,
            value => Some(format!("{} {}", name.replace('_', " "), shown(value))),
        });
    let all: Vec<String> = SETTINGS.iter().filter_map(written).chain(retries).collect();
    all.join("  ")
}

fn source(source: &Value) -> String {
    let members = source.as_object().into_iter().flatten();
    let members = members.filter(|(name, value)| *name != "type" && !value.is_null() && !value.is_array());
    let members = members.map(|(name, value)| format!("{name} {}", shown(value)));
    let kind = source["type"].as_str().unwrap_or("unknown").to_owned();
    std::iter::once(kind)
        .chain(members)
        .collect::<Vec<_>>()
        .join("  ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn retries_are_among_the_settings() {
        let task = json!({"rate": "5/s", "retry": {"max_attempts": 7, "backoff": "1s..60s x2", "on_exhausted": "abandon"}});
        assert_eq!(settings(&task), "rate 5/s  max attempts 7  backoff 1s..60s x2");
    }
}
