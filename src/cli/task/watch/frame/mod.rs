//! Drawing of a task as a pure function from the state and the size of the terminal to lines.

mod below;
mod flow;
mod numbers;
#[cfg(test)]
mod tests;
mod window;

pub(super) use self::flow::Sheet;
use super::state::State;

/// Section of the picture, with its rank: where room is short, the highest rank goes first.
type Part = (fn(&State, &Sheet) -> Vec<String>, u8);

/// Rank of the events, the first section to go.
const TAIL_RANK: u8 = 10;
/// Sections from top to bottom.
const PARTS: [Part; 11] = [
    (numbers::head, 0),
    (numbers::progress, 2),
    (numbers::pace, 4),
    (numbers::counts, 3),
    (numbers::because, 5),
    (window::windows, 6),
    (window::held, 5),
    (window::legend, 9),
    (below::panel, 7),
    (below::tail, TAIL_RANK),
    (below::note, 1),
];
/// Line of keys, which goes before the sections that the keys act on.
const FOOT: Part = (below::foot, 8);

/// Returns the lines of the picture: none wider than the sheet, and fewer than its height.
pub(super) fn frame(state: &State, sheet: &Sheet) -> Vec<String> {
    let parts = PARTS.iter().chain([&FOOT]);
    let mut drawn: Vec<(Vec<String>, u8)> = parts.map(|(draw, rank)| (draw(state, sheet), *rank)).collect();
    // The cursor stands below the last line.
    let room = sheet.height.saturating_sub(1).max(1);
    while drawn.iter().map(|(lines, _)| lines.len()).sum::<usize>() > room {
        let last = drawn
            .iter_mut()
            .filter(|(lines, _)| !lines.is_empty())
            .max_by_key(|(_, rank)| *rank);
        let Some((lines, rank)) = last else { break };
        // Of what happened the newest stays, of all else the beginning.
        if *rank == TAIL_RANK {
            drop(lines.remove(0))
        } else {
            drop(lines.pop())
        }
    }
    let lines = drawn.into_iter().flat_map(|(lines, _)| lines);
    lines
        .map(|line| if sheet.is_ascii { flow::ascii(&line) } else { line })
        .collect()
}
