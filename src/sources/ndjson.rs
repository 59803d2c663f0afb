//! NDJSON: one JSON value per line. Blank lines are skipped; the last line needs no line end.

use serde::de::IgnoredAny;

use super::fault::FaultKind;
use super::rows::{Beginning, RowFormat, Split, without_bom};

/// Cuts and checks lines; has no state.
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
            Err(error) => {
                let is_json_like =
                    row.trim_ascii_start().starts_with(b"{") || row.trim_ascii_start().starts_with(b"[");
                let is_table = !is_json_like && memchr::memchr3(b',', b';', b'\t', row).is_some();
                Err(FaultKind::NotJson(reason(&error), is_table))
            }
        }
    }

    fn write(&mut self, row: &str, out: &mut Vec<u8>) -> Result<(), FaultKind> {
        push_on_one_line(trim(row.as_bytes()), out);
        Ok(())
    }

    fn overhead(&self) -> usize {
        0
    }
}

/// The parser's words, with the column in place of its own line, which is always 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let words = text.split(" at line ").next().unwrap_or(&text);
    format!("{words} at column {}", error.column())
}

fn trim(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}

/// Appends JSON text with its line breaks as spaces. They can only stand between its tokens: strings escape them.
/// Handlers read lines, and some readers of lines take a lone carriage return for a line end.
pub(super) fn push_on_one_line(json: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(json);
    if memchr::memchr2(b'\n', b'\r', json).is_some() {
        for byte in &mut out[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
}
