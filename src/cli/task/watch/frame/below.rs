//! The lower lines: what lies open, what happened, the answer to the last key, the keys.

use serde_json::Value;

use super::super::state::{Panel, State};
use super::super::tail::{Told, who};
use super::flow::{Sheet, flow, line, piece, wrapped};
use crate::output::table::{Tone, clean, human};

/// Lines of what happened that are shown.
const TAIL_LINES: usize = 6;
/// The keys, for `?`.
const HELP: [&str; 9] = [
    "q    quit; the task goes on",
    "s    stop the task (asks first)",
    "g    start it again",
    "+ -  rate ten percent up or down",
    "r    type a rate: 250/s, 30/m, unlimited",
    "f    failures by code",
    "e    why it is as fast as it is",
    "?    these keys",
    "Esc  close what lies open",
];

pub(super) fn panel(state: &State, sheet: &Sheet) -> Vec<String> {
    match &state.panel {
        Panel::Closed => Vec::new(),
        Panel::Help => HELP
            .iter()
            .flat_map(|text| line(text, Tone::Plain, 1, sheet))
            .collect(),
        Panel::Failures(None) | Panel::Explain(None) => line("…", Tone::Dim, 1, sheet),
        Panel::Failures(Some(groups)) if groups.is_empty() => line("no failures", Tone::Good, 1, sheet),
        Panel::Failures(Some(groups)) => groups.iter().flat_map(|group| failures(group, sheet)).collect(),
        Panel::Explain(Some(text)) => wrapped(text, Tone::Plain, 1, sheet),
    }
}

fn failures(group: &Value, sheet: &Sheet) -> Vec<String> {
    let text = |name: &str| group[name].as_str().unwrap_or_default();
    let number = |name: &str| human::count(group[name].as_u64().unwrap_or(0));
    let example = format!("#{} {}", number("example_index"), text("example"));
    let failure = clean(&format!("{:>8}  {}  {example}", number("count"), text("code")));
    let failure = human::ended(
        &failure,
        &who(&group["example_data"]),
        sheet.width.saturating_sub(1),
    );
    line(&failure, Tone::Plain, 1, sheet)
}

pub(super) fn tail(state: &State, sheet: &Sheet) -> Vec<String> {
    let shown = state
        .tail
        .iter()
        .skip(state.tail.len().saturating_sub(TAIL_LINES));
    let text = |told: &Told| human::ended(&told.line(state.style), &told.who, sheet.width.saturating_sub(1));
    shown
        .flat_map(|told| line(&text(told), told.tone, 1, sheet))
        .collect()
}

pub(super) fn note(state: &State, sheet: &Sheet) -> Vec<String> {
    if let Some(typed) = &state.typed {
        let text = format!("rate: {typed}▏  Enter gives it to the task, Esc leaves it");
        return wrapped(&text, Tone::Warn, 0, sheet);
    }
    if state.asks {
        return wrapped(
            "stop the task? It can be started again. [y/N]",
            Tone::Warn,
            0,
            sheet,
        );
    }
    state
        .note
        .as_ref()
        .map_or_else(Vec::new, |note| wrapped(note, Tone::Strong, 0, sheet))
}

pub(super) fn foot(state: &State, sheet: &Sheet) -> Vec<String> {
    if !state.has_keys {
        return Vec::new();
    }
    let keys = [
        "q quit",
        "s stop",
        "g start",
        "r +/- rate",
        "f failures",
        "e explain",
        "? help",
    ];
    flow(&keys.map(|key| piece(key, Tone::Dim)), 2, [0, 0], sheet)
}
