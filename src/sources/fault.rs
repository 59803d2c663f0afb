//! Faults in the rows of a source, and reasons why a pass ends without an index.

use std::fmt;
use std::io;

use super::pass::ROW_BYTES_MAX;
use super::unpack_error::UnpackError;

/// Maximum number of faults before a pass ends: all at once, but not more than a screen.
pub(super) const FAULTS_MAX: usize = 10;

/// A row that can't be an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line of the file where the row starts, from 1; for invalid UTF-8, the line of the bad byte.
    pub line: u64,
    /// Kind of the fault.
    pub kind: FaultKind,
}

/// Kind of fault in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The number of fields differs from the number of columns.
    Ragged {
        /// Number of columns in the file.
        expected: usize,
        /// Number of fields in the row.
        actual: usize,
    },
    /// The bytes are not valid UTF-8.
    NotUtf8,
    /// The line is not a single JSON value; with the parser's message and the likely form of the line.
    NotJson(String, Looks),
    /// A line of text contains NUL. Most likely the items are separated by NUL, as `find -print0` writes them.
    Nul,
    /// The header of a CSV file starts like JSON: one value per line, or (true) an array over several lines.
    LikeJson(bool),
    /// The row is longer than [`ROW_BYTES_MAX`].
    TooLong,
    /// A quote was opened and never closed.
    UnclosedQuote,
    /// A quote is inside an unquoted field.
    QuoteInText {
        /// Number of lines below the row's first.
        below: usize,
    },
    /// Text follows the closing quote of a field.
    TextBehindQuote {
        /// Number of lines below the row's first.
        below: usize,
    },
    /// The first line is `sep=;`, as written by Excel, with another delimiter than the format's.
    SepLine(char),
    /// A column name occurs twice.
    DuplicateColumn(String),
    /// The block's bytes match the index but its number of rows doesn't: a bug in this program.
    RowCount {
        /// Number of rows in the index.
        expected: u64,
        /// Number of rows that were parsed.
        actual: u64,
    },
}

/// Likely form of a line that isn't a single JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// A row of a CSV file.
    Csv,
    /// The start of an array that continues on the next line.
    Array,
    /// The start of an object that continues on the next line.
    Object,
    /// No form that is recognized.
    Other,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.kind)
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Ragged { expected, actual } => {
                let plural = if *actual == 1 { "" } else { "s" };
                write!(f, "{actual} field{plural}, expected {expected}")
            }
            FaultKind::NotUtf8 => write!(f, "not valid UTF-8"),
            FaultKind::NotJson(reason, _) => write!(f, "not a single JSON value: {reason}"),
            FaultKind::Nul => write!(f, "a NUL byte, which text can't contain"),
            FaultKind::LikeJson(false) => {
                write!(f, "this looks like NDJSON, not a CSV header")
            }
            FaultKind::LikeJson(true) => write!(f, "this looks like a JSON array, not a CSV header"),
            FaultKind::TooLong => write!(f, "longer than {} KiB", ROW_BYTES_MAX / 1024),
            FaultKind::UnclosedQuote => write!(f, "a quote is opened and never closed"),
            FaultKind::QuoteInText { below } => {
                write!(f, "a quote inside an unquoted field{}", Below(*below))
            }
            FaultKind::TextBehindQuote { below } => {
                write!(f, "text after the closing quote of a field{}", Below(*below))
            }
            FaultKind::SepLine(named) => {
                write!(f, "\"sep={}\" names the delimiter", named.escape_debug())
            }
            FaultKind::DuplicateColumn(name) => write!(f, "duplicate column {name:?}"),
            FaultKind::RowCount { expected, actual } => write!(f, "{actual} rows, expected {expected}"),
        }
    }
}

/// Offset of a line within a row that spans several lines.
struct Below(usize);

impl fmt::Display for Below {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => write!(f, ", 1 line below"),
            lines => write!(f, ", {lines} lines below"),
        }
    }
}

impl FaultKind {
    /// Returns a suggestion for people.
    fn hint(&self) -> &'static str {
        match self {
            // A single column is usually several, split at the wrong character.
            FaultKind::Ragged { expected: 1, .. } => {
                "set the delimiter, such as --delimiter ';' or --delimiter tab; quote fields that contain \
                 commas"
            }
            FaultKind::Ragged { .. } => {
                "check the delimiter (--delimiter) and that fields with commas or newlines are quoted"
            }
            FaultKind::NotUtf8 => {
                "convert the file from its encoding to UTF-8: iconv -f LATIN1 -t UTF-8 FILE (Western \
                 Europe), -f GB18030 (Chinese)"
            }
            FaultKind::Nul => {
                "for NUL-terminated items (find -print0) use --lines FILE --null; for file names use \
                 --glob PATTERN"
            }
            FaultKind::NotJson(_, Looks::Csv) => "it looks like CSV: read it with --csv FILE",
            FaultKind::LikeJson(false) => "read it as NDJSON: --ndjson FILE",
            FaultKind::NotJson(_, Looks::Object) => "write one JSON value per line: jq -c . FILE",
            FaultKind::NotJson(_, Looks::Other) => {
                "fix that line: each line must be one JSON value; for lines of plain text use --lines FILE"
            }
            FaultKind::NotJson(_, Looks::Array) | FaultKind::LikeJson(true) => {
                "write one JSON value per line and read it with --ndjson, for example: jq -c '.[]' FILE"
            }
            FaultKind::TooLong => {
                "store large data elsewhere and put its URL into the row; or look for an unclosed quote"
            }
            FaultKind::UnclosedQuote => {
                "double the quotes inside quoted fields; or read quotes as text with --no-quote"
            }
            FaultKind::QuoteInText { .. } | FaultKind::TextBehindQuote { .. } => {
                "double the quotes inside quoted fields; --no-quote reads quotes as text, --lenient \
                 accepts such rows"
            }
            FaultKind::SepLine(_) => "pass it with --delimiter too; the line is then skipped",
            FaultKind::DuplicateColumn(_) => {
                "rename a column; or, if the first line is data, use --no-header"
            }
            FaultKind::RowCount { .. } => "please report this; it is a bug in windrow",
        }
    }
}

