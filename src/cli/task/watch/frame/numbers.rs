//! The upper lines: what it is, how far, how fast, where its items stand.

use std::time::Duration;

use console::measure_text_width;
use serde_json::Value;

use super::super::state::State;
use super::flow::{Piece, Sheet, flow, piece};
use crate::output::table::times::{TimeStyle, Times};
use crate::output::table::{Tone, human};
use crate::task::look::show::TERMS;
use crate::task::words;
use windrow_core::explain::{CauseKind, rate_text};
use windrow_core::stats::stall::StallReason;

/// The longest and the shortest bar. Unit: terminal cells.
const BAR_CELLS: [usize; 2] = [40, 10];
/// The longest sparkline. Unit: terminal cells.
const SPARK_CELLS: usize = 20;
/// Signs of a sparkline, from nothing to the highest. A full block is an item that succeeded.
const LEVELS: [char; 7] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇'];

pub(super) fn head(state: &State, sheet: &Sheet) -> Vec<String> {
    let task = &state.task;
    let (status, tone) = words::status(task);
    let mut pieces = vec![piece(words::address(task), Tone::Strong)];
    if task["name"].is_string() {
        pieces.push(piece(state.id(), Tone::Plain));
    }
    pieces.push(piece(status, tone));
    if let Some((run, node)) = &state.run {
        pieces.push(piece(format!("run {run} on {node}"), Tone::Dim));
    }
    if let Some(rate) = task["rate"].as_str() {
        let text = if rate == "unlimited" {
            "no rate limit".to_owned()
        } else {
            format!("rate {rate}")
        };
        pieces.push(piece(text, Tone::Plain));
    }
    if let Some(since) = state.lost_at_ms {
        let age = human::span(Duration::from_millis(
            state.now_ms.saturating_sub(since).unsigned_abs(),
        ));
        pieces.push(piece(format!("! stale for {age}, reconnecting"), Tone::Bad));
    }
    flow(&pieces, 2, [0, 1], sheet)
}

pub(super) fn progress(state: &State, sheet: &Sheet) -> Vec<String> {
    let (done, total) = words::done(&state.task);
    let mut texts = vec![
        human::percent_text(done, total),
        format!("{} / {}", human::count(done), human::count(total)),
    ];
    texts.extend(words::eta(&state.task).map(|eta| format!("ETA {}", human::span(eta))));
    let rest: usize = texts.iter().map(|text| measure_text_width(text) + 2).sum();
    let cells = sheet.width.saturating_sub(rest + 1).min(BAR_CELLS[0]);
    // Where there is no room beside it, it has a line of its own.
    let cells = if cells < BAR_CELLS[1] {
        sheet.width.saturating_sub(2).min(BAR_CELLS[0])
    } else {
        cells
    };
    let tone = if state.task["counts"]["abandoned"].as_u64() > Some(0) {
        Tone::Warn
    } else {
        Tone::Good
    };
    let mut pieces = vec![piece(words::bar(&state.task, cells), tone)];
    pieces.extend(texts.into_iter().map(|text| piece(text, Tone::Plain)));
    flow(&pieces, 2, [1, 1], sheet)
}

pub(super) fn pace(state: &State, sheet: &Sheet) -> Vec<String> {
    let (task, pace) = (&state.task, &state.pace);
    let is_moving = matches!(task["status"].as_str(), Some("running" | "stopping"));
    let mut pieces = Vec::new();
    if let Some(actual) = task["actual_rate"].as_f64().filter(|_| is_moving) {
        pieces.push(piece(format!("{} now", rate_text(actual)), Tone::Strong));
    }
    if !pace.points.is_empty() {
        pieces.push(piece(spark(&pace.points, pace.target, SPARK_CELLS), Tone::Wait));
    }
    if let (Some(p50), Some(p95)) = (pace.p50, pace.p95) {
        pieces.push(piece(
            format!("p50 {}  p95 {}", took(p50), took(p95)),
            Tone::Plain,
        ));
    }
    if let Some(errors) = pace.errors.filter(|_| is_moving) {
        let of = task["error_budget"]
            .as_str()
            .map(|budget| format!(" of {budget}"))
            .unwrap_or_default();
        let tone = if errors > 0.0 { Tone::Warn } else { Tone::Plain };
        pieces.push(piece(format!("errors {}{of}", rate_text(errors)), tone));
    }
    if let Some(stall) = task["live"]["stall"].as_str().filter(|_| is_moving) {
        pieces.push(piece(format!("waits: {}", cause(stall)), Tone::Warn));
    }
    flow(&pieces, 2, [1, 1], sheet)
}

