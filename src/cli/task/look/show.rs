//! Implementation of `windrow task show`.

use api::{Task, TaskShard};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::body::{joined, labels, shown};
use crate::output::table::times::Times;
use crate::output::table::{Card, Tone, human};
use crate::output::used::used_of;
use crate::output::{found, limits};
use crate::shell::Shell;
use crate::task::args::ShowArgs;
use crate::task::look::columns::TASKS;
use crate::task::look::failures;
use crate::task::make::warnings;
use crate::task::words;
use windrow_core::ids::WallMs;
use windrow_core::task::CanaryThen;

/// Settings shown, in the order of `config.toml`.
const SETTINGS: [&str; 10] = [
    "rate",
    "burst",
    "concurrency",
    "window",
    "batch",
    "timeout",
    "error_budget",
    "ordered",
    "max_attempts",
    "backoff",
];
/// Largest number of shards shown on separate lines.
const SHARDS_SHOWN: usize = 16;
/// Largest number of failure codes shown.
const FAILURES_SHOWN: usize = 5;
/// Maximum length of the list of items to skip. Unit: characters.
const INDEXES_SHOWN: usize = 60;
/// Width of the progress bar. Unit: terminal cells.
const BAR_CELLS: usize = 40;

/// Shows a task with its failures.
///
/// # Errors
/// Same as [`Link::send`].
pub(crate) async fn show(args: &ShowArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let answer = link.get(&format!("/v1/tasks/{id}")).await?;
    if args.web {
        let page = format!("{}/tasks/{id}\n", link.client.server());
        return link.put(page.as_bytes());
    }
    let failures = match link.look.form.is_for_people() && words::has_failures(&answer.read()?) {
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

/// Formats a task as a card.
pub(crate) fn card(task: &Task, times: &Times) -> Card {
    let (status, tone) = words::status_at(task, times);
    let bar = words::bar(task, BAR_CELLS);
    let progress = format!("{bar} {}   {}", words::percent(task), words::done_of(task));
    let mut card = Card::new()
        .title(words::address(task), Tone::Strong)
        .title(&task.id, Tone::Plain)
        .title(status, tone)
        .maybe("because", because(task, times))
        .time("since", Some(&task.since), times)
        .maybe("next", next(task, times))
        .line("progress", progress)
        .line("items", words::counts(&task.counts, &words::TERMS, &words::RARE))
        .maybe("canary", canary(task))
        .maybe("skipped", skips(task))
        .maybe("pace", words::rate(task, times).map(|rate| pace(task, &rate)))
        .maybe("autopilot", autopilot(task))
        .maybe("used", used_of(task.costs.as_ref()))
        .maybe("nodes", nodes(task))
        .line("window", window(task))
        .line("settings", settings(task))
        .line("source", source(&task.source))
        .maybe("params", task.spec.params.as_deref())
        .maybe("labels", labels(&task.spec.labels));
    for (label, shard) in shards(task, times) {
        card = card.line(label, shard);
    }
    card = card
        .maybe("publishes", publishes(task))
        .maybe("parent", task.parent.as_deref())
        .maybe("schedule", fire(task))
        .line("pool", &task.pool)
        .maybe("limits", joined(&task.spec.limits, "  "))
        .maybe("metering", limits::metering(&task.spec.metering))
        .time("created", Some(&task.created_at), times)
        .time(
            "not before",
            task.spec.start_at.map(WallMs::to_rfc3339).as_deref(),
            times,
        )
        .time("started", task.started_at.as_deref(), times)
        .time(
            "deadline",
            task.spec.deadline.map(WallMs::to_rfc3339).as_deref(),
            times,
        )
        .time("finished", task.finished_at.as_deref(), times);
    let warnings = warnings::lines(&task.beside.warnings, &task.id, times.style).into_iter();
    warnings.fold(card, |card, warning| card.line("warning", warning))
}

/// Formats the publication as `generation 3 of board`, with a note if it was withheld.
fn publishes(task: &Task) -> Option<String> {
    let publish = task.publish.as_ref()?;
    let dataset = &publish.dataset;
    let generation = format!("generation {} of {dataset}", publish.generation);
    Some(match publish.withheld {
        true => format!("{generation}: withheld (see `windrow dataset generations {dataset}`)"),
        false => generation,
    })
}

/// Formats the fire that created the task: `s7 for 2026-11-20T17:00:00.000Z`.
fn fire(task: &Task) -> Option<String> {
    let (schedule, time) = (task.schedule.as_ref()?, task.fire_time.as_ref()?);
    Some(format!("{schedule} for {time}"))
}

/// Formats the canary, such as `20 items first, then continue`.
fn canary(task: &Task) -> Option<String> {
    let canary = task.spec.canary.as_ref()?;
    let items = human::counted(canary.items.get(), "item");
    let then = match canary.then {
        CanaryThen::Stop => "stop",
        CanaryThen::Continue => "continue",
    };
    Some(format!("{items} first, then {then}"))
}

/// Formats the items that people asked to skip, with their number and indexes.
fn skips(task: &Task) -> Option<String> {
    let skips = task.skips.as_ref()?;
    let items = human::counted(skips.items, "item");
    Some(format!("{items} on request: {}", shortened(&skips.indexes)))
}

/// Cuts the list of ranges to fit a line.
fn shortened(indexes: &str) -> String {
    match indexes.char_indices().nth(INDEXES_SHOWN) {
        None => indexes.to_owned(),
        Some((at, _)) => format!("{}… (-o json shows all)", &indexes[..at]),
    }
}

fn because(task: &Task, times: &Times) -> Option<String> {
    let text = task.status_text.as_ref();
    text.map(|text| times.style.within(text))
}

/// Formats each shard on a line of its own. Empty for a task with a single shard.
fn shards(task: &Task, times: &Times) -> Vec<(&'static str, String)> {
    let list = &task.shard_list;
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

fn shard_line(shard: &TaskShard, silent: &[String], times: &Times) -> String {
    let at = shard.next_at.as_ref();
    let at = at.map(|at| format!(" until {}", times.text(at)));
    let node = shard.node.as_ref().map(|node| {
        let silent = silent.contains(node);
        format!(" on {node}{}", if silent { ", unreachable" } else { "" })
    });
    let share = Some(shard.rate_share).filter(|share| *share > 0.0);
    let share = share.map(|share| format!("   {:.1} % of the rate", share * 100.0));
    format!(
        "{}  {}{}{}   {} of {}   watermark {}{}",
        shard.shard,
        shard.state,
        node.unwrap_or_default(),
        at.unwrap_or_default(),
        human::count(shard.settled),
        human::count(shard.end.saturating_sub(shard.first)),
        human::count(shard.watermark),
        share.unwrap_or_default()
    )
}

fn next(task: &Task, times: &Times) -> Option<String> {
    let next = task.next.as_ref()?;
    Some(format!("{} {}", next.action, times.text(&next.at)))
}

fn pace(task: &Task, rate: &str) -> String {
    let live = task.live.as_ref();
    let p95 = live.and_then(|live| live.latency_p95_seconds);
    let stall = live.and_then(|live| live.stall.as_ref());
    let parts = [
        Some(rate.to_owned()),
        joined(&words::silent(task), ", ").map(|nodes| format!("unknown without {nodes}")),
        p95.map(|p95| format!("p95 {}", human::seconds(p95))),
        words::eta_text(task).map(|eta| format!("ETA {eta}")),
        stall
            .filter(|_| !words::waits_for_items(task))
            .map(|stall| format!("limited by {}", stall.replace('_', " "))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("   ")
}

fn autopilot(task: &Task) -> Option<String> {
    let live = task.live.as_ref()?;
    live.autopilot.as_ref().map(found::whole)
}

/// Formats the nodes that run the task, and those that can't be reached.
fn nodes(task: &Task) -> Option<String> {
    let live = task.live.as_ref()?;
    let asked = joined(&live.nodes, ", ");
    let silent = live.unreachable.iter();
    let silent = silent.map(|one| format!("{} is unreachable: {}", one.node, one.why));
    joined(&asked.into_iter().chain(silent).collect::<Vec<_>>(), "; ")
}

fn window(task: &Task) -> String {
    let live = task.live.clone().unwrap_or_default();
    let parts = [
        ("watermark", Some(task.watermark)),
        ("high water", live.high_water),
        ("window", live.window),
        ("concurrency", live.concurrency),
    ];
    let parts = parts.map(|(name, value)| Some(format!("{name} {}", human::count(value?))));
    parts.into_iter().flatten().collect::<Vec<_>>().join("   ")
}

fn settings(task: &Task) -> String {
    let tuning = json!(task.settings.tuning);
    let written = |name: &str| match &tuning[name] {
        Value::Null | Value::Bool(false) => None,
        value => Some(format!("{} {}", name.replace('_', " "), shown(value))),
    };
    SETTINGS
        .into_iter()
        .filter_map(written)
        .collect::<Vec<_>>()
        .join("  ")
}

fn source(source: &api::TaskSource) -> String {
    let members = [
        ("origin", &source.origin),
        ("upload", &source.upload),
        ("url", &source.url),
    ];
    let members = members.map(|(name, value)| Some(format!("  {name} {}", value.as_ref()?)));
    source.kind.clone() + &members.into_iter().flatten().collect::<String>()
}

#[cfg(test)]
mod tests {
    use windrow_core::settings::table::TuningPatch;

    use super::*;

    #[test]
    fn retries_are_among_the_settings() {
        let mut task = Task::default();
        for (name, value) in [("rate", "5/s"), ("max_attempts", "7")] {
            let patch = TuningPatch::parse(name, value).expect("sound");
            task.settings.tuning = patch.apply(&task.settings.tuning);
        }
        let text = settings(&task);
        assert!(text.starts_with("rate 5/s  burst 100ms  "), "{text}");
        assert!(
            text.ends_with("  max attempts 7  backoff 1s..60s x2 jitter 20%"),
            "{text}"
        );
    }
}
