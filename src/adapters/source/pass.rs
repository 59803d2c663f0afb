//! The one pass over a source before its task begins: counts and checks rows, cuts them into blocks.
//!
//! Blocking; memory is bounded by a block, a row and a read, whatever the size of the file, plus 24 bytes per
//! block. The outcome depends on the bytes and the format only, so that the same file gives the same index.

use std::fs::{File, Metadata};
use std::io::Read;
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::block_index::{Block, BlockIndex};
use super::csv::CsvRows;
use super::fault::{FAULTS_MAX, Fault, FaultKind, IndexError};
use super::file::{modified_ns, open_regular};
use super::ndjson::NdjsonRows;
use super::rows::{BOM, Beginning, RowFormat, Split};
use super::spec::Format;
use crate::ports::source_store::IndexedSource;

/// The longest row. Unit: bytes. (A row travels in one callback; `body_limit` of `config.toml` is of this size.)
pub const ROW_BYTES_MAX: usize = 1024 * 1024;
/// One read. Unit: bytes. (Large enough that reading costs nothing beside parsing.)
const READ_BYTES: usize = 256 * 1024;

/// How large blocks may grow. A block ends with the row that reaches either bound.
#[derive(Clone, Copy, Debug)]
pub struct BlockLimits {
    /// Rows of a block.
    pub rows: u32,
    /// Bytes of a block's rows as JSON, roughly: raw bytes and the column names that each row repeats.
    pub bytes: usize,
    /// From this byte of the file on blocks may be sixteen times the rows and four times the bytes.
    pub far: u64,
}

impl Default for BlockLimits {
    /// 4,096 rows or 1 MiB; beyond 4 GiB 65,536 rows or 4 MiB, which keeps the index of a terabyte at some megabytes.
    fn default() -> BlockLimits {
        BlockLimits { rows: 4096, bytes: 1024 * 1024, far: 4 << 30 }
    }
}

impl BlockLimits {
    fn at(&self, offset: u64) -> (u32, usize) {
        if offset < self.far { (self.rows, self.bytes) } else { (self.rows * 16, self.bytes * 4) }
    }
}

/// How far a pass is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexProgress {
    /// Bytes read.
    pub bytes: u64,
    /// All bytes, when known.
    pub bytes_total: Option<u64>,
    /// Rows counted.
    pub rows: u64,
}

/// What a pass learned.
#[derive(Debug)]
pub struct Indexed {
    /// The blocks.
    pub index: BlockIndex,
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
    /// XXH3 (64 bits) of all bytes.
    pub checksum: u64,
    /// Column names of a CSV; empty otherwise.
    pub columns: Vec<String>,
    /// The most rows that a block has.
    pub stride: u32,
    /// The most bytes of the source that were in memory at once.
    pub buffered_max: usize,
}

/// Indexes a regular file and refuses one that is written to meanwhile.
///
/// # Errors
/// Each cause of [`IndexError`]; nothing is kept then.
pub fn index_file(
    path: &Path,
    format: &Format,
    progress: &mut dyn FnMut(IndexProgress),
    cancel: &AtomicBool,
) -> Result<(IndexedSource, Vec<Vec<u8>>), IndexError> {
    let (file, before) = open_regular(path)?;
    let indexed = index_open_file(&file, &before, format, progress, cancel)?;
    let parts = indexed.index.to_parts();
    let location = path.to_string_lossy().into_owned();
    Ok((indexed.into_source(format, location, modified_ns(&before)).0, parts))
}

/// Indexes an open regular file; `before` is what was known of it when it was opened.
pub(super) fn index_open_file(
    file: &File,
    before: &Metadata,
    format: &Format,
    progress: &mut dyn FnMut(IndexProgress),
    cancel: &AtomicBool,
) -> Result<Indexed, IndexError> {
    let indexed = index_bytes(file, Some(before.len()), format, BlockLimits::default(), progress, cancel)?;
    let steady = modified_ns(before) == modified_ns(&file.metadata()?) && before.len() == indexed.bytes;
    if steady { Ok(indexed) } else { Err(IndexError::ChangedMeanwhile) }
}

impl Indexed {
    /// The same as the store remembers it, and the index.
    pub fn into_source(
        self,
        format: &Format,
        location: String,
        modified_ns: i64,
    ) -> (IndexedSource, BlockIndex) {
        let source = IndexedSource {
            kind: format.kind().to_owned(),
            location,
            format: format.to_text(),
            bytes: self.bytes,
            modified_ns,
            checksum: self.checksum,
            rows: self.rows,
            columns: self.columns,
            stride: self.stride,
        };
        (source, self.index)
    }
}

