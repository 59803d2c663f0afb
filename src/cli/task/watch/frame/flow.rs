//! Text pieces that are arranged into lines of a given width.

use console::{measure_text_width, truncate_str};

use crate::output::table::{Tone, clean};

/// Area to draw on, with its abilities.
#[derive(Clone, Copy, Debug)]
pub(in crate::task::watch) struct Sheet {
    /// Number of terminal cells per line.
    pub(in crate::task::watch) width: usize,
    /// Number of lines on the terminal.
    pub(in crate::task::watch) height: usize,
    pub(in crate::task::watch) colours: bool,
    /// True if the terminal only has ASCII.
    pub(in crate::task::watch) is_ascii: bool,
}

/// Text that is never broken across lines.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    text: String,
    tone: Tone,
}

/// Creates a piece without control characters.
pub(super) fn piece(text: impl AsRef<str>, tone: Tone) -> Piece {
    Piece {
        text: clean(text.as_ref()),
        tone,
    }
}

/// Arranges pieces into lines with `gap` spaces between them. The first line is indented by `indents[0]`, all others
/// by `indents[1]`.
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

/// Formats a single line, cut off at the edge.
pub(super) fn line(text: &str, tone: Tone, indent: usize, sheet: &Sheet) -> Vec<String> {
    flow(&[piece(text, tone)], 1, [indent; 2], sheet)
}

/// Breaks a text between its words. Each line of the text starts a new one.
pub(super) fn wrapped(text: &str, tone: Tone, indent: usize, sheet: &Sheet) -> Vec<String> {
    let lines = text.lines().flat_map(|line| {
        let is_short = measure_text_width(line) + indent <= sheet.width;
        // A line that fits keeps its columns.
        let words: Vec<Piece> = match is_short {
            true => vec![piece(line, tone)],
            false => line.split_whitespace().map(|word| piece(word, tone)).collect(),
        };
        flow(&words, 1, [indent, indent + 2], sheet)
    });
    lines.collect()
}

/// Replaces our own signs for an ASCII terminal, each by one of the same width. Text from users stays as it is.
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
