//! Lines of text: each is an item `{"line":"…"}`, to the character as it stands in the file.
//!
//! A line ends with LF or CRLF; the last one needs no end. Lines without any character are skipped, as `xargs` skips them
//! and as the other formats do; blanks are characters and stay. Texts that a NUL ends (`find -print0`) are cut only there
//! and hold any other character.

use super::csv_simple::{ROW_END, write_field};
use super::fault::FaultKind;
use super::json_rows::JsonRows;
use super::rows::{Beginning, RowFormat, Split, without_bom};

/// The one member of an item.
const COLUMN: &str = "line";
/// What stands before its text.
const BEFORE: &[u8] = br#"{"line":""#;

/// The end of each text: LF or NUL.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextLines(u8);

impl TextLines {
    /// Lines of text.
    pub(super) const LF: TextLines = TextLines(b'\n');
    /// Texts that a NUL ends.
    pub(super) const NUL: TextLines = TextLines(0);

    /// A row without its end.
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

    /// Lines without a NUL are items; UTF-8 is checked for all formats alike.
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
