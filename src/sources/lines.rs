//! Lines of text: each is an item `{"line":"…"}`, exactly as in the file.
//!
//! A line ends with LF or CRLF; the last one needs no end. Empty lines are skipped, as by `xargs` and the other
//! formats; whitespace counts as text and is kept. Strings terminated by NUL (`find -print0`) are split only at NUL
//! and may contain any other character.

use super::csv_simple::{ROW_END, write_field};
use super::fault::FaultKind;
use super::json_rows::JsonRows;
use super::rows::{Beginning, RowFormat, Split, without_bom};

/// Name of the only member of an item.
const COLUMN: &str = "line";
/// JSON text before the line's text.
const BEFORE: &[u8] = br#"{"line":""#;

/// Splitter at LF or NUL.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextLines(u8);

impl TextLines {
    /// Lines of text, ended by LF.
    pub(super) const LF: TextLines = TextLines(b'\n');
    /// Strings terminated by NUL.
    pub(super) const NUL: TextLines = TextLines(0);

    /// Returns a row without its end.
    fn text<'a>(&self, row: &'a [u8]) -> &'a [u8] {
        let row = row.strip_suffix(&[self.0]).unwrap_or(row);
        match self.0 {
            b'\n' => row.strip_suffix(b"\r").unwrap_or(row),
            _ => row,
        }
    }
}

impl RowFormat for TextLines {
    fn begin(&mut self, rest: &[u8], eof: bool) -> Beginning {
        if rest.len() < 3 && !eof {
            return Beginning::More;
        }
        Beginning::Read {
            len: without_bom(rest).1,
            columns: vec![COLUMN.to_owned()],
        }
    }

    fn split(&mut self, rest: &[u8], eof: bool) -> Split {
        let len = match memchr::memchr(self.0, rest) {
            Some(at) => at + 1,
            None if eof => rest.len(),
            None => return Split::More,
        };
        if self.text(&rest[..len]).is_empty() {
            Split::Blank(len)
        } else {
            Split::Row(len)
        }
    }

    /// Refuses lines with a NUL. UTF-8 is checked elsewhere, for all formats.
    fn check(&self, row: &[u8]) -> Result<(), FaultKind> {
        match memchr::memchr(0, self.text(row)) {
            Some(_) => Err(FaultKind::Nul),
            None => Ok(()),
        }
    }

    fn write(&mut self, row: &[u8], rows: &mut JsonRows) -> Result<(), FaultKind> {
        rows.push(BEFORE);
        write_field(self.text(row), rows)?;
        rows.push(ROW_END);
        Ok(())
    }

    fn overhead(&self) -> usize {
        BEFORE.len() + ROW_END.len()
    }
}
