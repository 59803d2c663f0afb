//! Upper lines: identity, progress, pace, and counts of items.

use std::time::Duration;

use console::measure_text_width;

use super::super::state::State;
use super::flow::{Piece, Sheet, flow, piece};
use crate::output::table::times::{TimeStyle, Times};
use crate::output::table::{Tone, human};
use crate::output::{found, used};
use crate::task::words;
use windrow_core::explain::{CauseKind, rate_text};
use windrow_core::settings::RateLimit;
use windrow_core::stats::stall::StallReason;

/// Longest and shortest width of the bar. Unit: terminal cells.
const BAR_CELLS: [usize; 2] = [40, 10];
/// Longest width of the sparkline. Unit: terminal cells.
const SPARK_CELLS: usize = 20;
/// Signs of a sparkline, from lowest to highest. A full block is reserved for succeeded items.
const LEVELS: [char; 7] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇'];

pub(super) fn head(state: &State, sheet: &Sheet) -> Vec<String> {
    let task = &state.task;
    let (status, tone) = words::status(task);
    let id = task.spec.name.is_some().then(|| state.id().to_owned());
    let run = state
        .run
        .as_ref()
        .map(|(run, node)| format!("run {run} on {node}"));
    let rate = match task.settings.tuning.rate {
        RateLimit::Unlimited => "no rate limit".to_owned(),
        rate => format!("rate {rate}"),
    };
    let stale = state.lost_at_ms.map(|since| {
        let age = Duration::from_millis(state.now_ms.saturating_sub(since).unsigned_abs());
        format!("! stale for {}, reconnecting", human::span(human::whole(age)))
    });
    let stale = stale.or_else(|| {
        state
            .is_stale
            .then(|| "! stale: the node can't reach its database".to_owned())
    });
    let pieces = [
        (Some(words::address(task)), Tone::Strong),
        (id, Tone::Plain),
        (Some(status), tone),
        (run, Tone::Dim),
        (Some(rate), Tone::Plain),
        (stale, Tone::Bad),
    ];
    flow(&those(pieces), 2, [0, 1], sheet)
}

/// Collects the pieces that have a text.
fn those<const N: usize>(pieces: [(Option<String>, Tone); N]) -> Vec<Piece> {
    let pieces = pieces.into_iter();
    pieces
        .filter_map(|(text, tone)| Some(piece(text?, tone)))
        .collect()
}

pub(super) fn progress(state: &State, sheet: &Sheet) -> Vec<String> {
    let mut texts = vec![words::percent(&state.task), words::done_of(&state.task)];
    texts.extend(words::eta_text(&state.task).map(|eta| format!("ETA {eta}")));
    let rest: usize = texts.iter().map(|text| measure_text_width(text) + 2).sum();
    // Without room next to the text, the bar gets a line of its own.
    let cells = match sheet.width.saturating_sub(rest + 1) {
        room if room < BAR_CELLS[1] => sheet.width.saturating_sub(2),
        room => room,
    };
    let tone = if words::is_failed_still(&state.task) {
        Tone::Warn
    } else {
        Tone::Good
    };
    let mut pieces = vec![piece(words::bar(&state.task, cells.min(BAR_CELLS[0])), tone)];
    pieces.extend(texts.into_iter().map(|text| piece(text, Tone::Plain)));
    flow(&pieces, 2, [1, 1], sheet)
}

