//! Why compressed bytes can't be unpacked, and how much may come out of how little.

use std::fmt;

use super::packing::Packing;

/// How much may come out of how little. Files that people have grow tenfold, logs hundredfold; those that are made to fill
/// disks grow without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// So much may come out of anything. Unit: bytes.
    pub free: u64,
    /// Beyond that, at most so many times the compressed bytes.
    pub ratio: u64,
}

impl Expansion {
    /// No bound, for what was bounded before.
    pub(super) const NONE: Expansion = Expansion {
        free: u64::MAX,
        ratio: u64::MAX,
    };
}

impl Default for Expansion {
    /// 1 GiB, then 250-fold.
    fn default() -> Expansion {
        Expansion {
            free: 1 << 30,
            ratio: 250,
        }
    }
}

/// Compressed bytes that can't be unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpackError {
    /// How they are compressed.
    pub packing: Packing,
    /// What is wrong.
    pub kind: UnpackFault,
    /// Compressed bytes read by then, of which the last 64 KiB may not have been looked at.
    pub read: u64,
    /// Bytes that came out before.
    pub unpacked: u64,
    /// Whole rows that came out before.
    pub rows: u64,
}

/// What is wrong with compressed bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnpackFault {
    /// They end before their end.
    Truncated,
    /// They are damaged, or followed by something else; the decoder's words.
    Corrupt(String),
    /// Unpacking them takes more memory than this. Unit: MiB.
    Memory(u32),
    /// More comes out than [`Expansion`] allows.
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
            UnpackFault::Truncated => write!(f, "its {packing} data end in the middle, after {read} bytes"),
            UnpackFault::Corrupt(why) => {
                write!(
                    f,
                    "its {packing} data are damaged within the first {read} bytes ({why})"
                )
            }
            UnpackFault::Memory(mib) => write!(
                f,
                "unpacking its {packing} data takes more than {mib} MiB of memory"
            ),
            UnpackFault::Expansion(allowed) => write!(
                f,
                "its {packing} data unpack to more than {} times their size: {read} bytes to over {unpacked}; such \
                 files are made to fill disks",
                allowed.ratio
            ),
        }?;
        if *rows > 0 {
            write!(f, "; {rows} rows before that were sound")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnpackError {}

impl UnpackError {
    /// What is wrong in one word, which stays the same.
    pub fn reason(&self) -> &'static str {
        match self.kind {
            UnpackFault::Truncated => "truncated",
            UnpackFault::Corrupt(_) => "damaged",
            UnpackFault::Memory(_) => "memory",
            UnpackFault::Expansion(_) => "expansion",
        }
    }

    /// What a person may try.
    pub(super) fn hint(&self) -> &'static str {
        match (&self.kind, self.packing) {
            (UnpackFault::Truncated, _) => {
                "wait until whatever writes it has ended, or copy it again from where it came from"
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
                "compress it with xz -9 or less, or unpack it in front: xz -dc FILE | … -"
            }
            (UnpackFault::Memory(_), _) => {
                "compress it with --long=27 or less, or unpack it in front: zstd -dc --long=31 FILE | … -"
            }
            (UnpackFault::Expansion(_), _) => {
                "if it is meant to be so, unpack it in front, such as: gzip -dc FILE | … -"
            }
        }
    }
}
