//! Lower lines: the open panel, recent events, the answer to the last key, and the keys.

use super::super::state::{Panel, State};
use super::super::tail::Entry;
use super::flow::{Sheet, flow, line, piece, wrapped};
use crate::output::judgement::of_them_unconfirmed;
use crate::output::table::{Tone, clean, human};
use crate::task::look::carried::who;

/// Largest number of recent events shown.
const TAIL_LINES: usize = 6;
/// Text about the keys, for `?`.
const HELP: &str = "q    quit; the task continues
s    stop the task (asks first)
g    start it again
+ -  rate ten percent up or down
r    enter a rate: 250/s, 30/m, unlimited
f    failures by code
e    explain the speed
?    these keys
Esc  close the panel";

pub(super) fn panel(state: &State, sheet: &Sheet) -> Vec<String> {
    match &state.panel {
        Panel::Closed => Vec::new(),
        Panel::Help => wrapped(HELP, Tone::Plain, 1, sheet),
        Panel::Failures(None) | Panel::Explain(None) => line("…", Tone::Dim, 1, sheet),
        Panel::Failures(Some(groups)) if groups.is_empty() => line("no failures", Tone::Good, 1, sheet),
        Panel::Failures(Some(groups)) => groups.iter().flat_map(|group| failures(group, sheet)).collect(),
        Panel::Explain(Some(text)) => wrapped(text, Tone::Plain, 1, sheet),
    }
}

fn failures(group: &api::FailureGroup, sheet: &Sheet) -> Vec<String> {
    let [count, index] = [group.count, group.example_index].map(human::count);
    let (code, example) = (&group.code, &group.example);
    let of_them = of_them_unconfirmed(group.unconfirmed);
    let failure = clean(&format!("{count:>8}  {code}{of_them}  #{index} {example}"));
    about(&failure, &who(group.example_data.as_deref()), Tone::Plain, sheet)
}

pub(super) fn tail(state: &State, sheet: &Sheet) -> Vec<String> {
    let shown = state
        .tail
        .iter()
        .skip(state.tail.len().saturating_sub(TAIL_LINES));
    let entry = |entry: &Entry| about(&entry.line(state.style), &entry.who, entry.tone, sheet);
    shown.flat_map(entry).collect()
}

/// Formats a line that ends with its subject.
fn about(text: &str, who: &str, tone: Tone, sheet: &Sheet) -> Vec<String> {
    line(
        &human::ended(text, who, sheet.width.saturating_sub(1)),
        tone,
        1,
        sheet,
    )
}

pub(super) fn note(state: &State, sheet: &Sheet) -> Vec<String> {
    let typed = state.typed.as_ref();
    let typed = typed.map(|typed| format!("rate: {typed}▏  Enter sets it, Esc cancels"));
    let asked = state
        .asks
        .then(|| "Stop the task? It can be started again. [y/N]".to_owned());
    match (typed.or(asked), &state.note) {
        (Some(question), _) => wrapped(&question, Tone::Warn, 0, sheet),
        (None, Some(note)) => wrapped(note, Tone::Strong, 0, sheet),
        (None, None) => Vec::new(),
    }
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
