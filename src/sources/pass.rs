//! Interface of the single pass over a source before its task begins; `cutter` does the work.
//!
//! Blocking. Memory is bounded by a block, a row and a read, whatever the size of the file, plus 24 bytes per block.
//! The outcome depends only on the bytes and the format, so the same file gives the same index.

use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::block_index::BlockIndex;
use super::csv::CsvRows;
use super::cutter::Cutter;
use super::fault::IndexError;
use super::file::{modified_ns, open_regular};
use super::frames::Packer;
use super::lines::TextLines;
use super::ndjson::NdjsonRows;
use super::spec::Format;
use windrow_engine::ports::sources::store::IndexedSource;

/// Maximum length of a row, in bytes. A row travels in one callback; `body_limit` of `config.toml` is of this size.
pub const ROW_BYTES_MAX: usize = 1024 * 1024;

/// Maximum size of blocks. A block ends with the row that reaches either limit.
#[derive(Clone, Copy, Debug)]
pub struct BlockLimits {
    /// Maximum rows per block.
    pub rows: u32,
    /// Approximate bytes of a block's rows as JSON: raw bytes plus the column names repeated in each row.
    pub bytes: usize,
    /// File offset from which on blocks may have sixteen times the rows and four times the bytes.
    pub far: u64,
}

impl Default for BlockLimits {
    /// Returns 4,096 rows or 1 MiB; beyond 4 GiB, 65,536 rows or 4 MiB, which keeps the index of a terabyte at a few
    /// megabytes.
    fn default() -> BlockLimits {
        BlockLimits {
            rows: 4096,
            bytes: 1024 * 1024,
            far: 4 << 30,
        }
    }
}

impl BlockLimits {
    /// Returns the maximum rows and bytes of a block that starts at `offset`.
    pub(super) fn at(&self, offset: u64) -> (u32, usize) {
        if offset < self.far {
            (self.rows, self.bytes)
        } else {
            (self.rows * 16, self.bytes * 4)
        }
    }
}

/// Progress of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexProgress {
    /// Number of bytes read so far.
    pub bytes: u64,
    /// Total number of bytes, if known.
    pub bytes_total: Option<u64>,
    /// Number of rows counted so far.
    pub rows: u64,
}

/// Result of a pass.
#[derive(Debug)]
pub struct Indexed {
    /// Index of the blocks.
    pub index: BlockIndex,
    /// Total number of rows.
    pub rows: u64,
    /// Total number of bytes.
    pub bytes: u64,
    /// XXH3 (64 bits) of all bytes.
    pub checksum: u64,
    /// Column names of a CSV, or `line` for lines; otherwise empty.
    pub columns: Vec<String>,
    /// Maximum number of rows in any block.
    pub stride: u32,
    /// Maximum bytes of the source held in memory at once.
    pub buffered_max: usize,
}

/// Indexes a regular file, and refuses one that is written to meanwhile.
///
/// # Errors
/// All causes of [`IndexError`]; nothing is kept then.
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
    Ok((
        indexed.into_source(format, location, modified_ns(&before)).0,
        parts,
    ))
}

/// Indexes an open regular file. `before` is its metadata when it was opened.
pub(super) fn index_open_file(
    file: &File,
    before: &Metadata,
    format: &Format,
    progress: &mut dyn FnMut(IndexProgress),
    cancel: &AtomicBool,
) -> Result<Indexed, IndexError> {
    let indexed = index_bytes(
        file,
        Some(before.len()),
        format,
        BlockLimits::default(),
        progress,
        cancel,
    )?;
    let steady = modified_ns(before) == modified_ns(&file.metadata()?) && before.len() == indexed.bytes;
    if steady {
        Ok(indexed)
    } else {
        Err(IndexError::ChangedMeanwhile)
    }
}

impl Indexed {
    /// Checks that the source has rows.
    ///
    /// # Errors
    /// `NoRows` if it has none.
    pub(super) fn with_rows(self, format: &Format) -> Result<Indexed, IndexError> {
        let header = matches!(format, Format::Csv(csv) if csv.header);
        match self.rows {
            0 => Err(IndexError::NoRows { header }),
            _ => Ok(self),
        }
    }

