//! What a format is: how bytes are cut into rows, and how a row becomes JSON. `csv` and `ndjson` implement it.

use super::fault::FaultKind;
use super::json_rows::JsonRows;

/// UTF-8's byte order mark, which some programs write at the start of a file.
pub const BOM: &[u8] = "\u{feff}".as_bytes();

/// What lies at the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// A whole row of so many bytes, with its line end.
    Row(usize),
    /// So many bytes without a row.
    Blank(usize),
    /// No whole row; more bytes are needed.
    More,
    /// Nothing from here on can be read.
    Fault(FaultKind),
}

/// What lies before the first row.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// So many bytes, which name these columns.
    Read { len: usize, columns: Vec<String> },
    /// More bytes are needed.
    More,
    /// Not a beginning; each fault is of the header.
    Faults(Vec<FaultKind>),
}

/// A format. The bytes that it is given one after the other must follow each other.
pub(super) trait RowFormat {
    /// Reads what comes before the first row of a file. `eof`: there are no more bytes than `rest`.
    fn begin(&mut self, rest: &[u8], eof: bool) -> Beginning;

    /// Finds the row at the beginning of `rest`. `eof`: there are no more bytes than `rest`, which is not empty.
    fn split(&mut self, rest: &[u8], eof: bool) -> Split;

    /// Whether the row just split can be an item; UTF-8 aside.
    ///
    /// # Errors
    /// When it can't.
    fn check(&self, row: &[u8]) -> Result<(), FaultKind>;

    /// Appends the row just split as one JSON value on one line.
    ///
    /// # Errors
    /// When it can't be an item.
    fn write(&mut self, row: &[u8], rows: &mut JsonRows) -> Result<(), FaultKind>;

    /// Writes rows at the beginning of a part of a block that ends with it, as long as they are simple enough; says how many
    /// bytes they took. The first call has the whole block.
    ///
    /// # Errors
    /// When one can't be an item.
    fn write_ahead(&mut self, _block: &[u8], _rows: &mut JsonRows) -> Result<usize, FaultKind> {
        Ok(0)
    }

    /// How many bytes longer a row is as JSON, roughly.
    fn overhead(&self) -> usize;
}

/// `bytes` without a byte order mark at its beginning, and the length of that.
pub(super) fn without_bom(bytes: &[u8]) -> (&[u8], usize) {
    match bytes.strip_prefix(BOM) {
        Some(rest) => (rest, BOM.len()),
        None => (bytes, 0),
    }
}