/// Indexes whatever can be read. `bytes_total` is for the progress only.
///
/// # Errors
/// Each cause of [`IndexError`] but `ChangedMeanwhile`.
pub fn index_bytes(
    reader: impl Read,
    bytes_total: Option<u64>,
    format: &Format,
    limits: BlockLimits,
    progress: &mut dyn FnMut(IndexProgress),
    cancel: &AtomicBool,
) -> Result<Indexed, IndexError> {
    format.check().map_err(IndexError::BadFormat)?;
    let watch = Watch { bytes_total, progress, cancel };
    match format {
        Format::Csv(csv) => Pass::new(CsvRows::new(csv, &[]), limits).run(reader, watch, csv.header),
        Format::Ndjson => Pass::new(NdjsonRows, limits).run(reader, watch, false),
    }
}

struct Watch<'a> {
    bytes_total: Option<u64>,
    progress: &'a mut dyn FnMut(IndexProgress),
    cancel: &'a AtomicBool,
}

struct Pass<F> {
    format: F,
    limits: BlockLimits,
    /// Bytes that are not yet in a closed block, from `block_start` on; parsed up to `cursor`.
    buffer: Vec<u8>,
    block_start: usize,
    cursor: usize,
    /// Where the open block begins in the file, the line there, and what it holds so far.
    offset: u64,
    line: u64,
    block_rows: u32,
    block_weight: usize,
    blocks: Vec<Block>,
    stride: u32,
    columns: Option<Vec<String>>,
    rows: u64,
    bytes: u64,
    checksum: Xxh3,
    faults: Vec<Fault>,
    /// A fault after which nothing can be read.
    broken: bool,
    buffered_max: usize,
}

impl<F: RowFormat> Pass<F> {
    fn new(format: F, limits: BlockLimits) -> Pass<F> {
        Pass {
            format,
            limits,
            buffer: Vec::new(),
            block_start: 0,
            cursor: 0,
            offset: 0,
            line: 1,
            block_rows: 0,
            block_weight: 0,
            blocks: Vec::new(),
            stride: 0,
            columns: None,
            rows: 0,
            bytes: 0,
            checksum: Xxh3::new(),
            faults: Vec::new(),
            broken: false,
            buffered_max: 0,
        }
    }

