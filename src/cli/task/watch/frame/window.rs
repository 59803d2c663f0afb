//! Window drawn with characters: a cell per item, or per several items if there is no room, and the item that holds
//! it up.

use std::time::Duration;

use console::measure_text_width;

use super::super::state::{State, Window};
use super::flow::{Sheet, flow, piece};
use crate::output::table::{Tone, human};

/// Largest number of shards drawn.
const SHARDS_MAX: usize = 4;
/// Age from which an item counts as holding up the window. Unit: seconds.
const HELD_FROM: f64 = 1.0;
/// Letter, sign, word and colour of each state. A cell for several items shows the last of these states that any of
/// them has.
const CELLS: [(char, char, &str, Tone); 6] = [
    ('S', '█', "succeeded", Tone::Good),
    ('P', '░', "free", Tone::Dim),
    ('F', '▓', "in flight", Tone::Wait),
    ('K', '○', "parked", Tone::Warn),
    ('R', '▒', "retry", Tone::Warn),
    ('A', '✕', "failed", Tone::Bad),
];

pub(super) fn windows(state: &State, sheet: &Sheet) -> Vec<String> {
    let some = state.windows.iter().take(SHARDS_MAX);
    let mut lines: Vec<String> = some.filter_map(|window| strip(window, state, sheet)).collect();
    if state.windows.len() > SHARDS_MAX {
        lines.push(format!(" … and {} more shards", state.windows.len() - SHARDS_MAX));
    }
    lines
}

/// Formats the item that has held up its window longest, among all shards.
pub(super) fn held(state: &State, sheet: &Sheet) -> Vec<String> {
    let heads = state.windows.iter().filter_map(|window| window.head.as_ref());
    let oldest = heads.max_by(|one, other| one.age_seconds.total_cmp(&other.age_seconds));
    let Some(head) = oldest.filter(|head| head.age_seconds >= HELD_FROM) else {
        return Vec::new();
    };
    let age = human::span(Duration::try_from_secs_f64(head.age_seconds).unwrap_or(Duration::MAX));
    let (index, attempt) = (human::count(head.index), head.attempt);
    let text = format!("held by #{index} (attempt {attempt}, {age})");
    flow(&[piece(text, Tone::Warn)], 1, [1, 1], sheet)
}

pub(super) fn legend(state: &State, sheet: &Sheet) -> Vec<String> {
    if state.windows.iter().all(|window| window.cells.is_empty()) {
        return Vec::new();
    }
    let pieces = signs(state).map(|(sign, word, _)| piece(format!("{sign} {word}"), Tone::Dim));
    flow(&pieces, 2, [1, 1], sheet)
}

/// Returns the sign, word and colour of each rank. A node doesn't distinguish succeeded from skipped items: if some
/// were skipped, both get another sign, since a full block means succeeded.
fn signs(state: &State) -> [(char, &'static str, Tone); 6] {
    let has_skipped = state.task.counts.skipped > 0;
    CELLS.map(|(letter, sign, word, tone)| match (letter, has_skipped) {
        ('S', true) => ('■', "succeeded or skipped", tone),
        _ => (sign, word, tone),
    })
}

/// Draws ` window 389,329 │█▓░│ 390,529`, from the watermark to the high water mark. `None` if no item is in the
/// window.
fn strip(window: &Window, state: &State, sheet: &Sheet) -> Option<String> {
    let label = format!(" window {} ", human::count(window.watermark));
    let end = format!(" {}", human::count(window.high_water));
    let used = measure_text_width(&label) + measure_text_width(&end) + 2;
    let room = sheet.width.checked_sub(used).filter(|room| *room > 0)?;
    let (ranks, signs) = (scaled(&window.cells, room), signs(state));
    let mut text = label + "│";
    for same in ranks.chunk_by(|one, next| one == next) {
        let (sign, _, tone) = signs[same[0]];
        text += &tone.paint(&String::from(sign).repeat(same.len()), sheet.colours);
    }
    (!ranks.is_empty()).then(|| text + "│" + &end)
}

/// Reduces the cells to at most `room`, as ranks in `CELLS`. A reduced cell has the highest rank of its items.
fn scaled(cells: &[char], room: usize) -> Vec<usize> {
    let rank = |letter: &char| CELLS.iter().position(|(known, ..)| known == letter).unwrap_or(0);
    let count = cells.len().min(room);
    let part = |at: usize| at * cells.len() / count;
    (0..count)
        .map(|at| cells[part(at)..part(at + 1)].iter().map(rank).max().unwrap_or(0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_never_lost_when_they_are_drawn_together() {
        let cells: Vec<char> = "SSSSSSRSSSSSSSSSSSSPPPPP".chars().collect();
        for room in 1..40 {
            let ranks = scaled(&cells, room);
            assert_eq!(ranks.len(), room.min(cells.len()));
            assert_eq!(ranks.iter().filter(|rank| **rank == 4).count(), 1, "{room}");
        }
        assert!(scaled(&[], 10).is_empty());
        assert_eq!(scaled(&['Z'], 10), vec![0]);
    }
}
