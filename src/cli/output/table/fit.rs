//! Column widths that fit the terminal: texts are shortened first, then columns are dropped, the least important
//! first.

use console::measure_text_width;

use super::{Cell, Column, Keep, clean};

/// Space between two columns. Unit: terminal cells.
pub(super) const GAP: usize = 2;

/// Returns the width of each column, `None` for one that is dropped.
pub(super) fn places<T>(
    columns: &[&Column<T>],
    rows: &[Vec<Cell>],
    room: Option<usize>,
) -> Vec<Option<usize>> {
    let natural = columns.iter().enumerate().map(|(at, column)| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(at))
            .map(|cell| measure_text_width(&clean(&cell.text)));
        cells.chain([measure_text_width(column.title)]).max().unwrap_or(0)
    });
    let natural: Vec<usize> = natural.collect();
    let mut places: Vec<Option<usize>> = natural.iter().copied().map(Some).collect();
    let Some(room) = room else { return places };
    loop {
        places.iter_mut().zip(&natural).for_each(|(place, width)| {
            if place.is_some() {
                *place = Some(*width);
            }
        });
        shorten(&mut places, room, |at| columns[at].least);
        if total(&places) <= room {
            return places;
        }
        match least_important(columns, &places) {
            Some(at) => places[at] = None,
            None => break,
        }
    }
    // Only mandatory columns are left and share the space.
    shorten(&mut places, room, |_| 1);
    places
}

/// Repeatedly takes a cell from the widest column, until lines fit or all columns have their minimum.
fn shorten(places: &mut [Option<usize>], room: usize, least: impl Fn(usize) -> usize) {
    let mut excess = total(places).saturating_sub(room);
    while excess > 0 {
        let wide = places
            .iter()
            .enumerate()
            .filter_map(|(at, place)| place.map(|width| (at, width)));
        let spare = wide.filter(|(at, width)| *width > least(*at));
        let Some((at, width)) = spare.max_by_key(|(_, width)| *width) else {
            return;
        };
        places[at] = Some(width - 1);
        excess -= 1;
    }
}

fn least_important<T>(columns: &[&Column<T>], places: &[Option<usize>]) -> Option<usize> {
    let shown = (0..columns.len()).filter(|at| places[*at].is_some());
    let ranked = shown.filter_map(|at| match columns[at].keep {
        Keep::Always => None,
        Keep::Rank(rank) => Some((rank, at)),
        Keep::Wide | Keep::Csv => Some((0, at)),
    });
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, at)| at)
}

/// Returns the width of a line.
fn total(places: &[Option<usize>]) -> usize {
    let shown = places.iter().flatten();
    shown.clone().sum::<usize>() + shown.count().saturating_sub(1) * GAP
}
