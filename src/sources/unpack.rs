//! Streaming decompression: gzip, zstd, bzip2, xz, each with all of its members.
//!
//! Memory and the expansion of the data are bounded, whatever the bytes ask for. Truncated data is a fault: the part
//! before it is never taken for the whole.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::frames::count_unpacked;
use super::packing::Packing;
use super::unpack_error::{Expansion, UnpackError, UnpackFault};

/// Memory limit of a decoder, as a power of two in bytes: the window of zstd, all of xz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryLog(u32);

impl MemoryLog {
    /// 128 MiB for users reading their own files: `zstd --long=27`, `xz -9`.
    pub(super) const OWN: MemoryLog = MemoryLog(27);
    /// 32 MiB for each concurrent upload to a node: `zstd -19`, `xz -8`.
    pub(super) const SENT: MemoryLog = MemoryLog(25);

    fn mib(self) -> u32 {
        1 << (self.0 - 20)
    }
}

/// Size of a read of compressed bytes, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// Reader of the unpacked data. Faults are [`UnpackError`]s inside of `io::Error`s.
pub(super) struct Unpacker<R: Read> {
    decoder: Decoder<Below<R>>,
    packing: Packing,
    memory: MemoryLog,
    allowed: Expansion,
    unpacked: u64,
    read: Arc<AtomicU64>,
}

enum Decoder<R: BufRead> {
    Gzip(Box<MultiGzDecoder<R>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, R>>),
    Bzip2(MultiBzDecoder<R>),
    Xz(Box<XzReader<R>>),
}

impl<R: Read> Unpacker<R> {
    /// Creates a reader at the start of `packed`.
    ///
    /// # Errors
    /// Fails if there is no memory for the decoder.
    pub(super) fn new(
        packing: Packing,
        packed: R,
        allowed: Expansion,
        memory: MemoryLog,
    ) -> io::Result<Unpacker<R>> {
        let read = Arc::new(AtomicU64::new(0));
        let packed = BufReader::with_capacity(READ_BYTES, Counted(packed, Arc::clone(&read)));
        let decoder = match packing {
            Packing::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(packed))),
            Packing::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
                decoder.window_log_max(memory.0)?;
                Decoder::Zstd(Box::new(decoder))
            }
            Packing::Bzip2 => Decoder::Bzip2(MultiBzDecoder::new(packed)),
            Packing::Xz => Decoder::Xz(Box::new(XzReader::new_mem_limit(
                packed,
                true,
                memory.mib() * 1024,
            ))),
        };
        Ok(Unpacker {
            decoder,
            packing,
            memory,
            allowed,
            unpacked: 0,
            read,
        })
    }

    /// Returns a live counter of the compressed bytes read.
    pub(super) fn progress(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.read)
    }

    fn packed(&mut self) -> &mut Below<R> {
        match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.get_mut(),
            Decoder::Zstd(decoder) => decoder.get_mut(),
            Decoder::Bzip2(decoder) => decoder.get_mut(),
            Decoder::Xz(decoder) => decoder.inner_mut(),
        }
    }

    fn fault(&self, kind: UnpackFault) -> io::Error {
        io::Error::other(UnpackError {
            packing: self.packing,
            kind,
            read: self.read.load(Ordering::Relaxed),
            unpacked: self.unpacked,
            rows: 0,
        })
    }

    /// Converts an error of the decoder; errors of the input below pass unchanged.
    fn told(&mut self, error: io::Error) -> io::Error {
        if error.get_ref().is_some_and(|inner| inner.is::<BelowError>()) {
            return error;
        }
        let words = error.to_string();
        self.fault(match error.kind() {
            io::ErrorKind::OutOfMemory => UnpackFault::Memory(self.memory.mib()),
            io::ErrorKind::UnexpectedEof => UnpackFault::Truncated,
            // Messages of the zstd library, and of the xz decoder if the next stream is truncated.
            _ if words.contains("too much memory") => UnpackFault::Memory(self.memory.mib()),
            _ if words.contains("incomplete") => UnpackFault::Truncated,
            _ => UnpackFault::Corrupt(words),
        })
    }
}

impl<R: Read> Read for Unpacker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.read(buffer),
            Decoder::Zstd(decoder) => decoder.read(buffer),
            Decoder::Bzip2(decoder) => decoder.read(buffer),
            Decoder::Xz(decoder) => decoder.read(buffer),
        };
        let read = read.map_err(|error| self.told(error))?;
        if read == 0 && !buffer.is_empty() && !self.packed().fill_buf()?.is_empty() {
            return Err(self.fault(UnpackFault::Corrupt("other bytes follow".to_owned())));
        }
        count_unpacked(read);
        self.unpacked += read as u64;
        let packed = self.read.load(Ordering::Relaxed);
        if self.unpacked > self.allowed.free && self.unpacked / self.allowed.ratio > packed {
            return Err(self.fault(UnpackFault::Expansion(self.allowed)));
        }
        Ok(read)
    }
}

/// Input of the decoder: the compressed bytes.
type Below<R> = BufReader<Counted<R>>;

/// Reader that counts its bytes.
struct Counted<R>(R, Arc<AtomicU64>);

/// Error of the input below, whatever its kind, as opposed to a fault of the data.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct BelowError(io::Error);

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Ok(read) => {
                    self.1.fetch_add(read as u64, Ordering::Relaxed);
                    return Ok(read);
                }
                // Retried here, so that no decoder has to handle it.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io::Error::new(error.kind(), BelowError(error))),
            }
        }
    }
}
