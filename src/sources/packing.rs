//! Detection of a file's compression by its first bytes, whatever its name.

use std::fmt;
use std::path::Path;

/// Number of first bytes needed to detect the type of a file.
pub(super) const MAGIC_BYTES: usize = 10;

/// Compression format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// gzip (RFC 1952), including several members (`cat a.gz b.gz`, `bgzip`).
    Gzip,
    /// zstd (RFC 8878), including several frames.
    Zstd,
    /// bzip2, including several streams (`pbzip2`).
    Bzip2,
    /// xz, including several streams.
    Xz,
}

impl Packing {
    const ALL: [Packing; 4] = [Packing::Gzip, Packing::Zstd, Packing::Bzip2, Packing::Xz];

    /// Detects the format by the first [`MAGIC_BYTES`], or all bytes of a shorter file.
    pub(super) fn of(first: &[u8]) -> Option<Packing> {
        match first {
            [0x1f, 0x8b, ..] => Some(Packing::Gzip),
            // The second pattern is a skippable frame, with which seekable files and those of pzstd may start.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Packing::Zstd),
            // Text may start with BZh9, but hardly with the number after it; the second pattern is an empty stream.
            [
                b'B',
                b'Z',
                b'h',
                b'1'..=b'9',
                0x31,
                0x41,
                0x59,
                0x26,
                0x53,
                0x59,
                ..,
            ]
            | [
                b'B',
                b'Z',
                b'h',
                b'1'..=b'9',
                0x17,
                0x72,
                0x45,
                0x38,
                0x50,
                0x90,
                ..,
            ] => Some(Packing::Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packing::Xz),
            _ => None,
        }
    }

    /// Returns the format indicated by the name, for a file too short to detect.
    pub(super) fn begun(first: &[u8], path: &Path) -> Option<Packing> {
        let magic: &[u8] = match Packing::of_name(path)? {
            Packing::Gzip => &[0x1f, 0x8b],
            Packing::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
            Packing::Bzip2 => b"BZh",
            Packing::Xz => &[0xfd, b'7', b'z', b'X', b'Z', 0],
        };
        let is_begun = first.len() < MAGIC_BYTES && !first.is_empty();
        let is_its = magic.starts_with(first) || first.starts_with(magic);
        Packing::of_name(path).filter(|_| is_begun && is_its)
    }

    /// Returns the format indicated by the file name.
    pub fn of_name(path: &Path) -> Option<Packing> {
        let ending = path.extension()?.to_str()?;
        let is_its = |packing: &Packing| packing.ending().eq_ignore_ascii_case(ending);
        Packing::ALL.into_iter().find(is_its)
    }

    /// Returns the file extension: `gz`, `zst`, `bz2` or `xz`.
    pub fn ending(self) -> &'static str {
        match self {
            Packing::Gzip => "gz",
            Packing::Zstd => "zst",
            Packing::Bzip2 => "bz2",
            Packing::Xz => "xz",
        }
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
            Packing::Bzip2 => "bzip2",
            Packing::Xz => "xz",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_decide_and_text_is_none() {
        for text in ["", "a", "BZh9,b\n1,2\n", "BZh91AY", "{\"a\":1}", "P*M"] {
            assert_eq!(Packing::of(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Packing::of(b"BZh91AY&SY"), Some(Packing::Bzip2));
        assert_eq!(
            Packing::of(&[0x1f, 0x8b]),
            Some(Packing::Gzip),
            "cut off, but no text"
        );
    }

    #[test]
    fn names_tell_whatever_their_case() {
        let told = |name: &str| Packing::of_name(Path::new(name));
        assert_eq!(told("a/u.csv.GZ"), Some(Packing::Gzip));
        assert_eq!(told("u.zst"), Some(Packing::Zstd));
        assert_eq!(told("u.csv"), None);
        assert_eq!(told("gz"), None);
    }
}
