//! NDJSON: one JSON value per line. Blank lines are skipped, and the last line needs no line end.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::fault::{FaultKind, Looks};
use super::json_rows::JsonRows;
use super::rows::{Beginning, RowFormat, Split, without_bom};

/// Stateless splitter and checker of lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct NdjsonRows;

impl RowFormat for NdjsonRows {
    fn begin(&mut self, rest: &[u8], eof: bool) -> Beginning {
        if rest.len() < 3 && !eof {
            return Beginning::More;
        }
        Beginning::Read {
            len: without_bom(rest).1,
            columns: Vec::new(),
        }
    }

    fn split(&mut self, rest: &[u8], eof: bool) -> Split {
        let len = match memchr::memchr(b'\n', rest) {
            Some(at) => at + 1,
            None if eof => rest.len(),
            None => return Split::More,
        };
        if trim(&rest[..len]).is_empty() {
            Split::Blank(len)
        } else {
            Split::Row(len)
        }
    }

    fn check(&self, row: &[u8]) -> Result<(), FaultKind> {
        match serde_json::from_slice::<IgnoredAny>(trim(row)) {
            Ok(IgnoredAny) => Ok(()),
            Err(error) => Err(FaultKind::NotJson(reason(&error), looks(trim(row), &error))),
        }
    }

    fn write(&mut self, row: &[u8], rows: &mut JsonRows) -> Result<(), FaultKind> {
        rows.push(&on_one_line(trim(row)));
        Ok(())
    }

    /// Without a carriage return, no row contains a line end.
    fn write_ahead(&mut self, block: &[u8], rows: &mut JsonRows) -> Result<usize, FaultKind> {
        let plain = memchr::memchr(b'\r', block).unwrap_or(block.len());
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &block[..plain]) {
            let row = trim(&block[start..end]);
            if !row.is_empty() {
                rows.push(row);
                rows.end_row()?;
            }
            start = end + 1;
        }
        Ok(start)
    }

    fn overhead(&self) -> usize {
        0
    }
}

/// Returns the likely form of a line that the parser rejects.
fn looks(row: &[u8], error: &serde_json::Error) -> Looks {
    match row.first() {
        Some(b'[') if error.is_eof() => Looks::Array,
        Some(b'{') if error.is_eof() => Looks::Object,
        Some(b'[' | b'{') => Looks::Other,
        _ if memchr::memchr3(b',', b';', b'\t', row).is_some() => Looks::Csv,
        _ => Looks::Other,
    }
}

/// Returns the parser's message, with only the column, since its line is always 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let words = text.split(" at line ").next().unwrap_or(&text);
    format!("{words} at column {}", error.column())
}

fn trim(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}

/// Replaces line breaks in JSON text with spaces. Breaks can occur only between tokens, since strings escape them.
/// Handlers read lines, and some line readers treat a lone carriage return as a line end.
pub(super) fn on_one_line(json: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'\n', b'\r', json).is_none() {
        return Cow::Borrowed(json);
    }
    let blank = |byte: &u8| {
        if matches!(byte, b'\n' | b'\r') {
            b' '
        } else {
            *byte
        }
    };
    Cow::Owned(json.iter().map(blank).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Fault, IndexError};

    #[test]
    fn a_line_that_is_no_json_is_followed_by_what_helps_with_it() {
        for (row, helps) in [
            ("{bad", "fix that line"),
            ("hello", "--lines FILE"),
            ("[", "jq -c '.[]' FILE"),
            ("{", "jq -c . FILE"),
            ("id,name", "--csv FILE"),
        ] {
            let kind = NdjsonRows.check(row.as_bytes()).expect_err("no JSON");
            let faults = vec![Fault { line: 1, kind }];
            let error = IndexError::BadRows { faults, more: false };
            assert!(error.hint().contains(helps), "{row}: {}", error.hint());
        }
    }
}
