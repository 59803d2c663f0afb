//! The one pass over a source before its task begins: what it is asked and what it answers. `cutter` does it.
//!
//! Blocking; memory is bounded by a block, a row and a read, whatever the size of the file, plus 24 bytes per
//! block. The outcome depends on the bytes and the format only, so that the same file gives the same index.

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

/// The longest row. Unit: bytes. (A row travels in one callback; `body_limit` of `config.toml` is of this size.)
pub const ROW_BYTES_MAX: usize = 1024 * 1024;

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
        BlockLimits {
            rows: 4096,
            bytes: 1024 * 1024,
            far: 4 << 30,
        }
    }
}

impl BlockLimits {
    /// The most rows and bytes of a block that begins at `offset`.
    pub(super) fn at(&self, offset: u64) -> (u32, usize) {
        if offset < self.far {
            (self.rows, self.bytes)
        } else {
            (self.rows * 16, self.bytes * 4)
        }
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
    /// Column names of a CSV, `line` of lines; empty otherwise.
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
    Ok((
        indexed.into_source(format, location, modified_ns(&before)).0,
        parts,
    ))
}

/// Indexes an open regular file; `before` is what was known of it when it was opened.
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
    /// The same, of a source that must have rows.
    ///
    /// # Errors
    /// `NoRows`.
    pub(super) fn with_rows(self, format: &Format) -> Result<Indexed, IndexError> {
        let header = matches!(format, Format::Csv(csv) if csv.header);
        match self.rows {
            0 => Err(IndexError::NoRows { header }),
            _ => Ok(self),
        }
    }

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
    let watch = Watch {
        bytes_total,
        progress,
        cancel,
        keep: None,
    };
    run(reader, format, limits, watch, None)?.with_rows(format)
}

/// Indexes whatever can be read, and keeps its blocks compressed, a frame each. It may have no rows.
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

/// A pass that is fed: between its bytes, which may be long in coming, it holds no thread.
pub(super) enum FedPass {
    Csv(Box<Cutter<CsvRows>>, bool),
    Ndjson(Box<Cutter<NdjsonRows>>),
    Lines(Box<Cutter<TextLines>>),
}

impl FedPass {
    /// A pass without bytes yet.
    ///
    /// # Errors
    /// When the format can't be used.
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

    /// How many bytes it takes in one go.
    pub(super) fn wanted(&self) -> usize {
        match self {
            FedPass::Csv(cutter, _) => cutter.wanted(),
            FedPass::Ndjson(cutter) => cutter.wanted(),
            FedPass::Lines(cutter) => cutter.wanted(),
        }
    }

    /// Takes the next bytes: exactly as many as are wanted.
    ///
    /// # Errors
    /// Each cause of [`IndexError`] for which more bytes are pointless.
    pub(super) fn feed(self, bytes: &[u8]) -> Result<FedPass, IndexError> {
        Ok(match self {
            FedPass::Csv(cutter, header) => FedPass::Csv(Box::new(cutter.feed(bytes)?), header),
            FedPass::Ndjson(cutter) => FedPass::Ndjson(Box::new(cutter.feed(bytes)?)),
            FedPass::Lines(cutter) => FedPass::Lines(Box::new(cutter.feed(bytes)?)),
        })
    }

    /// Takes the last bytes, fewer than are wanted. There may be no rows, but a header where one is expected.
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

/// Who follows a pass.
pub(super) struct Watch<'a> {
    pub(super) bytes_total: Option<u64>,
    pub(super) progress: &'a mut dyn FnMut(IndexProgress),
    pub(super) cancel: &'a AtomicBool,
    /// Takes the compressed blocks.
    pub(super) keep: Option<&'a mut dyn Write>,
}
