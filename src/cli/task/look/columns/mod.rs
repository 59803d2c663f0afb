//! The columns of a list of tasks.

use serde_json::Value;

use crate::output::table::times::Times;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone, human};
use crate::task::words;

/// Cells of the bar beside the percentage.
const BAR_CELLS: usize = 7;

/// Tasks.
pub const TASKS: Listing = Listing {
    columns: &[
        Column::new("ID", Side::Left, Keep::Always, 4, |task, _| {
            Cell::member(task, "id").tone(Tone::Strong)
        }),
        Column::new("BUSINESS", Side::Left, Keep::Rank(40), 8, |task, _| {
            Cell::member(task, "business")
        }),
        Column::new("NAME", Side::Left, Keep::Rank(60), 12, |task, _| {
            Cell::member(task, "name")
        }),
        Column::new("STATUS", Side::Left, Keep::Always, 13, status),
        Column::new("PROGRESS", Side::Left, Keep::Rank(90), 8, |task, _| {
            progress(task)
        }),
        Column::new("RATE", Side::Left, Keep::Rank(70), 8, rate).named("actual_rate"),
        Column::new("ETA", Side::Left, Keep::Rank(50), 4, |task, _| eta(task)),
        Column::new("FAILED", Side::Right, Keep::Rank(80), 6, |task, _| failed(task)).named("abandoned"),
        Column::new("NODE", Side::Left, Keep::Rank(20), 4, |task, _| {
            Cell::member(task, "node")
        }),
        Column::new("TOTAL", Side::Right, Keep::Wide, 5, |task, _| {
            number(task["total"].as_u64())
        }),
        Column::new("SUCCEEDED", Side::Right, Keep::Wide, 5, |task, _| {
            count(task, "succeeded")
        }),
        Column::new("SKIPPED", Side::Right, Keep::Wide, 5, |task, _| {
            count(task, "skipped")
        }),
        Column::new("IN_FLIGHT", Side::Right, Keep::Wide, 5, |task, _| {
            count(task, "in_flight")
        }),
        Column::new("PARKED", Side::Right, Keep::Wide, 5, |task, _| {
            count(task, "parked")
        }),
        Column::new("RESULT", Side::Left, Keep::Wide, 8, |task, _| {
            Cell::member(task, "result")
        }),
        Column::new("POOL", Side::Left, Keep::Wide, 4, |task, _| {
            Cell::member(task, "pool")
        }),
        Column::new("PARENT", Side::Left, Keep::Wide, 4, |task, _| {
            Cell::member(task, "parent")
        }),
        Column::new("SINCE", Side::Left, Keep::Wide, 7, |task, times| {
            Cell::time(task, "since", times)
        }),
        Column::new("CREATED", Side::Left, Keep::Wide, 7, |task, times| {
            Cell::time(task, "created_at", times)
        })
        .named("created_at"),
        Column::new("STARTED", Side::Left, Keep::Wide, 7, |task, times| {
            Cell::time(task, "started_at", times)
        })
        .named("started_at"),
        Column::new("FINISHED", Side::Left, Keep::Wide, 7, |task, times| {
            Cell::time(task, "finished_at", times)
        })
        .named("finished_at"),
        // What else a program compares; people see it in `task show`.
        Column::new("RATE", Side::Left, Keep::Csv, 4, |task, _| {
            Cell::member(task, "rate")
        }),
        Column::new("PENDING", Side::Right, Keep::Csv, 5, |task, _| {
            count(task, "pending")
        }),
        Column::new("STOP REASON", Side::Left, Keep::Csv, 4, |task, _| {
            Cell::member(task, "stop_reason")
        }),
        Column::new("LABELS", Side::Left, Keep::Csv, 4, |task, _| labels(task)),
        Column::new("PRIORITY", Side::Right, Keep::Csv, 4, |task, _| {
            Cell::member(task, "priority")
        }),
        Column::new("LIMITS", Side::Left, Keep::Csv, 4, |task, _| limits(task)),
        Column::new("START AT", Side::Left, Keep::Csv, 7, |task, times| {
            Cell::time(task, "start_at", times)
        }),
        Column::new("DEADLINE", Side::Left, Keep::Csv, 7, |task, times| {
            Cell::time(task, "deadline", times)
        }),
        Column::new("LOW WATER", Side::Right, Keep::Csv, 5, |task, _| {
            number(task["low_water"].as_u64())
        }),
        Column::new("SHARDS", Side::Right, Keep::Csv, 4, |task, _| shards(task)),
    ],
    name: |task| task["id"].as_str().unwrap_or_default().to_owned(),
    none: "no tasks",
};

fn number(number: Option<u64>) -> Cell {
    number.map_or_else(Cell::nothing, |number| {
        Cell::new(human::count(number)).plain(number.to_string())
    })
}

fn status(task: &Value, times: &Times) -> Cell {
    let (text, tone) = words::status_at(task, times);
    let short = words::short_status(task);
    Cell::new(text)
        .short(short)
        .plain(task["status"].as_str().unwrap_or_default())
        .tone(tone)
}

fn progress(task: &Value) -> Cell {
    let (done, total) = words::done(task);
    let percent = human::percent_text(done, total);
    let plain = format!("{:.1}", human::percent(done, total));
    // A bar says nothing of what hasn't begun or is over.
    if done == 0 || done >= total {
        return Cell::new(format!("{percent:>5}")).plain(plain);
    }
    Cell::new(format!("{percent:>5} {}", words::bar(task, BAR_CELLS)))
        .short(format!("{percent:>5}"))
        .plain(plain)
}

fn rate(task: &Value, times: &Times) -> Cell {
    let plain = task["actual_rate"]
        .as_f64()
        .map(|rate| rate.to_string())
        .unwrap_or_default();
    match words::rate(task, times) {
        Some(text) => {
            let short = text.split(" in ").next().unwrap_or_default().to_owned();
            Cell::new(text).short(short).plain(plain)
        }
        None => Cell::nothing().plain(plain),
    }
}

fn eta(task: &Value) -> Cell {
    match words::eta(task) {
        Some(eta) => Cell::new(human::span(eta)).plain(eta.as_secs().to_string()),
        None => Cell::nothing(),
    }
}

/// `team=growth day=5`.
fn labels(task: &Value) -> Cell {
    let labels = task["labels"].as_object().into_iter().flatten();
    let pairs = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    Cell::new(pairs.collect::<Vec<_>>().join(" "))
}

fn limits(task: &Value) -> Cell {
    let names = task["limits"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    Cell::new(names.collect::<Vec<_>>().join(" "))
}

/// Into how many it is cut; before its start that may be `auto`.
fn shards(task: &Value) -> Cell {
    match task["shard_list"].as_array().map_or(0, Vec::len) {
        0 => Cell::member(task, "shards"),
        cut => Cell::new(cut.to_string()),
    }
}

fn count(task: &Value, name: &str) -> Cell {
    number(task["counts"][name].as_u64())
}

fn failed(task: &Value) -> Cell {
    let is_any = task["counts"]["abandoned"].as_u64() > Some(0);
    count(task, "abandoned").tone(if is_any { Tone::Bad } else { Tone::Plain })
}

#[cfg(test)]
mod tests;
