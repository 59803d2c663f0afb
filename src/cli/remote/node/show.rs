//! `windrow node show`.

use std::time::Duration;

use serde_json::Value;

use super::args::ShowArgs;
use super::list::{NODES, joined, tone};
use super::{named, path};
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::times::Times;
use crate::output::table::{Card, Tone, human};

/// Shows a node.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn show(args: &ShowArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let name = named(&link, args.node.as_deref()).await?;
    let answer = link.get(&path(&name)).await?;
    link.show_one(&NODES, &answer, card)
}

/// A node for people.
pub(crate) fn card(node: &Value, times: &Times) -> Card {
    let text = |name: &str| node[name].as_str().unwrap_or_default();
    let tone = tone(text("state"));
    let uptime = node["uptime_seconds"]
        .as_u64()
        .map(|seconds| human::span(Duration::from_secs(seconds)));
    let capacity = match node["reserved_rate"].as_str() {
        Some(reserved) => format!(
            "{reserved} of {} reserved; a task without a rate counts as {}",
            text("capacity_rate"),
            text("unlimited_reserves")
        ),
        None => text("capacity_rate").to_owned(),
    };
    let runs = node["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let waiting = node["waiting"].as_u64().unwrap_or(0);
    let mut card = Card::new()
        .title(text("id"), Tone::Strong)
        .title(text("state"), tone)
        .line("version", text("version"))
        .maybe("address", node["address"].as_str())
        .maybe(
            "asked",
            node["live"]["why"]
                .as_str()
                .map(|why| format!("can't be asked: {why}")),
        )
        .maybe("up", uptime)
        .line("capacity", capacity)
        .line(
            "tasks",
            format!(
                "{} running  {} waiting for room",
                runs.len(),
                human::count(waiting)
            ),
        )
        .maybe("runs", listed(runs))
        .line("pools", joined(&node["pools"]))
        .maybe("labels", labels(&node["labels"]))
        .maybe("log", node["log_filter"].as_str())
        .maybe("seen", node["last_seen"].as_str().map(|at| times.text(at)));
    if node["run_tasks"] == false {
        card = card.toned("tasks", "it is configured to run none", Tone::Warn);
    }
    card
}

/// `t42 run 3  t43.1 run 1`: a shard is named where it isn't the first.
fn listed(runs: &[Value]) -> Option<String> {
    let texts = runs.iter().map(|run| {
        let shard = run["shard"]
            .as_u64()
            .filter(|shard| *shard > 0)
            .map(|shard| format!(".{shard}"));
        let task = run["task"].as_str().unwrap_or_default();
        format!("{task}{} run {}", shard.unwrap_or_default(), run["run"])
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("  "))
}

fn labels(labels: &Value) -> Option<String> {
    let labels = labels.as_object().filter(|labels| !labels.is_empty())?;
    let pairs = labels
        .iter()
        .map(|(key, value)| format!("{key}:{}", value.as_str().unwrap_or_default()));
    Some(pairs.collect::<Vec<_>>().join("  "))
}
