//! Fast path for CSV rows that need no state machine: their fields have no quotes, or are quoted as a whole without
//! quotes inside, and they end with LF or CRLF. One sweep finds all delimiters, line ends and quotes of a block, and
//! each field is copied from its place. All other rows are left to the parser, which has the final word on them.

use std::ops::Range;

use serde_json::Value;

use super::fault::FaultKind;
use super::json_rows::{JsonRows, SHORT};

/// Text after the last field of a row.
pub(super) const ROW_END: &[u8] = b"\"}";
/// `ROW_END` with padding, for a copy of fixed length.
const ROW_END_PADDED: &[u8; 2 + SHORT] = b"\"}                                ";

/// Bytes examined at once. A memchr iterator restarts after each match, which here is about every seventh byte.
const WORD: usize = 8;
const ONES: u64 = 0x0101_0101_0101_0101;

/// Returns the high bit of each zero byte (<https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord>, the
/// version without false positives).
const fn zeros(word: u64) -> u64 {
    const LOW: u64 = ONES * 0x7f;
    !(((word & LOW) + LOW) | word | LOW)
}

/// JSON text before the value of a column: `{"a":"`, `","b":"`.
#[derive(Debug)]
pub(super) struct Key {
    /// Text with padding, for a copy of fixed length.
    padded: Vec<u8>,
    len: usize,
}

impl Key {
    pub(super) fn new(number: usize, name: &str) -> Key {
        let begin = if number == 0 { "{" } else { "\"," };
        let mut padded = format!("{begin}{}:\"", Value::from(name)).into_bytes();
        let len = padded.len();
        padded.resize(len + SHORT, 0);
        Key { padded, len }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.padded[..self.len]
    }
}

/// Delimiter and quote. Both are ASCII and not NUL, which pads the last word.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimpleFormat {
    pub delimiter: u8,
    pub quote: Option<u8>,
}

impl SimpleFormat {
    /// True if unquoted fields of this block need no JSON escapes. The loop has no early exit, so that many bytes are
    /// checked at once.
    pub(super) fn is_clean(self, block: &[u8]) -> bool {
        let (delimiter, is_quoting) = (self.delimiter, self.quote == Some(b'"'));
        let is_odd = |byte: u8| {
            let control = (byte < b' ') & (byte != b'\n') & (byte != delimiter);
            control | (byte == b'\\') | ((byte == b'"') & !is_quoting)
        };
        !block.iter().fold(false, |found, byte| found | is_odd(*byte))
    }
}

/// Splitter for the simple rows of a block.
pub(super) struct SimpleRows<'a> {
    pub format: SimpleFormat,
    pub keys: &'a [Key],
    pub block: &'a [u8],
    /// Result of [`SimpleFormat::is_clean`] for the block.
    pub is_clean: bool,
}

/// Parsing position within a row.
#[derive(Default)]
struct Place {
    /// Start of the row, and of its current field.
    row: usize,
    field: usize,
    /// Column number of the field.
    column: usize,
    /// Range between the field's quotes, as far as known.
    quoted: Option<Range<usize>>,
    /// True until the closing quote.
    is_open: bool,
    /// True if the quoted text has a line end or another character to escape.
    is_escaped: bool,
}

impl Place {
    /// Opens or closes a quoted field. False if the quote does neither.
    fn quote(&mut self, at: usize) -> bool {
        match &mut self.quoted {
            None if at == self.field => {
                self.quoted = Some(at + 1..at + 1);
                (self.is_open, self.is_escaped) = (true, false);
            }
            Some(text) if self.is_open => {
                text.end = at;
                self.is_open = false;
            }
            _ => return false,
        }
        true
    }
}

