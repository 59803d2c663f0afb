//! Text for terminals, stripped of control sequences: all output contains text from untrusted sources.

use std::borrow::Cow;

use serde_json::Value;
use windrow_core::text::{clean_lines, steers};

/// Returns the text with line breaks, tabs and our own colours, but without any other control characters. Untrusted
/// texts lose their colours earlier, where they are inserted ([`windrow_core::text::clean`]).
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| steers(c) && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split('\u{1B}');
    let mut out = clean_lines(parts.next().unwrap_or_default());
    for part in parts {
        let length = colour(part);
        let (code, rest) = part.split_at(length);
        out.push(if length > 0 {
            '\u{1B}'
        } else {
            char::REPLACEMENT_CHARACTER
        });
        out += code;
        out += &clean_lines(rest);
    }
    Cow::Owned(out)
}

/// Returns the length of the colour sequence that begins here, after its escape character. Unit: bytes.
fn colour(text: &str) -> usize {
    let Some(codes) = text.strip_prefix('[') else {
        return 0;
    };
    let digits = codes
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b';')
        .count();
    match codes.as_bytes().get(digits) {
        Some(b'm') => digits + 2,
        _ => 0,
    }
}

/// Formats a value as JSON without characters that control a terminal.
pub(crate) fn json(value: &Value) -> String {
    let mut units = [0; 2];
    let mut out = String::new();
    for c in value.to_string().chars() {
        match steers(c) {
            true => out.extend(
                c.encode_utf16(&mut units)
                    .iter()
                    .map(|unit| format!("\\u{unit:04x}")),
            ),
            false => out.push(c),
        }
    }
    out
}

/// Converts untrusted bytes that arrive in pieces to text for a terminal.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// Start of a character whose end is in the next piece.
    begun: Vec<u8>,
}

impl Pieces {
    /// Returns the text of the next piece.
    pub(crate) fn next(&mut self, piece: &[u8]) -> String {
        self.begun.extend_from_slice(piece);
        let whole = match std::str::from_utf8(&self.begun) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.begun.len(),
        };
        let rest = self.begun.split_off(whole);
        let bytes = std::mem::replace(&mut self.begun, rest);
        clean_lines(&String::from_utf8_lossy(&bytes).replace("\r\n", "\n"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn our_colours_stay_and_nothing_else_steers_a_terminal() {
        assert_eq!(
            visible("a\u{1B}[1;31mb\u{1B}[0m\n\tc"),
            "a\u{1B}[1;31mb\u{1B}[0m\n\tc"
        );
        let hostile = "\u{1B}[2J\u{1B}]0;t\u{7}\u{1B}[1;31Hx\u{1B}\u{202E}y\u{9B}31m\r";
        let shown = visible(hostile);
        assert!(!shown.chars().any(steers), "{shown:?}");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = json!({"a\u{202E}": "b\u{E0041}\u{9B}\n中"});
        let text = super::json(&value);
        assert!(!text.contains(steers), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }

    #[test]
    fn a_character_that_is_cut_in_two_is_whole() {
        let mut pieces = Pieces::default();
        let bytes = "a中\u{1B}[31mb\r\n\u{202E}".as_bytes();
        let text: String = bytes.chunks(2).map(|piece| pieces.next(piece)).collect();
        assert_eq!(text.replace("\u{FFFD}\n", "\n"), "a中\u{FFFD}[31mb\n\u{FFFD}");
        assert_eq!(pieces.next(b"\xffz"), "\u{FFFD}z");
    }
}
