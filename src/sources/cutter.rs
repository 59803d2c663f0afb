//! Splits a byte stream into rows and blocks, for the indexing pass of any format.
//!
//! Holds the bytes of the open block and of one read. A block ends with the row or blank lines that fill it. Header,
//! blank lines and anything after the last row belong to blocks too, so that blocks cover every byte.

use std::io::Read;
use std::mem;
use std::sync::atomic::Ordering;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::block_index::{Block, BlockIndex};
use super::fault::{FAULTS_MAX, Fault, FaultKind, IndexError};
use super::frames::Packer;
use super::packing::Packing;
use super::pass::{BlockLimits, IndexProgress, Indexed, ROW_BYTES_MAX, Watch};
use super::rows::{BOM, Beginning, RowFormat, Split};

/// Size of a read, in bytes; large enough that reading costs nothing compared to parsing.
const READ_BYTES: usize = 256 * 1024;

/// State of a running pass.
pub(super) struct Cutter<F> {
    format: F,
    limits: BlockLimits,
    /// Bytes not yet in a closed block, from `block_start` on; parsed up to `cursor`.
    buffer: Vec<u8>,
    block_start: usize,
    cursor: usize,
    /// Start of the open block: its offset, line, and contents so far.
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
    /// True after a fault that makes further reading impossible.
    broken: bool,
    buffered_max: usize,
    /// Compresses the blocks, if they are to be kept.
    packer: Option<Packer>,
}

impl<F: RowFormat> Cutter<F> {
    /// Creates a pass before its first byte.
    pub(super) fn new(format: F, limits: BlockLimits) -> Cutter<F> {
        Cutter {
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
            packer: None,
        }
    }

    /// Also compresses each block.
    pub(super) fn packing(mut self, packer: Option<Packer>) -> Cutter<F> {
        self.packer = packer;
        self
    }

