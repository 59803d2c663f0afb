//! `windrow node list` and `show`.

use std::time::Duration;

use serde_json::Value;

use super::{ListArgs, ShowArgs, named, path};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::body::{joined, labels, list as list_of, number, text, texts};
use crate::output::table::times::Times;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone, human};
use crate::shell::Shell;
use windrow_client::Request;

/// Nodes.
pub(crate) const NODES: Listing = Listing {
    columns: &[
        Column::text("NODE", Keep::Always, 4, "id").tone(Tone::Strong),
        Column::new("STATE", Side::Left, Keep::Always, 7, |node, _| state(node)),
        Column::new("RUNS", Side::Right, Keep::Rank(60), 4, |node, _| {
            Cell::count(node["runs"].as_array().map(|runs| runs.len() as u64))
        }),
        Column::plain("WAITING", Keep::Rank(50), 4, "waiting"),
        Column::plain("RESERVED", Keep::Rank(80), 7, "reserved_rate"),
        Column::plain("CAPACITY", Keep::Rank(90), 7, "capacity_rate"),
        Column::new("UPTIME", Side::Right, Keep::Rank(40), 4, |node, _| uptime(node)),
        Column::new("BEAT", Side::Right, Keep::Rank(45), 4, |node, _| {
            age(&node["heartbeat_age_seconds"], 1)
        }),
        Column::text("VERSION", Keep::Rank(30), 5, "version"),
        Column::text("ADDRESS", Keep::Rank(20), 8, "address"),
        Column::new("POOLS", Side::Left, Keep::Wide, 5, |node, _| {
            Cell::new(texts(&node["pools"]).join(","))
        }),
        Column::text("LOG", Keep::Wide, 5, "log_filter"),
        Column::time("SEEN", Keep::Wide, "last_seen"),
    ],
    name: |node| text(&node["id"]).to_owned(),
    none: "no nodes",
};

fn state(node: &Value) -> Cell {
    let state = Cell::member(node, "state");
    let tone = tone(&state.text);
    match node["live"]["state"].as_str() {
        Some("unreachable") if tone != Tone::Bad => Cell::new(format!("{} ?", state.text))
            .plain(state.text)
            .tone(Tone::Warn),
        _ => state.tone(tone),
    }
}

fn uptime(node: &Value) -> Cell {
    // One that is gone is up no more.
    match node["state"].as_str() {
        Some("fenced") => Cell::nothing(),
        _ => age(&node["uptime_seconds"], 0),
    }
}

/// How long something has lasted; scripts get seconds with so many digits.
fn age(seconds: &Value, digits: usize) -> Cell {
    let age = seconds
        .as_f64()
        .and_then(|age| Duration::try_from_secs_f64(age).ok());
    age.map_or_else(Cell::nothing, |age| {
        Cell::new(human::span(age)).plain(format!("{:.digits$}", age.as_secs_f64()))
    })
}

/// The tone of a state.
fn tone(state: &str) -> Tone {
    match state {
        "serving" => Tone::Good,
        "silent" | "fenced" => Tone::Bad,
        _ => Tone::Warn,
    }
}

/// Lists nodes.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn list(args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let listed = link.list(Request::get("/v1/nodes"), None).await?;
    link.show_list(&NODES, &listed, &listed.things()?)
}

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
pub(super) fn card(node: &Value, times: &Times) -> Card {
    let is = |name: &str| text(&node[name]);
    let uptime = node["uptime_seconds"].as_u64();
    let capacity = match node["reserved_rate"].as_str() {
        Some(reserved) => format!(
            "{reserved} of {} reserved; a task without a rate counts as {}",
            is("capacity_rate"),
            is("unlimited_reserves")
        ),
        None => is("capacity_rate").to_owned(),
    };
    let runs = list_of(&node["runs"]);
    let waiting = human::count(number(&node["waiting"]));
    let unreachable = node["live"]["why"]
        .as_str()
        .map(|why| format!("unreachable: {why}"));
    let card = Card::new()
        .title(is("id"), Tone::Strong)
        .title(is("state"), tone(is("state")))
        .line("version", is("version"))
        .maybe("address", node["address"].as_str())
        .maybe("live", unreachable)
        .maybe(
            "up",
            uptime.map(|seconds| human::span(Duration::from_secs(seconds))),
        )
        .line("capacity", capacity)
        .line(
            "tasks",
            format!("{} running  {waiting} waiting for room", runs.len()),
        )
        .maybe("runs", listed(runs))
        .line("pools", texts(&node["pools"]).join(","))
        .maybe("labels", labels(&node["labels"]))
        .maybe("log", node["log_filter"].as_str())
        .time("seen", &node["last_seen"], times);
    if node["run_tasks"] == false {
        return card.toned("tasks", "it is configured to run none", Tone::Warn);
    }
    card
}

/// `t42 run 3  t43.1 run 1`: a shard is named where it isn't the first.
fn listed(runs: &[Value]) -> Option<String> {
    let texts = runs.iter().map(|run| match number(&run["shard"]) {
        0 => format!("{} run {}", text(&run["task"]), run["run"]),
        shard => format!("{}.{shard} run {}", text(&run["task"]), run["run"]),
    });
    joined(&texts.collect::<Vec<_>>(), "  ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_that_is_gone_is_up_no_more() {
        let node = |state: &str| json!({"state": state, "uptime_seconds": 7});
        assert_eq!(uptime(&node("fenced")), Cell::nothing());
        assert_ne!(uptime(&node("serving")), Cell::nothing());
    }
}
