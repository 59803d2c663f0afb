//! `windrow task show`.

use serde_json::Value;

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::times::Times;
use crate::output::table::{Card, Tone, human};
use crate::task::args::ShowArgs;
use crate::task::look::columns::TASKS;
use crate::task::make::warnings;
use crate::task::words;
use windrow_client::segment;

/// The terms that add up to the total, in the order in which they are read.
pub(crate) const TERMS: [&str; 7] = [
    "succeeded",
    "skipped",
    "abandoned",
    "in_flight",
    "parked",
    "pending",
    "excluded",
];
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
/// Cells of the bar.
const BAR_CELLS: usize = 40;

/// Shows a task.
///
/// # Errors
/// As [`Link::send`].
pub(crate) async fn show(args: &ShowArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let answer = link.get(&format!("/v1/tasks/{}", segment(&id))).await?;
    link.show_one(&TASKS, &answer, card)
}

/// A task for people.
pub(crate) fn card(task: &Value, times: &Times) -> Card {
    let text = |name: &str| task[name].as_str();
    let (status, tone) = words::status_at(task, times);
    let (done, total) = words::done(task);
    let bar = words::bar(task, BAR_CELLS);
    let progress = format!(
        "{bar} {}   {} / {}",
        human::percent_text(done, total),
        human::count(done),
        human::count(total)
    );
    let mut card = Card::new()
        .title(words::address(task), Tone::Strong)
        .title(text("id").unwrap_or_default(), Tone::Plain)
        .title(status, tone)
        .maybe(
            "because",
            text("status_text").map(|text| times.style.within(text)),
        )
        .maybe("since", text("since").map(|at| times.text(at)))
        .maybe("next", next(task, times))
        .line("progress", progress)
        .line("items", counts(task))
        .maybe("pace", words::rate(task, times).map(|rate| pace(task, &rate)))
        .maybe("nodes", nodes(task))
        .line(
            "window",
            format!(
                "low water {}{}",
                human::count(task["low_water"].as_u64().unwrap_or(0)),
                live(task)
            ),
        )
        .line("settings", settings(task))
        .line("source", source(&task["source"]))
        .maybe(
            "params",
            task.get("params")
                .filter(|params| !params.is_null())
                .map(Value::to_string),
        )
        .maybe("labels", labels(task));
    for (label, text) in shards(task, times) {
        card = card.line(label, text);
    }
    for (label, said) in relations(task) {
        card = card.maybe(label, said);
    }
    for (label, name) in [
        ("created", "created_at"),
        ("not before", "start_at"),
        (started(task), if waited(task) { "" } else { "started_at" }),
        ("deadline", "deadline"),
        ("finished", "finished_at"),
    ] {
        card = card.maybe(label, text(name).map(|at| times.text(at)));
    }
    for warning in warnings::lines(task, text("id").unwrap_or_default(), times.style) {
        card = card.line("warning", warning);
    }
    card
}

/// Whether it was to begin only at a time, after somebody asked for its start: it has started at that time, which stands
/// there already.
fn waited(task: &Value) -> bool {
    let at = |name: &str| {
        task[name]
            .as_str()
            .and_then(|at| chrono::DateTime::parse_from_rfc3339(at).ok())
    };
    started(task) == "started"
        && at("start_at")
            .zip(at("started_at"))
            .is_some_and(|(first, asked)| first > asked)
}

/// What the time of its start is: of one that waits and has not run yet, only somebody's wish.
fn started(task: &Value) -> &'static str {
    let has_begun = task["status"] != "queued" || words::done(task).0 > 0;
    if has_begun { "started" } else { "asked to start" }
}

/// Each shard on a line of its own; a task of one has nothing to say here.
fn shards(task: &Value, times: &Times) -> Vec<(&'static str, String)> {
    let list = task["shard_list"].as_array().filter(|list| list.len() > 1);
    let Some(list) = list else { return Vec::new() };
    let labels = std::iter::once("shards").chain(std::iter::repeat(""));
    let shown = list
        .iter()
        .take(SHARDS_SHOWN)
        .map(|shard| shard_line(shard, times));
    let more = list.len().saturating_sub(SHARDS_SHOWN);
    let more = (more > 0).then(|| format!("… and {more} more (-o json shows all)"));
    labels.zip(shown.chain(more)).collect()
}

