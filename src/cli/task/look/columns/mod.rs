//! Columns of a list of tasks.

use api::Task;

use crate::output::judgement::with_recovered;
use crate::output::table::times::Times;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone};
use crate::task::words;
use windrow_core::ids::WallMs;

/// Width of the bar next to the percentage. Unit: terminal cells.
const BAR_CELLS: usize = 7;

/// Listing of tasks with their progress.
pub(crate) const TASKS: Listing<Task> = Listing {
    columns: &[
        Column::text("ID", Keep::Always, 4, |task: &Task| &task.id).tone(Tone::Strong),
        Column::text("BUSINESS", Keep::Rank(40), 8, |task| &task.business),
        Column::maybe("NAME", Keep::Rank(60), 12, |task| task.spec.name.as_deref()),
        Column::new("STATUS", Side::Left, Keep::Always, 13, status),
        Column::new("PROGRESS", Side::Left, Keep::Rank(90), 8, progress),
        Column::new("RATE", Side::Left, Keep::Rank(70), 9, rate).named("actual_rate"),
        Column::new("ETA", Side::Left, Keep::Rank(50), 4, eta),
        Column::new("FAILED", Side::Right, Keep::Rank(80), 6, failed).named("failed"),
        Column::maybe("NODE", Keep::Rank(20), 4, |task| task.beside.nodes.as_deref()),
        Column::count("TOTAL", Keep::Wide, 5, |task| Some(task.total)),
        Column::count("SUCCEEDED", Keep::Wide, 5, |task| Some(task.counts.succeeded)),
        Column::count("SKIPPED", Keep::Wide, 5, |task| Some(task.counts.skipped)),
        Column::count("IN_FLIGHT", Keep::Wide, 5, |task| Some(task.counts.in_flight)),
        Column::count("PARKED", Keep::Wide, 5, |task| Some(task.counts.parked)),
        Column::maybe("RESULT", Keep::Wide, 8, |task| task.result.as_deref()),
        Column::text("POOL", Keep::Wide, 4, |task| &task.pool),
        Column::maybe("PARENT", Keep::Wide, 4, |task| task.parent.as_deref()),
        Column::time("SINCE", Keep::Wide, |task| Some(&task.since)),
        Column::time("CREATED", Keep::Wide, |task: &Task| Some(&task.created_at)).named("created_at"),
        Column::time("STARTED", Keep::Wide, |task: &Task| task.started_at.as_deref()).named("started_at"),
        Column::time("FINISHED", Keep::Wide, |task: &Task| task.finished_at.as_deref()).named("finished_at"),
        // Further columns that programs compare; people see them in `task show`.
        Column::plain("RATE", Keep::Csv, 4, |task| {
            Some(task.settings.tuning.rate.to_string())
        }),
        Column::count("PENDING", Keep::Csv, 5, |task| Some(task.counts.pending)),
        Column::maybe("STOP REASON", Keep::Csv, 4, |task| task.stop_reason.as_deref()),
        Column::new("LABELS", Side::Left, Keep::Csv, 4, labels),
        Column::plain("PRIORITY", Keep::Csv, 4, |task| {
            Some(task.spec.priority.to_string())
        }),
        Column::new("LIMITS", Side::Left, Keep::Csv, 4, |task, _| {
            Cell::new(task.spec.limits.join(" "))
        }),
        Column::new("START AT", Side::Left, Keep::Csv, 4, |task, times| {
            Cell::time(task.spec.start_at.map(WallMs::to_rfc3339).as_deref(), times)
        }),
        Column::new("DEADLINE", Side::Left, Keep::Csv, 4, |task, times| {
            Cell::time(task.spec.deadline.map(WallMs::to_rfc3339).as_deref(), times)
        }),
        Column::count("WATERMARK", Keep::Csv, 5, |task| Some(task.watermark)),
        Column::new("SHARDS", Side::Right, Keep::Csv, 4, shards),
        Column::count("RECOVERED", Keep::Csv, 5, words::recovered),
        Column::count("STILL FAILED", Keep::Csv, 5, |task| {
            Some(task.beside.redriven.as_ref()?.still_failed)
        }),
    ],
    name: |task| task.id.clone(),
    none: "no tasks",
};

fn status(task: &Task, times: &Times) -> Cell {
    let (said, tone) = words::status_at(task, times);
    let cell = Cell::new(said).short(words::short_status(task));
    cell.plain(&task.status).tone(tone)
}

fn progress(task: &Task, _: &Times) -> Cell {
    let (done, total) = words::done(task);
    let percent = format!("{:>5}", words::percent(task));
    let plain = format!("{:.1}", task.pace.progress.percent);
    // Draw no bar for a task that hasn't started or is over: it would say nothing.
    if done == 0 || done >= total {
        return Cell::new(percent).plain(plain);
    }
    let cell = Cell::new(format!("{percent} {}", words::bar(task, BAR_CELLS)));
    cell.short(percent).plain(plain)
}

fn rate(task: &Task, times: &Times) -> Cell {
    let plain = task.pace.actual_rate.map(|rate| rate.to_string());
    let cell = match words::rate(task, times) {
        Some(text) => {
            let short = text.split(" in ").next().unwrap_or_default().to_owned();
            Cell::new(text).short(short)
        }
        None => Cell::nothing(),
    };
    cell.plain(plain.unwrap_or_default())
}

fn eta(task: &Task, _: &Times) -> Cell {
    match words::eta(task).zip(words::eta_text(task)) {
        Some((eta, text)) => {
            let more = if text.ends_with('+') { "+" } else { "" };
            let large = text.split([' ', '+']).next().unwrap_or_default();
            let short = format!("{large}{more}");
            Cell::new(text).short(short).plain(eta.as_secs().to_string())
        }
        None => Cell::nothing(),
    }
}

/// Formats the labels as `team=growth day=5`.
fn labels(task: &Task, _: &Times) -> Cell {
    let pairs = task
        .spec
        .labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    Cell::new(pairs.collect::<Vec<_>>().join(" "))
}

/// Formats the number of shards. Before the start it may be `auto`.
fn shards(task: &Task, _: &Times) -> Cell {
    match task.shard_list.len() {
        0 => Cell::new(task.spec.shards.0.to_string()),
        cut => Cell::new(cut.to_string()),
    }
}

/// Formats the number of failed items, with those that redrives recovered.
fn failed(task: &Task, _: &Times) -> Cell {
    let failed = task.counts.failed;
    let recovered = words::recovered(task).filter(|good| *good > 0);
    let cell = Cell::count(Some(failed));
    let is_left = failed > recovered.unwrap_or(0);
    let cell = match recovered {
        Some(good) => with_recovered(cell, good),
        None => cell,
    };
    cell.tone(if is_left { Tone::Bad } else { Tone::Plain })
}

#[cfg(test)]
mod tests;
