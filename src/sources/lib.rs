//! Item sources: ranges, inline lists, CSV, NDJSON and lines of text.
//!
//! A file is read once from end to end before its task begins (`pass`, `cutter`): rows are counted, checked, and
//! grouped into blocks whose place and checksum are remembered (`block_index`). Later `FileSource` reads any block by
//! its index, and checks it before any of its rows is used. Piped input is spooled to a file in the same pass. Both
//! directions use the same parser per format (`rows`: `csv`, `ndjson`, `lines`), so they can't disagree on rows.
//! Compressed data is unpacked in that pass (`unpack`), and kept so that single blocks can be read (`frames`,
//! `open_packed`). [`open()`] puts this together for a task's [`SourceSpec`].
//!
//! A long-lived node has three more kinds: items appended to an open task (`appended`), uploads (`receive`,
//! `receive_packed`, `upload`), which are stored in parts, and redrives (`redrive`), whose items are failures of
//! another task. `resolver` turns requests into descriptions, and `stored` opens stored descriptions.
//!
//! Never holds a whole file in memory, repairs a row, or serves bytes that differ from those of the pass.

mod appended;
mod block_index;
mod csv;
mod csv_simple;
mod cutter;
mod fault;
mod file;
mod found;
mod frames;
mod glob;
mod glob_walk;
mod inline;
mod json_rows;
mod lines;
mod ndjson;
mod off_thread;
mod open;
mod open_error;
mod open_packed;
mod opened;
mod packing;
mod pass;
mod piped;
mod range;
mod receive;
mod receive_packed;
mod redrive;
mod resolver;
mod rows;
mod spec;
mod spec_json;
mod spool;
mod stored;
mod unpack;
mod unpack_error;
mod upload;

pub use appended::AppendedSource;
pub use block_index::{Block, BlockIndex, DamagedIndex, Located, PART_BYTES_MAX};
pub use fault::{Fault, FaultKind, IndexError, Looks};
pub use file::FileSource;
pub use frames::unpacked_bytes;
pub use glob_walk::Skipped;
pub use inline::InlineSource;
pub use open::{IndexWatch, Opening, open, open_piped, open_rows};
pub use open_error::OpenSourceError;
pub use opened::OpenedSource;
pub use packing::Packing;
pub use pass::{BlockLimits, IndexProgress, Indexed, ROW_BYTES_MAX, index_bytes, index_file};
pub use piped::read_once;
pub use range::RangeSource;
pub use receive::{ReceiveError, receive};
pub use redrive::RedriveSource;
pub use resolver::Resolver;
pub use rows::BOM;
pub use spec::{CsvFormat, Format, Input, SourceSpec};
pub use stored::{StoredSourceError, StoredSources};
pub use unpack_error::{Expansion, UnpackError, UnpackFault};
pub use upload::UploadSource;
pub use windrow_engine::ports::sources::resolver::INLINE_BYTES_MAX;
pub use windrow_net::{Fetcher, Guard};
