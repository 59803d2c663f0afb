//! Pieces of text that flow into lines of a width.

use console::{measure_text_width, truncate_str};

use crate::output::table::{Tone, clean};

/// What is drawn on.
#[derive(Clone, Copy, Debug)]
pub(in crate::task::watch) struct Sheet {
    /// Terminal cells of a line.
    pub(in crate::task::watch) width: usize,
    /// Lines.
    pub(in crate::task::watch) height: usize,
    pub(in crate::task::watch) colours: bool,
    /// Whether the terminal has no more than ASCII.
    pub(in crate::task::watch) is_ascii: bool,
}

/// A text that is not broken.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    text: String,
    tone: Tone,
}

/// A piece.
pub(super) fn piece(text: impl AsRef<str>, tone: Tone) -> Piece {
    Piece {
        text: clean(text.as_ref()),
        tone,
    }
}

/// Lines of pieces with `gap` blanks between, the first line indented by `indents[0]`, all others by `indents[1]`.
pub(super) fn flow(pieces: &[Piece], gap: usize, indents: [usize; 2], sheet: &Sheet) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for piece in pieces.iter().filter(|piece| !piece.text.is_empty()) {
        let room = sheet
            .width
            .saturating_sub(indents[usize::from(!lines.is_empty())])
            .max(1);
        let text = truncate_str(&piece.text, room, "…");
        let width = measure_text_width(&text);
        let painted = piece.tone.paint(&text, sheet.colours);
        match lines.last_mut() {
            Some(line) if used + gap + width <= sheet.width => {
                line.extend(std::iter::repeat_n(' ', gap));
                line.push_str(&painted);
                used += gap + width;
            }
            last => {
                let indent = indents[usize::from(last.is_some())].min(sheet.width.saturating_sub(width));
                lines.push(" ".repeat(indent) + &painted);
                used = indent + width;
            }
        }
    }
    lines
}

/// One line, cut off at the edge.
pub(super) fn line(text: &str, tone: Tone, indent: usize, sheet: &Sheet) -> Vec<String> {
    flow(&[piece(text, tone)], 1, [indent; 2], sheet)
}

/// A text broken between its words; each of its lines begins anew.
pub(super) fn wrapped(text: &str, tone: Tone, indent: usize, sheet: &Sheet) -> Vec<String> {
    let lines = text.lines().flat_map(|line| {
        let is_short = measure_text_width(line) + indent <= sheet.width;
        // What fits keeps its columns.
        let words: Vec<Piece> = match is_short {
            true => vec![piece(line, tone)],
            false => line.split_whitespace().map(|word| piece(word, tone)).collect(),
        };
        flow(&words, 1, [indent, indent + 2], sheet)
    });
    lines.collect()
}

/// The same line for a terminal with ASCII only: each sign of ours has its stand-in of the same width. What people
/// wrote stays as it is.
pub(super) fn ascii(line: &str) -> String {
    let stand_in = |sign| match sign {
        '█' | '■' => '#',
        '▓' => '>',
        '▒' => 'r',
        '░' => '.',
        '✕' | '✗' | '×' => 'x',
        '│' => '|',
        '▏' | '▎' | '▍' | '▌' | '▋' | '▊' | '▉' => '=',
        '▁' => '_',
        '▂' | '▃' => ':',
        '▄' | '▅' => '+',
        '▆' | '▇' => '*',
        '–' => '-',
        '·' => ',',
        '∞' => '*',
        '▶' | '→' => '>',
        '○' | '◌' | '◐' => 'o',
        '↻' | '!' => '!',
        '✓' => 'v',
        '…' => '~',
        '±' => '~',
        other => other,
    };
    line.chars().map(stand_in).collect()
}