/// Error of a pass that ended without an index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Some rows can't be items. Lists the first ones in line order.
    #[error("{}", list(.faults, *.more))]
    BadRows {
        /// Faults found, at most ten.
        faults: Vec<Fault>,
        /// True if the pass ended early, so that there may be more.
        more: bool,
    },
    /// The input is empty, although a header is expected.
    #[error("it is empty, without even a header")]
    NoHeader,
    /// The input has no rows, or nothing but a header.
    #[error("{}", if *.header { "it has a header and no rows" } else { "it has no rows" })]
    NoRows {
        /// True if a header was found.
        header: bool,
    },
    /// The first bytes are those of another file type.
    #[error("it is {0}, not text")]
    NotText(&'static str),
    /// The delimiter or the quote is not allowed.
    #[error("{0}")]
    BadFormat(String),
    /// The file was written to during the pass.
    #[error("it changed while it was being read")]
    ChangedMeanwhile,
    /// The input can't be read.
    #[error("reading failed: {0}")]
    Unreadable(#[from] io::Error),
    /// The compressed data can't be unpacked.
    #[error(transparent)]
    Packed(UnpackError),
    /// The pass was cancelled by its caller.
    #[error("indexing was cancelled")]
    Cancelled,
}

impl IndexError {
    /// Converts a read error that occurred after `rows` rows.
    pub(super) fn of_read(error: io::Error, rows: u64) -> IndexError {
        match error.downcast::<UnpackError>() {
            Ok(error) => IndexError::Packed(UnpackError { rows, ..error }),
            Err(error) => IndexError::Unreadable(error),
        }
    }

    /// Returns a suggestion for people.
    pub fn hint(&self) -> &'static str {
        match self {
            IndexError::BadRows { faults, .. } => faults.first().map_or("check the file", |f| f.kind.hint()),
            IndexError::NoRows { header: true } => "add rows; or, if the only line is data, use --no-header",
            IndexError::NoHeader => {
                "check that the program that writes the file has run; for a CSV without a header use \
                 --no-header"
            }
            IndexError::NoRows { header: false } => "check that the program that writes the file has run",
            IndexError::NotText("a gzip file") => "unpack it: gunzip -c FILE | … -",
            IndexError::NotText("a zstd file") => "unpack it: zstd -dc FILE | … -",
            IndexError::NotText("a bzip2 file") => "unpack it: bzip2 -dc FILE | … -",
            IndexError::NotText("an xz file") => "unpack it: xz -dc FILE | … -",
            IndexError::NotText("a tar archive") => "extract one file of it: tar -xOf ARCHIVE FILE | … -",
            IndexError::NotText("UTF-16") => "convert it: iconv -f UTF-16 -t UTF-8 FILE",
            IndexError::NotText(_) => "export it as CSV (UTF-8) or NDJSON",
            IndexError::BadFormat(_) => "use one ASCII character, for example , ; | or a tab",
            IndexError::ChangedMeanwhile => "wait until the file is complete, or use a copy of it",
            IndexError::Packed(error) => error.hint(),
            IndexError::Unreadable(_) => "check the disk and try again",
            IndexError::Cancelled => "run it again; nothing was stored",
        }
    }
}

/// Formats the faults. If a line isn't JSON, usually none is, so the first is enough.
fn list(faults: &[Fault], more: bool) -> String {
    let is_json = |fault: &Fault| !matches!(fault.kind, FaultKind::NotJson(..));
    let mut told: Vec<String> = (faults.iter().enumerate())
        .filter(|(at, fault)| *at == 0 || is_json(fault))
        .map(|(_, fault)| fault.to_string())
        .collect();
    match faults.len() - told.len() {
        0 => {}
        1 => told.push("1 other line is not JSON either".to_owned()),
        others => told.push(format!("{others} other lines are not JSON either")),
    }
    let mut text = told.join("; ");
    let is_whole = faults
        .iter()
        .any(|fault| matches!(fault.kind, FaultKind::LikeJson(_)));
    if more && !is_whole {
        text.push_str("; there may be more");
    }
    text
}
