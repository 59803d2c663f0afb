//! Wraps long lines of prose at word boundaries for a terminal, which would break inside words. Lines with columns
//! (two spaces between words) stay unchanged.

use console::{Term, measure_text_width};

/// Labels at the start of a line; continuation lines are indented past them.
const LABELS: [&str; 4] = ["because ", "try  ", "hint: ", "note: "];
/// Width below which nothing is wrapped, since each line would hold only a word. Unit: columns.
const WIDTH_MIN: usize = 40;

/// Wraps the text to fit a terminal. Without one, returns it unchanged.
pub(crate) fn to(terminal: &Term, text: &str) -> String {
    let width = terminal.size_checked().filter(|_| terminal.is_term());
    match width
        .map(|(_, columns)| usize::from(columns))
        .filter(|width| *width >= WIDTH_MIN)
    {
        Some(width) => text
            .lines()
            .map(|line| folded(line, width))
            .collect::<Vec<_>>()
            .join("\n"),
        None => text.to_owned(),
    }
}

/// Wraps a page like help: to at most `widest` columns, on a terminal or not.
pub(crate) fn page(terminal: &Term, text: &str, widest: usize) -> String {
    let folded: Vec<String> = text.lines().map(|line| folded(line, widest)).collect();
    to(terminal, &folded.join("\n"))
}

fn folded(line: &str, width: usize) -> String {
    let lead = lead(line);
    let prose = &line[lead..];
    if measure_text_width(line) <= width || prose.contains("  ") {
        return line.to_owned();
    }
    let (mut text, mut used) = (line[..lead].to_owned(), lead);
    for (at, word) in prose.split(' ').enumerate() {
        let wide = measure_text_width(word);
        if at > 0 && used + 1 + wide > width {
            text += &format!("\n{:lead$}", "");
            used = lead;
        } else if at > 0 {
            text.push(' ');
            used += 1;
        }
        text += word;
        used += wide;
    }
    text
}

/// Returns the length of the spaces, the exit code or the label that starts a line. Unit: bytes, all ASCII.
fn lead(line: &str) -> usize {
    let indented = line.len() - line.trim_start_matches(' ').len();
    let rest = &line[indented..];
    let code = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if code > 0 && rest[code..].starts_with("  ") {
        return indented + code + 2;
    }
    let label = LABELS.iter().find(|label| rest.starts_with(**label));
    indented + label.map_or(0, |label| label.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_between_words_and_columns_are_not() {
        assert_eq!(
            folded("  because it is far too long for this line", 24),
            "  because it is far too\n          long for this\n          line"
        );
        assert_eq!(
            folded("   4  conflict: state or capacity", 22),
            "   4  conflict: state\n      or capacity"
        );
        assert_eq!(
            folded("  try  /a/very/long/path/without/spaces", 20),
            "  try  /a/very/long/path/without/spaces"
        );
        assert_eq!(
            folded("running  40/100 (40.0 %)  10.0/s", 20),
            "running  40/100 (40.0 %)  10.0/s"
        );
        assert_eq!(folded("short", 40), "short");
    }
}