    /// Reads to the end, or to a fault that makes further reading pointless. `header`: the format has one.
    ///
    /// # Errors
    /// See `index_bytes`.
    pub(super) fn run(
        mut self,
        mut reader: impl Read,
        mut watch: Watch<'_>,
        header: bool,
    ) -> Result<Indexed, IndexError> {
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
                self.close_rest();
                self.hand_over(&mut watch, true)?;
                return self.finish(eof, header);
            }
            self.hand_over(&mut watch, false)?;
        }
    }

    /// Writes out the blocks compressed so far, and after the last one their table.
    fn hand_over(&mut self, watch: &mut Watch<'_>, is_last: bool) -> Result<(), IndexError> {
        let (Some(packer), Some(keep)) = (&mut self.packer, &mut watch.keep) else {
            return Ok(());
        };
        keep.write_all(&packer.take()?)?;
        if is_last {
            keep.write_all(&packer.table())?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.broken || self.faults.len() >= FAULTS_MAX
    }

    /// Returns the number of bytes to process at once: at least as many as are waiting for the end of their row, so
    /// that a long row isn't scanned repeatedly. Block ends depend on this, so a caller that feeds a pass must pass
    /// exactly this many.
    pub(super) fn wanted(&self) -> usize {
        READ_BYTES.max(self.buffer.len() - self.cursor)
    }

    /// Reads more bytes. True at the end of the input.
    fn fill(&mut self, reader: &mut impl Read) -> Result<bool, IndexError> {
        let wanted = self.wanted();
        self.buffer.drain(..self.block_start);
        self.cursor -= self.block_start;
        self.block_start = 0;
        let before = self.buffer.len();
        self.buffer.reserve(wanted);
        let read = reader.take(wanted as u64).read_to_end(&mut self.buffer);
        let read = read.map_err(|error| IndexError::of_read(error, self.rows))?;
        self.bytes += read as u64;
        self.checksum.update(&self.buffer[before..]);
        self.buffered_max = self.buffered_max.max(self.buffer.len());
        Ok(read < wanted)
    }

    /// Processes the next bytes, exactly as many as wanted.
    ///
    /// # Errors
    /// Fails on a fault that makes more bytes pointless.
    pub(super) fn feed(mut self, mut bytes: &[u8]) -> Result<Cutter<F>, IndexError> {
        self.fill(&mut bytes)?;
        self.take_rows(false)?;
        if self.is_over() {
            Err(bad_rows(self.faults, true))
        } else {
            Ok(self)
        }
    }

    /// Processes the last bytes, fewer than wanted.
    ///
    /// # Errors
    /// See `index_bytes`.
    pub(super) fn end(mut self, mut bytes: &[u8], header: bool) -> Result<Indexed, IndexError> {
        self.fill(&mut bytes)?;
        self.take_rows(true)?;
        self.finish(true, header)
    }

    /// Splits off all complete rows in the buffer.
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
        let checked = if len > ROW_BYTES_MAX + 2 {
            Err(FaultKind::TooLong)
        } else {
            self.format.check(row)
        };
        if let Err(kind) = checked {
            self.note(kind);
        }
        self.rows += 1;
        self.block_rows += 1;
        self.block_weight += self.format.overhead();
        self.advance(len);
    }

    /// Advances past parsed bytes, and closes the block once it is full.
    fn advance(&mut self, len: usize) {
        self.cursor += len;
        self.block_weight += len;
        let (rows, bytes) = self.limits.at(self.offset);
        if self.block_rows >= rows || self.block_weight >= bytes {
            self.close_block();
        }
    }

    /// Reads everything before the first row. True if that is complete.
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

    /// Records a fault of the row at the cursor. A header may have blank lines before it.
    fn note(&mut self, kind: FaultKind) {
        let rest = &self.buffer[self.cursor..];
        let blank = rest
            .iter()
            .take_while(|byte| matches!(byte, b'\n' | b'\r'))
            .count();
        let line = self.line + lines(&self.buffer[self.block_start..self.cursor + blank]);
        self.faults.push(Fault { line, kind });
    }

    fn close_block(&mut self) {
        let bytes = &self.buffer[self.block_start..self.cursor];
        find_bad_text(bytes, self.line, &mut self.faults);
        if let Some(packer) = &mut self.packer {
            packer.add(bytes);
        }
        let first_row = self.rows - u64::from(self.block_rows);
        self.blocks.push(Block {
            first_row,
            offset: self.offset,
            checksum: xxh3_64(bytes),
        });
        self.line += lines(bytes);
        self.offset += bytes.len() as u64;
        self.stride = self.stride.max(mem::take(&mut self.block_rows));
        self.block_weight = 0;
        self.block_start = self.cursor;
    }

    fn close_rest(&mut self) {
        if self.cursor > self.block_start {
            self.close_block();
        }
    }

    fn finish(mut self, eof: bool, header: bool) -> Result<Indexed, IndexError> {
        self.close_rest();
        if !self.faults.is_empty() {
            let unread = !eof || self.cursor < self.buffer.len();
            return Err(bad_rows(self.faults, self.broken || unread));
        }
        let columns = self.columns.unwrap_or_default();
        if self.rows == 0 && header && columns.is_empty() {
            return Err(IndexError::NoHeader);
        }
        if self.blocks.is_empty() {
            return Err(IndexError::NoRows { header });
        }
        let index = BlockIndex::new(self.blocks, self.rows, self.bytes).expect("blocks were cut in order");
        let (rows, bytes, stride, checksum) = (self.rows, self.bytes, self.stride, self.checksum.digest());
        Ok(Indexed {
            index,
            rows,
            bytes,
            checksum,
            columns,
            stride,
            buffered_max: self.buffered_max,
        })
    }
}

/// Returns the first faults in line order. For several on one line, the fault of its text wins.
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

/// Records each line that isn't UTF-8, up to the limit of listed faults.
fn find_bad_text(mut bytes: &[u8], mut line: u64, faults: &mut Vec<Fault>) {
    while let Err(error) = std::str::from_utf8(bytes) {
        line += lines(&bytes[..error.valid_up_to()]);
        faults.push(Fault {
            line,
            kind: FaultKind::NotUtf8,
        });
        let rest = &bytes[error.valid_up_to()..];
        let Some(end) = memchr::memchr(b'\n', rest).filter(|_| faults.len() < 2 * FAULTS_MAX) else {
            return;
        };
        bytes = &rest[end..];
    }
}

/// Recognizes a non-text file by its first bytes.
fn disguise(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        [b'P', b'K', 3, 4, ..] => Some("a zip or spreadsheet file"),
        [b'P', b'A', b'R', b'1', ..] => Some("a Parquet file"),
        _ if bytes.get(257..262) == Some(b"ustar") => Some("a tar archive"),
        _ => Packing::of(bytes).map(|packing| match packing {
            Packing::Gzip => "a gzip file",
            Packing::Zstd => "a zstd file",
            Packing::Bzip2 => "a bzip2 file",
            Packing::Xz => "an xz file",
        }),
    }
}
