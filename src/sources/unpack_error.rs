//! Errors of unpacking, and limits on the expansion of compressed data.

use std::fmt;

use super::packing::Packing;

/// Limit on the expansion of compressed data. Ordinary files grow tenfold, logs hundredfold; files made to fill disks
/// grow without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// Unpacked bytes that are always allowed.
    pub free: u64,
    /// Beyond that, maximum factor over the compressed bytes.
    pub ratio: u64,
}

impl Expansion {
    /// No limit, for data that was limited before.
    pub(super) const NONE: Expansion = Expansion {
        free: u64::MAX,
        ratio: u64::MAX,
    };
}

impl Default for Expansion {
    /// Returns 1 GiB, then 250-fold.
    fn default() -> Expansion {
        Expansion {
            free: 1 << 30,
            ratio: 250,
        }
    }
}

/// Error of unpacking compressed data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpackError {
    /// Compression format of the data.
    pub packing: Packing,
    /// Kind of the fault.
    pub kind: UnpackFault,
    /// Compressed bytes read so far, of which the last 64 KiB may not have been processed.
    pub read: u64,
    /// Number of bytes unpacked before the fault.
    pub unpacked: u64,
    /// Number of whole rows unpacked before the fault.
    pub rows: u64,
}

/// Kind of fault in compressed data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnpackFault {
    /// The data is truncated.
    Truncated,
    /// The data is damaged or followed by something else; with the decoder's message.
    Corrupt(String),
    /// Unpacking needs more memory than this, in MiB.
    Memory(u32),
    /// The data expands beyond [`Expansion`].
    Expansion(Expansion),
}

impl fmt::Display for UnpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnpackError {
            packing,
            read,
            unpacked,
            rows,
            ..
        } = self;
        match &self.kind {
            UnpackFault::Truncated => write!(f, "its {packing} data is truncated after {read} bytes"),
            UnpackFault::Corrupt(why) => {
                write!(
                    f,
                    "its {packing} data is damaged within the first {read} bytes ({why})"
                )
            }
            UnpackFault::Memory(mib) => write!(
                f,
                "unpacking its {packing} data takes more than {mib} MiB of memory"
            ),
            UnpackFault::Expansion(allowed) => write!(
                f,
                "its {packing} data unpacks to more than {} times its size: {read} bytes to over \
                 {unpacked}; it may be a decompression bomb",
                allowed.ratio
            ),
        }?;
        if *rows > 0 {
            write!(f, "; {rows} rows before that were valid")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnpackError {}

impl UnpackError {
    /// Returns a stable one-word reason.
    pub fn reason(&self) -> &'static str {
        match self.kind {
            UnpackFault::Truncated => "truncated",
            UnpackFault::Corrupt(_) => "damaged",
            UnpackFault::Memory(_) => "memory",
            UnpackFault::Expansion(_) => "expansion",
        }
    }

    /// Returns a suggestion for people.
    pub(super) fn hint(&self) -> &'static str {
        match (&self.kind, self.packing) {
            (UnpackFault::Truncated, _) => {
                "wait until the program that writes it has finished, or copy it again"
            }
            (UnpackFault::Corrupt(_), Packing::Gzip) => "check it with gzip -t FILE, and copy it again",
            (UnpackFault::Corrupt(_), Packing::Zstd) => "check it with zstd -t FILE, and copy it again",
            (UnpackFault::Corrupt(_), Packing::Bzip2) => "check it with bzip2 -t FILE, and copy it again",
            (UnpackFault::Corrupt(_), Packing::Xz) => "check it with xz -t FILE, and copy it again",
            (UnpackFault::Memory(..128), Packing::Xz) => {
                "compress it with xz -8 or less, or send it unpacked"
            }
            (UnpackFault::Memory(..128), _) => {
                "compress it with zstd -19 or less and without --long, or send it unpacked"
            }
            (UnpackFault::Memory(_), Packing::Xz) => {
                "compress it with xz -9 or less, or unpack it first: xz -dc FILE | … -"
            }
            (UnpackFault::Memory(_), _) => {
                "compress it with --long=27 or less, or unpack it first: zstd -dc --long=31 FILE | … -"
            }
            (UnpackFault::Expansion(_), _) => {
                "if this is intended, unpack it first, for example: gzip -dc FILE | … -"
            }
        }
    }
}
