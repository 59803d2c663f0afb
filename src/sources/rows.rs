//! Interface of a format: splitting bytes into rows, and converting rows to JSON. `csv`, `ndjson` and `lines`
//! implement it.

use super::fault::FaultKind;
use super::json_rows::JsonRows;

/// UTF-8 byte order mark, which some programs write at the start of a file.
pub const BOM: &[u8] = "\u{feff}".as_bytes();

/// Result of looking for a row at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// A whole row of this length, including its line end.
    Row(usize),
    /// Bytes without a row, of this length.
    Blank(usize),
    /// The row is incomplete; more bytes are needed.
    More,
    /// Nothing can be read from here on.
    Fault(FaultKind),
}

/// Result of reading what precedes the first row.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// A beginning of this length, with these columns.
    Read { len: usize, columns: Vec<String> },
    /// The beginning is incomplete; more bytes are needed.
    More,
    /// The beginning is invalid; all faults are in the header.
    Faults(Vec<FaultKind>),
}

/// Row format. Bytes must be passed in order, without gaps.
pub(super) trait RowFormat {
    /// Reads what precedes the first row of a file. `eof`: no bytes follow `rest`.
    fn begin(&mut self, rest: &[u8], eof: bool) -> Beginning;

    /// Finds the row at the start of `rest`, which is not empty. `eof`: no bytes follow `rest`.
    fn split(&mut self, rest: &[u8], eof: bool) -> Split;

    /// Checks that the row just split can be an item, apart from UTF-8.
    ///
    /// # Errors
    /// Returns the fault of the row.
    fn check(&self, row: &[u8]) -> Result<(), FaultKind>;

    /// Appends the row just split as one JSON value on one line.
    ///
    /// # Errors
    /// Fails if it can't be an item.
    fn write(&mut self, row: &[u8], rows: &mut JsonRows) -> Result<(), FaultKind>;

    /// Writes leading rows as long as they are simple enough, and returns the number of bytes used. `_block` is the
    /// rest of a block; the first call has the whole block.
    ///
    /// # Errors
    /// Fails if a row can't be an item.
    fn write_ahead(&mut self, _block: &[u8], _rows: &mut JsonRows) -> Result<usize, FaultKind> {
        Ok(0)
    }

    /// Returns the approximate number of bytes that JSON adds to a row.
    fn overhead(&self) -> usize;
}

/// Returns `bytes` without a leading byte order mark, and the mark's length.
pub(super) fn without_bom(bytes: &[u8]) -> (&[u8], usize) {
    match bytes.strip_prefix(BOM) {
        Some(rest) => (rest, BOM.len()),
        None => (bytes, 0),
    }
}