    /// Splits into the form that the store keeps and the index.
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

/// Indexes any reader. `bytes_total` is used only for the progress.
///
/// # Errors
/// All causes of [`IndexError`] except `ChangedMeanwhile`.
pub fn index_bytes(
    reader: impl Read,
    bytes_total: Option<u64>,
    format: &Format,
    limits: BlockLimits,
    progress: &mut dyn FnMut(IndexProgress),
    cancel: &AtomicBool,
) -> Result<Indexed, IndexError> {
    let watch = Watch {
        bytes_total,
        progress,
        cancel,
        keep: None,
    };
    run(reader, format, limits, watch, None)?.with_rows(format)
}

/// Indexes any reader and keeps its blocks compressed, one frame each. The source may have no rows.
pub(super) fn index_packed(
    reader: impl Read,
    format: &Format,
    keep: &mut dyn Write,
    progress: &mut dyn FnMut(IndexProgress),
    cancel: &AtomicBool,
) -> Result<Indexed, IndexError> {
    let watch = Watch {
        bytes_total: None,
        progress,
        cancel,
        keep: Some(keep),
    };
    run(
        reader,
        format,
        BlockLimits::default(),
        watch,
        Some(Packer::new()?),
    )
}

fn run(
    reader: impl Read,
    format: &Format,
    limits: BlockLimits,
    watch: Watch<'_>,
    packer: Option<Packer>,
) -> Result<Indexed, IndexError> {
    format.check().map_err(IndexError::BadFormat)?;
    match format {
        Format::Csv(csv) => {
            let cutter = Cutter::new(CsvRows::new(csv, &[]), limits).packing(packer);
            cutter.run(reader, watch, csv.header)
        }
        Format::Ndjson => Cutter::new(NdjsonRows, limits)
            .packing(packer)
            .run(reader, watch, false),
        Format::Lines => Cutter::new(TextLines::LF, limits)
            .packing(packer)
            .run(reader, watch, false),
        Format::Nul => Cutter::new(TextLines::NUL, limits)
            .packing(packer)
            .run(reader, watch, false),
    }
}

/// Pass that is fed with bytes. While waiting for them, which may take long, it holds no thread.
pub(super) enum FedPass {
    Csv(Box<Cutter<CsvRows>>, bool),
    Ndjson(Box<Cutter<NdjsonRows>>),
    Lines(Box<Cutter<TextLines>>),
}

impl FedPass {
    /// Creates a pass before its first byte.
    ///
    /// # Errors
    /// Fails if the format is invalid.
    pub(super) fn begin(format: &Format) -> Result<FedPass, IndexError> {
        format.check().map_err(IndexError::BadFormat)?;
        let limits = BlockLimits::default();
        Ok(match format {
            Format::Csv(csv) => {
                FedPass::Csv(Box::new(Cutter::new(CsvRows::new(csv, &[]), limits)), csv.header)
            }
            Format::Ndjson => FedPass::Ndjson(Box::new(Cutter::new(NdjsonRows, limits))),
            Format::Lines => FedPass::Lines(Box::new(Cutter::new(TextLines::LF, limits))),
            Format::Nul => FedPass::Lines(Box::new(Cutter::new(TextLines::NUL, limits))),
        })
    }

    /// Returns the number of bytes it takes at once.
    pub(super) fn wanted(&self) -> usize {
        match self {
            FedPass::Csv(cutter, _) => cutter.wanted(),
            FedPass::Ndjson(cutter) => cutter.wanted(),
            FedPass::Lines(cutter) => cutter.wanted(),
        }
    }

    /// Processes the next bytes, exactly as many as wanted.
    ///
    /// # Errors
    /// All causes of [`IndexError`] that make more bytes pointless.
    pub(super) fn feed(self, bytes: &[u8]) -> Result<FedPass, IndexError> {
        Ok(match self {
            FedPass::Csv(cutter, header) => FedPass::Csv(Box::new(cutter.feed(bytes)?), header),
            FedPass::Ndjson(cutter) => FedPass::Ndjson(Box::new(cutter.feed(bytes)?)),
            FedPass::Lines(cutter) => FedPass::Lines(Box::new(cutter.feed(bytes)?)),
        })
    }

    /// Processes the last bytes, fewer than wanted. There may be no rows, but an expected header must exist.
    ///
    /// # Errors
    /// As [`index_bytes`].
    pub(super) fn end(self, bytes: &[u8]) -> Result<Indexed, IndexError> {
        match self {
            FedPass::Csv(cutter, header) => cutter.end(bytes, header),
            FedPass::Ndjson(cutter) => cutter.end(bytes, false),
            FedPass::Lines(cutter) => cutter.end(bytes, false),
        }
    }
}

/// Observer of a pass.
pub(super) struct Watch<'a> {
    pub(super) bytes_total: Option<u64>,
    pub(super) progress: &'a mut dyn FnMut(IndexProgress),
    pub(super) cancel: &'a AtomicBool,
    /// Destination of the compressed blocks.
    pub(super) keep: Option<&'a mut dyn Write>,
}