/// Why it stands where it stands, and what comes next by itself.
pub(super) fn because(state: &State, sheet: &Sheet) -> Vec<String> {
    let task = &state.task;
    let text = task["status_text"].as_str().unwrap_or_default();
    let times = Times {
        style: TimeStyle::Relative,
        now_ms: state.now_ms,
    };
    let next = match (task["next"]["action"].as_str(), task["next"]["at"].as_str()) {
        // What a task that runs does by itself, its deadline, is no news.
        (Some(action), Some(at)) if task["status"] != "running" => {
            format!("next: {action} {}", times.text(at))
        }
        _ => String::new(),
    };
    let words: Vec<Piece> = text
        .split_whitespace()
        .map(|word| piece(word, Tone::Warn))
        .collect();
    let mut lines = flow(&words, 1, [1, 3], sheet);
    lines.extend(flow(&[piece(next, Tone::Plain)], 1, [1, 1], sheet));
    lines
}

pub(super) fn counts(state: &State, sheet: &Sheet) -> Vec<String> {
    let counts = &state.task["counts"];
    let pieces: Vec<Piece> = TERMS.iter().filter_map(|name| count(counts, name)).collect();
    flow(&pieces, 2, [1, 1], sheet)
}

/// What never happens in most tasks is named only where it did.
fn count(counts: &Value, name: &str) -> Option<Piece> {
    let number = counts[name].as_u64()?;
    let tone = match name {
        _ if number == 0 => Tone::Dim,
        "abandoned" => Tone::Bad,
        "parked" => Tone::Warn,
        _ => Tone::Plain,
    };
    let is_shown = number > 0 || !matches!(name, "parked" | "excluded");
    is_shown.then(|| {
        piece(
            format!("{} {}", name.replace('_', " "), human::count(number)),
            tone,
        )
    })
}

/// The words of an explanation, for what holds items back.
fn cause(slug: &str) -> String {
    let known = StallReason::ALL
        .into_iter()
        .find(|reason| reason.as_str() == slug);
    known.map_or_else(
        || slug.replace('_', " "),
        |reason| CauseKind::Stall(reason).title().to_owned(),
    )
}

/// `▁▃▇`: points of a height of their own, the newest at the right; several points to a cell are averaged.
fn spark(points: &[f64], target: Option<f64>, cells: usize) -> String {
    let per_cell = points.len().div_ceil(cells).max(1);
    let averages: Vec<f64> = points
        .rchunks(per_cell)
        .rev()
        .map(|some| some.iter().sum::<f64>() / some.len() as f64)
        .collect();
    let top = averages.iter().copied().chain(target).fold(0.0, f64::max);
    let highest = LEVELS.len() - 1;
    let level = |value: f64| {
        if top > 0.0 {
            (value / top * highest as f64).round() as usize
        } else {
            0
        }
    };
    averages
        .into_iter()
        .map(|value| LEVELS[level(value.max(0.0)).min(highest)])
        .collect()
}

/// `118ms`, `2.4s`.
fn took(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 0.0095 => format!("{:.1}ms", seconds * 1000.0),
        seconds if seconds < 0.9995 => format!("{:.0}ms", seconds * 1000.0),
        seconds => format!("{seconds:.1}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_is_scaled_to_the_target_or_what_was_more() {
        assert_eq!(spark(&[0.0, 50.0, 100.0], Some(100.0), 20), "▁▄▇");
        assert_eq!(spark(&[50.0, 200.0], Some(100.0), 20), "▃▇");
        assert_eq!(spark(&[0.0, 0.0], None, 20), "▁▁");
        assert_eq!(spark(&[1.0; 60], None, 20), "▇".repeat(20));
        assert_eq!(spark(&[0.0, 1.0, 1.0, 1.0], None, 2), "▄▇");
    }

    #[test]
    fn times_of_calls_have_the_digits_that_matter() {
        assert_eq!(
            [0.0004, 0.0118, 0.453, 2.41].map(took),
            ["0.4ms", "12ms", "453ms", "2.4s"]
        );
    }
}
