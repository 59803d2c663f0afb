//! Text from untrusted sources, prepared for display: cut, quoted, and without deceptive characters.

pub mod csv;
pub mod likeness;
pub mod names;

use std::borrow::Cow;
use std::fmt;

use windrow_words::Text;

/// Maximum length of a text that a message quotes. Unit: characters.
pub const QUOTE_CHARS_MAX: usize = 80;

/// Returns the first `most` characters of a text, with `…` if it has more.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// Quotes a text as every message does: at most [`QUOTE_CHARS_MAX`] characters of it, with escapes for those that
/// can't be seen.
pub fn quoted(text: &str) -> Quoted<'_> {
    Quoted(text)
}

/// Text in quotes, made by [`quoted`].
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", cut(self.0, QUOTE_CHARS_MAX))
    }
}

impl From<Quoted<'_>> for Text {
    fn from(quoted: Quoted<'_>) -> Text {
        quoted.to_string().into()
    }
}

/// Returns a text that can't move a terminal's cursor, change its colours, or make the following text look different.
/// It stays on its line.
pub fn clean(text: &str) -> String {
    // Line breaks and tabs become spaces, because people put them into texts themselves.
    text.chars()
        .map(|c| if matches!(c, '\n' | '\t') { ' ' } else { shown(c) })
        .collect()
}

/// Cleans a text of several lines; its line breaks and tabs stay.
pub fn clean_lines(text: &str) -> String {
    text.chars()
        .map(|c| if matches!(c, '\n' | '\t') { c } else { shown(c) })
        .collect()
}

fn shown(c: char) -> char {
    match steers(c) {
        true => char::REPLACEMENT_CHARACTER,
        false => c,
    }
}

/// Returns true if a character controls the display of other text: a control character, one that changes the writing
/// direction, a line separator, an invisible tag.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
            | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_cut_and_shows_what_it_has() {
        let long = "ü".repeat(1 << 20);
        let text = quoted(&long).to_string();
        assert_eq!(text.chars().count(), QUOTE_CHARS_MAX + 3);
        assert!(text.ends_with("ü…\""));
        assert_eq!(
            quoted("a\u{202E}b\u{200B}\u{7}").to_string(),
            r#""a\u{202e}b\u{200b}\u{7}""#
        );
        assert_eq!(cut("中中中", 3), "中中中");
    }

    #[test]
    fn nothing_that_is_shown_steers_a_terminal() {
        let hostile = "a\u{1B}[2J\u{202E}b\u{2028}\u{9B}c\u{200F}\u{E0041}\td\ne";
        assert!(!clean(hostile).chars().any(steers));
        assert_eq!(clean("a\tb\nc"), "a b c");
        assert_eq!(clean_lines("a\tb\nc\r"), "a\tb\nc\u{FFFD}");
        assert_eq!(clean("שלום 中 👩‍🔬"), "שלום 中 👩‍🔬");
    }
}
