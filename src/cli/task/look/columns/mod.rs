//! The columns of a list of tasks.

use serde_json::Value;

use crate::output::body::{list, text, texts};
use crate::output::judgement::with_made_good;
use crate::output::table::times::Times;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone};
use crate::task::words;

/// Cells of the bar beside the percentage.
const BAR_CELLS: usize = 7;

/// Tasks.
pub(crate) const TASKS: Listing = Listing {
    columns: &[
        Column::text("ID", Keep::Always, 4, "id").tone(Tone::Strong),
        Column::text("BUSINESS", Keep::Rank(40), 8, "business"),
        Column::text("NAME", Keep::Rank(60), 12, "name"),
        Column::new("STATUS", Side::Left, Keep::Always, 13, status),
        Column::new("PROGRESS", Side::Left, Keep::Rank(90), 8, progress),
        Column::new("RATE", Side::Left, Keep::Rank(70), 8, rate).named("actual_rate"),
        Column::new("ETA", Side::Left, Keep::Rank(50), 4, eta),
        Column::new("FAILED", Side::Right, Keep::Rank(80), 6, failed).named("abandoned"),
        Column::text("NODE", Keep::Rank(20), 4, "node"),
        Column::count("TOTAL", Keep::Wide, 5, "total"),
        Column::count("SUCCEEDED", Keep::Wide, 5, "counts.succeeded"),
        Column::count("SKIPPED", Keep::Wide, 5, "counts.skipped"),
        Column::count("IN_FLIGHT", Keep::Wide, 5, "counts.in_flight"),
        Column::count("PARKED", Keep::Wide, 5, "counts.parked"),
        Column::text("RESULT", Keep::Wide, 8, "result"),
        Column::text("POOL", Keep::Wide, 4, "pool"),
        Column::text("PARENT", Keep::Wide, 4, "parent"),
        Column::time("SINCE", Keep::Wide, "since"),
        Column::time("CREATED", Keep::Wide, "created_at").named("created_at"),
        Column::time("STARTED", Keep::Wide, "started_at").named("started_at"),
        Column::time("FINISHED", Keep::Wide, "finished_at").named("finished_at"),
        // What else a program compares; people see it in `task show`.
        Column::text("RATE", Keep::Csv, 4, "rate"),
        Column::count("PENDING", Keep::Csv, 5, "counts.pending"),
        Column::text("STOP REASON", Keep::Csv, 4, "stop_reason"),
        Column::new("LABELS", Side::Left, Keep::Csv, 4, labels),
        Column::plain("PRIORITY", Keep::Csv, 4, "priority"),
        Column::new("LIMITS", Side::Left, Keep::Csv, 4, |task, _| {
            Cell::new(texts(&task["limits"]).join(" "))
        }),
        Column::time("START AT", Keep::Csv, "start_at"),
        Column::time("DEADLINE", Keep::Csv, "deadline"),
        Column::count("LOW WATER", Keep::Csv, 5, "low_water"),
        Column::new("SHARDS", Side::Right, Keep::Csv, 4, shards),
        Column::count("MADE GOOD", Keep::Csv, 5, "redriven.made_good"),
        Column::count("STILL FAILED", Keep::Csv, 5, "redriven.still_failed"),
    ],
    name: |task| text(&task["id"]).to_owned(),
    none: "no tasks",
};

fn status(task: &Value, times: &Times) -> Cell {
    let (said, tone) = words::status_at(task, times);
    let cell = Cell::new(said).short(words::short_status(task));
    cell.plain(text(&task["status"])).tone(tone)
}

fn progress(task: &Value, _: &Times) -> Cell {
    let (done, total) = words::done(task);
    let percent = format!("{:>5}", words::percent(task));
    let plain = format!("{:.1}", task["progress"]["percent"].as_f64().unwrap_or(0.0));
    // A bar says nothing of what hasn't begun or is over.
    if done == 0 || done >= total {
        return Cell::new(percent).plain(plain);
    }
    let cell = Cell::new(format!("{percent} {}", words::bar(task, BAR_CELLS)));
    cell.short(percent).plain(plain)
}

fn rate(task: &Value, times: &Times) -> Cell {
    let plain = task["actual_rate"].as_f64().map(|rate| rate.to_string());
    let cell = match words::rate(task, times) {
        Some(text) => {
            let short = text.split(" in ").next().unwrap_or_default().to_owned();
            Cell::new(text).short(short)
        }
        None => Cell::nothing(),
    };
    cell.plain(plain.unwrap_or_default())
}

fn eta(task: &Value, _: &Times) -> Cell {
    match words::eta(task).zip(words::eta_text(task)) {
        Some((eta, text)) => Cell::new(text).plain(eta.as_secs().to_string()),
        None => Cell::nothing(),
    }
}

/// `team=growth day=5`.
fn labels(task: &Value, _: &Times) -> Cell {
    let labels = task["labels"].as_object().into_iter().flatten();
    let pairs = labels.map(|(key, value)| format!("{key}={}", text(value)));
    Cell::new(pairs.collect::<Vec<_>>().join(" "))
}

/// Into how many it is cut; before its start that may be `auto`.
fn shards(task: &Value, _: &Times) -> Cell {
    match list(&task["shard_list"]).len() {
        0 => Cell::member(task, "shards"),
        cut => Cell::new(cut.to_string()),
    }
}

/// `12`, `12 (9 made good)`.
fn failed(task: &Value, _: &Times) -> Cell {
    let failed = task["counts"]["abandoned"].as_u64();
    let made_good = words::made_good(task).filter(|good| *good > 0);
    let cell = Cell::count(failed);
    let is_left = failed > made_good.or(Some(0));
    let cell = match made_good {
        Some(good) => with_made_good(cell, good),
        None => cell,
    };
    cell.tone(if is_left { Tone::Bad } else { Tone::Plain })
}

#[cfg(test)]
mod tests;