impl SimpleRows<'_> {
    /// Writes rows up to the first that isn't simple, and returns where that starts.
    pub(super) fn write(&self, rows: &mut JsonRows) -> Result<usize, FaultKind> {
        let SimpleFormat { delimiter, quote } = self.format;
        let wanted = [delimiter, b'\n', quote.unwrap_or(b'\n')].map(|byte| ONES * u64::from(byte));
        let (words, tail) = self.block.as_chunks::<WORD>();
        let mut last = [0; WORD];
        last[..tail.len()].copy_from_slice(tail);
        let mut place = Place::default();
        'rows: for (nth, word) in words.iter().chain([&last]).enumerate() {
            let word = u64::from_le_bytes(*word);
            let mut found = wanted.iter().fold(0, |found, byte| found | zeros(word ^ byte));
            while found != 0 {
                let at = nth * WORD + found.trailing_zeros() as usize / 8;
                found &= found - 1;
                if !self.take(at, &mut place, rows)? {
                    break 'rows;
                }
            }
        }
        rows.drop_open_row();
        Ok(place.row)
    }

    /// Handles a delimiter, a line end or a quote. False if the row isn't simple.
    #[inline]
    fn take(&self, at: usize, place: &mut Place, rows: &mut JsonRows) -> Result<bool, FaultKind> {
        let byte = self.block[at];
        if Some(byte) == self.format.quote {
            return Ok(place.quote(at));
        }
        if place.is_open {
            // A printable delimiter needs no escape.
            place.is_escaped |= byte < b' ';
            return Ok(true);
        }
        let end = self.field_end(place, at);
        if !self.write_field(place, end, rows)? {
            return Ok(false);
        }
        place.field = at + 1;
        if byte == b'\n' {
            if place.column != self.keys.len() {
                return Ok(false);
            }
            rows.push_of(ROW_END_PADDED, 0..ROW_END.len());
            rows.end_row()?;
            (place.row, place.column) = (at + 1, 0);
        }
        Ok(true)
    }

    /// Returns the end of the text before a delimiter or line end.
    fn field_end(&self, place: &Place, at: usize) -> usize {
        let is_crlf = self.block[at] == b'\n' && at > place.field && self.block[at - 1] == b'\r';
        if is_crlf { at - 1 } else { at }
    }

    /// Writes a field. False if it isn't simple or has no column.
    #[inline]
    fn write_field(&self, place: &mut Place, end: usize, rows: &mut JsonRows) -> Result<bool, FaultKind> {
        let Some(key) = self.keys.get(place.column) else {
            return Ok(false);
        };
        rows.push_of(&key.padded, 0..key.len);
        place.column += 1;
        match place.quoted.take() {
            Some(text) if text.end + 1 == end => match self.is_clean && !place.is_escaped {
                true => rows.push_of(self.block, text),
                false => write_field(&self.block[text], rows)?,
            },
            // Something follows the closing quote, for example another quote.
            Some(_) => return Ok(false),
            // An empty line is not a row.
            None if place.row == end && self.block[end] != self.format.delimiter => return Ok(false),
            None if self.is_clean => rows.push_of(self.block, place.field..end),
            None => {
                let text = &self.block[place.field..end];
                if memchr::memchr(b'\r', text).is_some() {
                    return Ok(false);
                }
                write_field(text, rows)?;
            }
        }
        Ok(true)
    }
}

/// Appends text inside the quotes of a JSON string, with escapes.
pub(super) fn write_field(text: &[u8], rows: &mut JsonRows) -> Result<(), FaultKind> {
    if has_escapes(text) {
        let text = std::str::from_utf8(text).map_err(|_| FaultKind::NotUtf8)?;
        let quoted = Value::from(text).to_string();
        rows.push(&quoted.as_bytes()[1..quoted.len() - 1]);
    } else {
        rows.push(text);
    }
    Ok(())
}

/// True if any character needs a JSON escape. The loop has no early exit, so that many bytes are checked at once.
fn has_escapes(text: &[u8]) -> bool {
    let is_escaped = |byte: u8| (byte < b' ') | (byte == b'"') | (byte == b'\\');
    text.iter().fold(false, |found, byte| found | is_escaped(*byte))
}
