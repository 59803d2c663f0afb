//! `windrow limit list` and `show`.

use serde_json::Value;

use super::args::{ListArgs, ShowArgs};
use super::path;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::times::Times;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone, human};
use windrow_client::Request;
use windrow_core::explain::rate_text;

/// Limits.
pub(super) const LIMITS: Listing = Listing {
    columns: &[
        Column::new("NAME", Side::Left, Keep::Always, 8, |limit, _| {
            Cell::member(limit, "name").tone(Tone::Strong)
        }),
        Column::new("RATE", Side::Right, Keep::Always, 5, |limit, _| {
            Cell::member(limit, "rate")
        }),
        Column::new("CONCURRENCY", Side::Right, Keep::Always, 5, |limit, _| {
            Cell::member(limit, "concurrency")
        }),
        Column::new("REVISION", Side::Right, Keep::Rank(20), 3, |limit, _| {
            Cell::member(limit, "revision")
        }),
        Column::new("UPDATED", Side::Left, Keep::Rank(30), 7, |limit, times| {
            Cell::time(limit, "updated_at", times)
        }),
    ],
    name: |limit| limit["name"].as_str().unwrap_or_default().to_owned(),
    none: "no limits",
};

/// Lists limits.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn list(args: &ListArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let listed = link.list(Request::get("/v1/limits"), Some(&args.paging)).await?;
    link.show_list(&LIMITS, &listed, &listed.things()?)
}

/// Shows a limit.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn show(args: &ShowArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link.get(&path(&args.name)).await?;
    link.show_one(&LIMITS, &answer, card)
}

/// A limit for people.
pub(super) fn card(limit: &Value, times: &Times) -> Card {
    let text = |name: &str| limit[name].as_str();
    let mut card = Card::new()
        .title(text("name").unwrap_or_default(), Tone::Strong)
        .maybe("rate", text("rate"))
        .maybe(
            "concurrency",
            limit["concurrency"].as_u64().map(|many| many.to_string()),
        )
        .maybe(
            "businesses",
            joined(&limit["businesses"], |slug| slug.as_str().map(str::to_owned)),
        )
        .maybe("tasks", tasks(limit));
    for part in limit["parts"].as_array().into_iter().flatten() {
        card = card.line("node", of_node(part));
    }
    card.line("revision", limit["revision"].to_string())
        .maybe("updated", text("updated_at").map(|at| times.text(at)))
}

fn joined(list: &Value, text: impl Fn(&Value) -> Option<String>) -> Option<String> {
    let texts: Vec<String> = list.as_array()?.iter().filter_map(text).collect();
    (!texts.is_empty()).then(|| texts.join("  "))
}

/// `t4 (running)  t7 (created)  and 3 more`.
fn tasks(limit: &Value) -> Option<String> {
    let shown = joined(&limit["tasks"], |task| {
        Some(format!("{} ({})", task["id"].as_str()?, task["status"].as_str()?))
    })?;
    let number = limit["tasks"].as_array().map_or(0, Vec::len) as u64;
    match limit["tasks_total"]
        .as_u64()
        .unwrap_or(number)
        .saturating_sub(number)
    {
        0 => Some(shown),
        more => Some(format!("{shown}  and {more} more")),
    }
}

/// `n1  2 runs  150.0/s  25 in flight`.
fn of_node(part: &Value) -> String {
    let rate = part["rate"].as_f64().map(|rate| format!("  {}", rate_text(rate)));
    let slots = part["concurrency"]
        .as_u64()
        .map(|slots| format!("  {slots} in flight"));
    let name = part["node"].as_str().unwrap_or_default();
    let runs = human::counted(part["runs"].as_u64().unwrap_or(0), "run");
    format!(
        "{name}  {runs}{}{}",
        rate.unwrap_or_default(),
        slots.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn users_and_nodes_are_told_in_a_line_each() {
        let task = |id: &str| json!({"id": id, "business": "push", "status": "running"});
        let limit = json!({"tasks": [task("t1"), task("t2")], "tasks_total": 5});
        assert_eq!(
            tasks(&limit).as_deref(),
            Some("t1 (running)  t2 (running)  and 3 more")
        );
        assert_eq!(tasks(&json!({"tasks": [], "tasks_total": 0})), None);
        let part = json!({"node": "n1", "runs": 2, "rate": 150.0, "concurrency": 25});
        assert_eq!(of_node(&part), "n1  2 runs  150.0/s  25 in flight");
        assert_eq!(
            of_node(&json!({"node": "n1", "runs": 0, "rate": null, "concurrency": null})),
            "n1  0 runs"
        );
    }
}
