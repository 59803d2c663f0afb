//! `windrow node list`.

use std::time::Duration;

use serde_json::Value;

use super::args::ListArgs;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone, human};
use windrow_client::Request;

/// Nodes.
pub(crate) const NODES: Listing = Listing {
    columns: &[
        Column::new("NODE", Side::Left, Keep::Always, 4, |node, _| {
            Cell::member(node, "id").tone(Tone::Strong)
        }),
        Column::new("STATE", Side::Left, Keep::Always, 7, |node, _| state(node)),
        Column::new("RUNS", Side::Right, Keep::Rank(60), 4, |node, _| runs(node)),
        Column::new("WAITING", Side::Right, Keep::Rank(50), 4, |node, _| {
            Cell::member(node, "waiting")
        }),
        Column::new("RESERVED", Side::Right, Keep::Rank(80), 7, |node, _| {
            Cell::member(node, "reserved_rate")
        }),
        Column::new("CAPACITY", Side::Right, Keep::Rank(90), 7, |node, _| {
            Cell::member(node, "capacity_rate")
        }),
        Column::new("UPTIME", Side::Right, Keep::Rank(40), 4, |node, _| uptime(node)),
        Column::new("BEAT", Side::Right, Keep::Rank(45), 4, |node, _| beat(node)),
        Column::new("VERSION", Side::Left, Keep::Rank(30), 5, |node, _| {
            Cell::member(node, "version")
        }),
        Column::new("ADDRESS", Side::Left, Keep::Rank(20), 8, |node, _| {
            Cell::member(node, "address")
        }),
        Column::new("POOLS", Side::Left, Keep::Wide, 5, |node, _| {
            Cell::new(joined(&node["pools"]))
        }),
        Column::new("LOG", Side::Left, Keep::Wide, 5, |node, _| {
            Cell::member(node, "log_filter")
        }),
        Column::new("SEEN", Side::Left, Keep::Wide, 7, |node, times| {
            Cell::time(node, "last_seen", times)
        }),
    ],
    name: |node| node["id"].as_str().unwrap_or_default().to_owned(),
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

/// How long ago it gave a sign.
fn beat(node: &Value) -> Cell {
    let age = node["heartbeat_age_seconds"]
        .as_f64()
        .and_then(|age| Duration::try_from_secs_f64(age).ok());
    age.map_or_else(Cell::nothing, |age| {
        Cell::new(human::span(Duration::from_secs(age.as_secs()))).plain(format!("{:.1}", age.as_secs_f64()))
    })
}

fn runs(node: &Value) -> Cell {
    let runs = node["runs"].as_array().map(|runs| runs.len() as u64);
    runs.map_or_else(Cell::nothing, |runs| {
        Cell::new(human::count(runs)).plain(runs.to_string())
    })
}

fn uptime(node: &Value) -> Cell {
    // One that is gone is up no more.
    let is_gone = node["state"] == "fenced";
    let seconds = node["uptime_seconds"].as_u64().filter(|_| !is_gone);
    seconds.map_or_else(Cell::nothing, |seconds| {
        Cell::new(human::span(Duration::from_secs(seconds))).plain(seconds.to_string())
    })
}

/// The tone of a state.
pub(crate) fn tone(state: &str) -> Tone {
    match state {
        "serving" => Tone::Good,
        "silent" | "fenced" => Tone::Bad,
        _ => Tone::Warn,
    }
}

/// Words with commas between.
pub(super) fn joined(words: &Value) -> String {
    let words = words.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(",")
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