    fn run(mut self, mut reader: impl Read, watch: Watch<'_>, header: bool) -> Result<Indexed, IndexError> {
        loop {
            if watch.cancel.load(Ordering::Relaxed) {
                return Err(IndexError::Cancelled);
            }
            let eof = self.fill(&mut reader)?;
            self.take_rows(eof)?;
            (watch.progress)(IndexProgress {
                bytes: self.bytes,
                bytes_total: watch.bytes_total,
                rows: self.rows,
            });
            if eof || self.is_over() {
                return self.finish(eof, header);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.broken || self.faults.len() >= FAULTS_MAX
    }

    /// Reads on and says whether that was the end.
    fn fill(&mut self, reader: &mut impl Read) -> Result<bool, IndexError> {
        self.buffer.drain(..self.block_start);
        self.cursor -= self.block_start;
        self.block_start = 0;
        let before = self.buffer.len();
        // As much as is there already at least, so that a long row is not looked at over and over.
        let wanted = READ_BYTES.max(before - self.cursor);
        self.buffer.reserve(wanted);
        let read = reader.take(wanted as u64).read_to_end(&mut self.buffer)?;
        self.bytes += read as u64;
        self.checksum.update(&self.buffer[before..]);
        self.buffered_max = self.buffered_max.max(self.buffer.len());
        Ok(read < wanted)
    }

    /// Cuts as many rows as the buffer holds.
    fn take_rows(&mut self, eof: bool) -> Result<(), IndexError> {
        if self.columns.is_none() && !self.begin(eof)? {
            return Ok(());
        }
        while self.cursor < self.buffer.len() && !self.is_over() {
            let rest = &self.buffer[self.cursor..];
            match self.format.split(rest, eof) {
                Split::Row(len) => self.take_row(len),
                Split::Blank(len) => self.advance(len),
                Split::More if rest.len() > ROW_BYTES_MAX + 2 => self.break_off(FaultKind::TooLong),
                Split::More => break,
                Split::Fault(kind) => self.break_off(kind),
            }
        }
        Ok(())
    }

    fn take_row(&mut self, len: usize) {
        let row = &self.buffer[self.cursor..self.cursor + len];
        let checked = if len > ROW_BYTES_MAX + 2 { Err(FaultKind::TooLong) } else { self.format.check(row) };
        if let Err(kind) = checked {
            self.note(kind);
        }
        self.rows += 1;
        self.block_rows += 1;
        self.block_weight += self.format.overhead();
        self.advance(len);
    }

    /// Moves on behind parsed bytes and closes the block once it is full.
    fn advance(&mut self, len: usize) {
        self.cursor += len;
        self.block_weight += len;
        let (rows, bytes) = self.limits.at(self.offset);
        if self.block_rows >= rows || self.block_weight >= bytes {
            self.close_block();
        }
    }

    /// Reads what stands before the first row; says whether it is complete.
    fn begin(&mut self, eof: bool) -> Result<bool, IndexError> {
        if let Some(kind) = disguise(&self.buffer) {
            return Err(IndexError::NotText(kind));
        }
        match self.format.begin(&self.buffer, eof) {
            Beginning::Read { len, columns } => {
                self.columns = Some(columns);
                self.cursor = len;
                self.block_weight = len;
                Ok(true)
            }
            Beginning::More if self.buffer.len() > ROW_BYTES_MAX + BOM.len() + 2 => {
                self.break_off(FaultKind::TooLong);
                Ok(false)
            }
            Beginning::More => Ok(false),
            Beginning::Faults(kinds) => {
                kinds.into_iter().for_each(|kind| self.break_off(kind));
                Ok(false)
            }
        }
    }

    fn break_off(&mut self, kind: FaultKind) {
        self.broken = true;
        self.note(kind);
    }

    /// Notes a fault of the row at the cursor, which may begin with blank lines.
    fn note(&mut self, kind: FaultKind) {
        let rest = &self.buffer[self.cursor..];
        let blank = rest.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        let line = self.line + lines(&self.buffer[self.block_start..self.cursor + blank]);
        self.faults.push(Fault { line, kind });
    }

    fn close_block(&mut self) {
        let bytes = &self.buffer[self.block_start..self.cursor];
        find_bad_text(bytes, self.line, &mut self.faults);
        let first_row = self.rows - u64::from(self.block_rows);
        self.blocks.push(Block { first_row, offset: self.offset, checksum: xxh3_64(bytes) });
        self.line += lines(bytes);
        self.offset += bytes.len() as u64;
        self.stride = self.stride.max(mem::take(&mut self.block_rows));
        self.block_weight = 0;
        self.block_start = self.cursor;
    }

    fn finish(mut self, eof: bool, header: bool) -> Result<Indexed, IndexError> {
        if self.cursor > self.block_start {
            self.close_block();
        }
        if !self.faults.is_empty() {
            let unread = !eof || self.cursor < self.buffer.len();
            return Err(bad_rows(self.faults, self.broken || unread));
        }
        let columns = self.columns.unwrap_or_default();
        if self.rows == 0 {
            return Err(IndexError::NoRows { header: header && !columns.is_empty() });
        }
        let index = BlockIndex::new(self.blocks, self.rows, self.bytes).expect("blocks were cut in order");
        let (rows, bytes, stride, checksum) = (self.rows, self.bytes, self.stride, self.checksum.digest());
        Ok(Indexed { index, rows, bytes, checksum, columns, stride, buffered_max: self.buffered_max })
    }
}

/// The first faults in the order of their lines; of several of one line that about its text.
fn bad_rows(mut faults: Vec<Fault>, ended_early: bool) -> IndexError {
    faults.sort_by_key(|fault| (fault.line, fault.kind != FaultKind::NotUtf8));
    faults.dedup_by(|later, first| later.line == first.line && first.kind == FaultKind::NotUtf8);
    let more = ended_early || faults.len() > FAULTS_MAX;
    faults.truncate(FAULTS_MAX);
    IndexError::BadRows { faults, more }
}

fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Notes each line that is not UTF-8, up to the most that are listed.
fn find_bad_text(mut bytes: &[u8], mut line: u64, faults: &mut Vec<Fault>) {
    while let Err(error) = std::str::from_utf8(bytes) {
        line += lines(&bytes[..error.valid_up_to()]);
        faults.push(Fault { line, kind: FaultKind::NotUtf8 });
        let rest = &bytes[error.valid_up_to()..];
        let Some(end) = memchr::memchr(b'\n', rest).filter(|_| faults.len() < 2 * FAULTS_MAX) else { return };
        bytes = &rest[end..];
    }
}

/// What a file is that was meant to be text, by its first bytes.
fn disguise(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        [0x1f, 0x8b, ..] => Some("a gzip file"),
        [b'P', b'K', 3, 4, ..] => Some("a zip or spreadsheet file"),
        [b'P', b'A', b'R', b'1', ..] => Some("a Parquet file"),
        _ => None,
    }
}
