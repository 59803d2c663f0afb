//! Implementation of `windrow node list` and `show`.

use std::time::Duration;

use api::{Node, NodeRun};

use super::{ListArgs, ShowArgs, named, path};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::body::{joined, labels};
use crate::output::table::times::Times;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone, human};
use crate::shell::Shell;
use windrow_client::Request;

/// Listing of nodes with their state and load.
pub(crate) const NODES: Listing<Node> = Listing {
    columns: &[
        Column::text("NODE", Keep::Always, 4, |node: &Node| &node.id).tone(Tone::Strong),
        Column::new("STATE", Side::Left, Keep::Always, 7, |node, _| state(node)),
        Column::count("RUNS", Keep::Rank(60), 4, |node| Some(node.runs.len() as u64)),
        Column::plain("WAITING", Keep::Rank(50), 4, |node| {
            Some(node.waiting?.to_string())
        }),
        Column::plain("RESERVED", Keep::Rank(80), 7, |node| node.reserved_rate.clone()),
        Column::plain("CAPACITY", Keep::Rank(90), 7, |node| {
            Some(node.capacity_rate.clone())
        }),
        Column::new("UPTIME", Side::Right, Keep::Rank(40), 4, |node, _| uptime(node)),
        Column::new("BEAT", Side::Right, Keep::Rank(45), 4, |node, _| {
            let beat = node.heartbeat_age_seconds.map(Duration::try_from_secs_f64);
            age(beat.and_then(Result::ok), 1)
        }),
        Column::text("VERSION", Keep::Rank(30), 5, |node| &node.version),
        Column::maybe("ADDRESS", Keep::Rank(20), 8, |node| node.address.as_deref()),
        Column::new("POOLS", Side::Left, Keep::Wide, 5, |node, _| {
            Cell::new(node.pools.join(","))
        }),
        Column::maybe("LOG", Keep::Wide, 5, |node| node.log_filter.as_deref()),
        Column::time("SEEN", Keep::Wide, |node| node.last_seen.as_deref()),
    ],
    name: |node| node.id.clone(),
    none: "no nodes",
};

fn state(node: &Node) -> Cell {
    let tone = tone(&node.state);
    match node.live.state.as_str() {
        "unreachable" if tone != Tone::Bad => Cell::new(format!("{} ?", node.state))
            .plain(&node.state)
            .tone(Tone::Warn),
        _ => Cell::new(&node.state).tone(tone),
    }
}

fn uptime(node: &Node) -> Cell {
    // A node that is gone has no uptime.
    let is_gone = node.state == "fenced";
    age((!is_gone).then_some(Duration::from_secs(node.uptime_seconds)), 0)
}

/// Formats an age. Scripts get seconds with `digits` decimals.
fn age(age: Option<Duration>, digits: usize) -> Cell {
    age.map_or_else(Cell::nothing, |age| {
        Cell::new(human::span(age)).plain(format!("{:.digits$}", age.as_secs_f64()))
    })
}

/// Returns the colour of a state.
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
/// Same as [`Link::send`].
pub(super) async fn list(args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let listed = link.list(Request::get("/v1/nodes"), None).await?;
    link.show_list(&NODES, &listed, &listed.things()?)
}

/// Shows a node.
///
/// # Errors
/// Same as [`Link::send`].
pub(super) async fn show(args: &ShowArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let name = named(&link, args.node.as_deref()).await?;
    let answer = link.get(&path(&name)).await?;
    link.show_one(&NODES, &answer, card)
}

/// Formats a node as a card.
pub(super) fn card(node: &Node, times: &Times) -> Card {
    let mut capacity = node.capacity_rate.clone();
    if let Some(reserved) = &node.reserved_rate {
        let unlimited = node.unlimited_reserves.as_deref().unwrap_or_default();
        capacity = format!("{reserved} of {capacity} reserved; a task without a rate counts as {unlimited}");
    }
    let waiting = human::count(node.waiting.unwrap_or(0) as u64);
    let unreachable = node.live.why.as_ref().map(|why| format!("unreachable: {why}"));
    let card = Card::new()
        .title(&node.id, Tone::Strong)
        .title(&node.state, tone(&node.state))
        .line("version", &node.version)
        .maybe("address", node.address.as_deref())
        .maybe("live", unreachable)
        .line("up", human::span(Duration::from_secs(node.uptime_seconds)))
        .line("capacity", capacity)
        .line(
            "tasks",
            format!("{} running  {waiting} waiting for capacity", node.runs.len()),
        )
        .maybe("runs", listed(&node.runs))
        .line("pools", node.pools.join(","))
        .maybe("labels", labels(&node.labels))
        .maybe("log", node.log_filter.as_deref())
        .time("seen", node.last_seen.as_deref(), times);
    if !node.run_tasks {
        return card.toned("tasks", "disabled by the configuration", Tone::Warn);
    }
    card
}

/// Formats runs as `t42 run 3  t43.1 run 1`. A shard is named unless it is the first.
fn listed(runs: &[NodeRun]) -> Option<String> {
    let texts = runs.iter().map(|run| match run.shard {
        0 => format!("{} run {}", run.task, run.run),
        shard => format!("{}.{shard} run {}", run.task, run.run),
    });
    joined(&texts.collect::<Vec<_>>(), "  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_gone_is_up_no_more() {
        let node = |state: &str| Node {
            state: state.to_owned(),
            uptime_seconds: 7,
            ..Node::default()
        };
        assert_eq!(uptime(&node("fenced")), Cell::nothing());
        assert_ne!(uptime(&node("serving")), Cell::nothing());
    }
}