fn shard_line(shard: &Value, times: &Times) -> String {
    let number = |name: &str| shard[name].as_u64().unwrap_or(0);
    let text = |name: &str| shard[name].as_str();
    let (items, settled) = (number("end").saturating_sub(number("first")), number("settled"));
    let at = text("next_at")
        .map(|at| format!(" until {}", times.text(at)))
        .unwrap_or_default();
    let node = text("node").map(|node| format!(" on {node}")).unwrap_or_default();
    let share = shard["rate_share"].as_f64().filter(|share| *share > 0.0);
    let share = share
        .map(|share| format!("   {:.1} % of the rate", share * 100.0))
        .unwrap_or_default();
    format!(
        "{}  {}{node}{at}   {} of {}   low water {}{share}",
        text("shard").unwrap_or_default(),
        text("state").unwrap_or_default(),
        human::count(settled),
        human::count(items),
        human::count(number("low_water"))
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

/// The terms that add up to the total.
pub(crate) fn counts(task: &Value) -> String {
    let terms = TERMS
        .iter()
        .filter_map(|name| Some((name, task["counts"][*name].as_u64()?)));
    // What never happens in most tasks is named only where it did.
    let terms = terms.filter(|(name, number)| *number > 0 || !["parked", "excluded"].contains(name));
    let terms = terms.map(|(name, number)| format!("{} {}", name.replace('_', " "), human::count(number)));
    terms.collect::<Vec<_>>().join("  ")
}

fn pace(task: &Value, rate: &str) -> String {
    let p95 = task["live"]["latency_p95_seconds"].as_f64();
    let mut text = rate.to_owned();
    if let Some(p95) = p95 {
        text += &format!("   p95 {:.0} ms", p95 * 1000.0);
    }
    if let Some(eta) = words::eta(task) {
        text += &format!("   ETA {}", human::span(eta));
    }
    if let Some(stall) = task["live"]["stall"].as_str() {
        text += &format!("   held by {}", stall.replace('_', " "));
    }
    text
}

/// The nodes that run it, and those that can't be asked.
fn nodes(task: &Value) -> Option<String> {
    let live = &task["live"];
    let names = live["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let asked = names.collect::<Vec<_>>().join(", ");
    let silent = live["unreachable"].as_array().into_iter().flatten();
    let silent = silent.filter_map(|one| one["node"].as_str().map(|node| format!("{node} can't be asked")));
    let all: Vec<String> = [asked]
        .into_iter()
        .filter(|names| !names.is_empty())
        .chain(silent)
        .collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn live(task: &Value) -> String {
    let live = &task["live"];
    match (
        live["high_water"].as_u64(),
        live["window"].as_u64(),
        live["concurrency"].as_u64(),
    ) {
        (Some(high), Some(window), Some(concurrency)) => format!(
            "   high water {}   window {}   concurrency {}",
            human::count(high),
            human::count(window),
            human::count(concurrency)
        ),
        _ => String::new(),
    }
}

fn settings(task: &Value) -> String {
    let written = |name: &&str| match &task[*name] {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) => Some(format!("{name} {text}")),
        other => Some(format!("{name} {other}")),
    };
    let retry = &task["retry"];
    let retries = ["max_attempts", "backoff"].map(|name| match &retry[name] {
        Value::String(text) => Some(format!("{name} {text}")),
        Value::Number(number) => Some(format!("{name} {number}")),
        _ => None,
    });
    let all: Vec<String> = SETTINGS
        .iter()
        .filter_map(written)
        .chain(retries.into_iter().flatten())
        .collect();
    all.join("  ").replace('_', " ")
}

fn source(source: &Value) -> String {
    let members = source.as_object().into_iter().flatten();
    let shown = members.filter(|(name, value)| *name != "type" && !value.is_null() && !value.is_array());
    let shown = shown.map(|(name, value)| match value {
        Value::String(text) => format!("{name} {text}"),
        other => format!("{name} {other}"),
    });
    let kind = source["type"].as_str().unwrap_or("unknown").to_owned();
    [kind].into_iter().chain(shown).collect::<Vec<_>>().join("  ")
}

/// What it belongs to.
fn relations(task: &Value) -> [(&'static str, Option<String>); 3] {
    let text = |name: &str| task[name].as_str().map(str::to_owned);
    [
        ("parent", text("parent")),
        ("pool", text("pool")),
        ("limits", limits(task)),
    ]
}

fn limits(task: &Value) -> Option<String> {
    let names: Vec<&str> = task["limits"]
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    (!names.is_empty()).then(|| names.join("  "))
}

fn labels(task: &Value) -> Option<String> {
    let labels = task["labels"].as_object().filter(|labels| !labels.is_empty())?;
    let pairs = labels
        .iter()
        .map(|(key, value)| format!("{key}:{}", value.as_str().unwrap_or_default()));
    Some(pairs.collect::<Vec<_>>().join("  "))
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

    #[test]
    fn a_task_that_waited_for_its_time_has_not_started_when_it_was_asked_to() {
        let task = |status: &str| json!({"status": status, "start_at": "2026-11-20T17:00:00Z", "started_at": "2026-11-20T16:00:00Z"});
        assert!(!waited(&task("queued")), "it says when that was asked");
        assert!(waited(&task("running")), "`not before` says it");
        assert!(!waited(
            &json!({"status": "running", "started_at": "2026-11-20T16:00:00Z"})
        ));
    }
}
