//! Lines of a table: padded by display width, which matters for CJK text, and coloured.

use console::{Alignment, Style, measure_text_width, pad_str, truncate_str};

use super::fit::GAP;
use super::{Cell, Column, Side, clean};

/// Meaning of a colour in the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neutral: the default colour.
    #[default]
    Plain,
    /// Healthy: progress as expected.
    Good,
    /// Warning: recovers without help, but is worth a look.
    Warn,
    /// Error: somebody has to act.
    Bad,
    /// Waiting for something else.
    Wait,
    /// Absent, over or secondary.
    Dim,
    /// Emphasized: the subject of the line.
    Strong,
}

impl Tone {
    /// Colours a text, unless colours are off.
    pub fn paint(self, text: &str, colours: bool) -> String {
        let style = Style::new().force_styling(true);
        let style = match self {
            _ if !colours || text.is_empty() => return text.to_owned(),
            Tone::Plain => return text.to_owned(),
            Tone::Good => style.green(),
            Tone::Warn => style.yellow(),
            Tone::Bad => style.red(),
            Tone::Wait => style.cyan(),
            Tone::Dim => style.dim(),
            Tone::Strong => style.bold(),
        };
        style.apply_to(text).to_string()
    }
}

pub(super) fn head<T>(columns: &[&Column<T>], places: &[Option<usize>], colours: bool) -> String {
    let cells = columns
        .iter()
        .map(|column| Cell::new(column.title).tone(Tone::Dim));
    row(columns, &cells.collect::<Vec<_>>(), places, colours)
}

pub(super) fn row<T>(
    columns: &[&Column<T>],
    cells: &[Cell],
    places: &[Option<usize>],
    colours: bool,
) -> String {
    let shown = columns.iter().zip(cells).zip(places);
    let shown: Vec<_> = shown
        .filter_map(|((column, cell), place)| Some((column, cell, (*place)?)))
        .collect();
    let mut line = String::new();
    for (at, (column, cell, width)) in shown.iter().enumerate() {
        let side = match column.side {
            Side::Left => Alignment::Left,
            Side::Right => Alignment::Right,
        };
        let text = fitting(cell, *width);
        let padded = pad_str(&text, *width, side, None);
        // Don't pad the end of a line, so that copied text has no trailing spaces.
        let is_last = at + 1 == shown.len();
        let padded = if is_last { padded.trim_end() } else { &padded };
        let blanks = if is_last { 0 } else { GAP };
        line += &cell.tone.paint(padded, colours);
        line.extend(std::iter::repeat_n(' ', blanks));
    }
    let line = if colours { line } else { line.trim_end().to_owned() };
    line + "\n"
}

/// Returns the cell's text or its short form, cut to the width.
fn fitting(cell: &Cell, width: usize) -> String {
    let text = clean(&cell.text);
    match &cell.short {
        _ if measure_text_width(&text) <= width => text,
        Some(short) => truncate_str(&clean(short), width, "…").into_owned(),
        None => truncate_str(&text, width, "…").into_owned(),
    }
}