pub(super) fn pace(state: &State, sheet: &Sheet) -> Vec<String> {
    let (task, pace) = (&state.task, &state.pace);
    if state.is_stale {
        return Vec::new();
    }
    let is_moving = matches!(task.status.as_str(), "running" | "stopping");
    let now = task
        .pace
        .actual_rate
        .map(|actual| format!("{} now", rate_text(actual)));
    let spark = (!pace.points.is_empty()).then(|| spark(&pace.points, pace.target, SPARK_CELLS));
    let took = pace.p50.zip(pace.p95);
    let took = took.map(|(p50, p95)| format!("p50 {}  p95 {}", human::seconds(p50), human::seconds(p95)));
    let budget = task.settings.tuning.error_budget.to_string();
    let allowed = budget.split(' ').find(|word| word.contains('/'));
    let budget = allowed.map(|allowed| format!(" of {allowed}"));
    let errors = pace
        .errors
        .map(|errors| format!("errors {}{}", rate_text(errors), budget.unwrap_or_default()));
    let errors_tone = if pace.errors > Some(0.0) {
        Tone::Warn
    } else {
        Tone::Plain
    };
    let live = task.live.as_ref();
    let stall = live
        .and_then(|live| live.stall.as_deref())
        .filter(|_| !words::waits_for_items(task))
        .map(|stall| match StallReason::parse(stall) {
            Some(StallReason::Autopilot | StallReason::Usage) => cause(stall),
            _ => format!("waiting: {}", cause(stall).trim_start_matches("waiting for ")),
        });
    let found = live
        .and_then(|live| live.autopilot.as_ref())
        .filter(|_| task.settings.tuning.rate.is_auto())
        .map(found::brief_of);
    let pieces = [
        (now.filter(|_| is_moving), Tone::Strong),
        (found.filter(|_| is_moving), Tone::Plain),
        (spark, Tone::Wait),
        (took, Tone::Plain),
        (errors.filter(|_| is_moving), errors_tone),
        (stall.filter(|_| is_moving), Tone::Warn),
    ];
    flow(&those(pieces), 2, [1, 1], sheet)
}

/// Formats the reason for the task's status, and its next step.
pub(super) fn because(state: &State, sheet: &Sheet) -> Vec<String> {
    let (task, now_ms) = (&state.task, state.now_ms);
    let style = TimeStyle::Relative;
    let next = match &task.next {
        // The next step of a running task is its deadline, which isn't news.
        Some(next) if task.status != "running" => {
            format!("next: {} {}", next.action, Times { style, now_ms }.text(&next.at))
        }
        _ => String::new(),
    };
    let words = task.status_text.as_deref().unwrap_or_default();
    let words: Vec<Piece> = words
        .split_whitespace()
        .map(|word| piece(word, Tone::Warn))
        .collect();
    let mut lines = flow(&words, 1, [1, 3], sheet);
    lines.extend(flow(&[piece(next, Tone::Plain)], 1, [1, 1], sheet));
    lines
}

pub(super) fn counts(state: &State, sheet: &Sheet) -> Vec<String> {
    let counts = &state.task.counts;
    let pieces = words::TERMS.map(|name| {
        let tone = match name {
            _ if words::count(counts, name) == 0 => Tone::Dim,
            "failed" => Tone::Bad,
            "parked" => Tone::Warn,
            _ => Tone::Plain,
        };
        piece(words::counts(counts, &[name], &words::RARE), tone)
    });
    let mut lines = flow(&pieces, 2, [1, 1], sheet);
    lines.extend(flow(&those([used(state)]), 2, [1, 1], sheet));
    lines
}

fn used(state: &State) -> (Option<String>, Tone) {
    let costs = state.task.costs.as_ref();
    let tone = match used::is_nearly_used(costs) {
        true => Tone::Warn,
        false => Tone::Plain,
    };
    (used::used_of(costs).map(|used| format!("used {used}")), tone)
}

/// Returns the words of an explanation for a stall.
fn cause(slug: &str) -> String {
    let mut known = StallReason::ALL.into_iter();
    match known.find(|reason| reason.as_str() == slug) {
        Some(reason) => CauseKind::Stall(reason).title().to_string(),
        None => slug.replace('_', " "),
    }
}

/// Draws a sparkline such as `▁▃▇`, scaled to its highest point, newest at the right. Several points per cell are
/// averaged.
fn spark(points: &[f64], target: Option<f64>, cells: usize) -> String {
    let per_cell = points.len().div_ceil(cells).max(1);
    let averages: Vec<f64> = points
        .rchunks(per_cell)
        .rev()
        .map(|some| some.iter().sum::<f64>() / some.len() as f64)
        .collect();
    let top = averages.iter().copied().chain(target).fold(0.0, f64::max);
    let highest = LEVELS.len() - 1;
    let level = |value: f64| match top > 0.0 {
        true => (value.max(0.0) / top * highest as f64).round() as usize,
        false => 0,
    };
    let levels = averages.into_iter();
    levels.map(|value| LEVELS[level(value).min(highest)]).collect()
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
}
