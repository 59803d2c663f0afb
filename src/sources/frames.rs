//! Storage of unpacked rows: each block of the index is a separate zstd frame, so that a block can be read without
//! the ones before it. A table of frame sizes ends the file.
//!
//! The layout is zstd's "seekable format", which `zstd -dc` reads like any other file. The blocks' checksums show if
//! the bytes are still those that were indexed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::block_index::{BlockIndex, DamagedIndex, Located};

/// Fastest regular level of zstd: people wait for the copy, and it is read once or twice.
const LEVEL: i32 = 1;
/// Magic number of a frame that readers of rows skip: the table.
const SKIPPED: u32 = 0x184D_2A5E;
/// Magic number at the end of the table.
const SEEKABLE: u32 = 0x8F92_EAB1;
/// Bytes before and after the entries of the table.
const HEAD_BYTES: usize = 8;
pub(super) const FOOT_BYTES: usize = 9;
const ENTRY_BYTES: usize = 8;

/// Compressor of single blocks. Holds the output not yet taken, and eight bytes per block.
pub(super) struct Packer {
    compressor: zstd::bulk::Compressor<'static>,
    table: Vec<u8>,
    out: Vec<u8>,
    failed: Option<io::Error>,
}

impl Packer {
    /// Creates an empty packer.
    ///
    /// # Errors
    /// Fails if memory runs out.
    pub(super) fn new() -> io::Result<Packer> {
        Ok(Packer {
            compressor: zstd::bulk::Compressor::new(LEVEL)?,
            table: Vec::new(),
            out: Vec::new(),
            failed: None,
        })
    }

    /// Compresses the next block. [`Packer::take`] reports any failure.
    pub(super) fn add(&mut self, block: &[u8]) {
        match self.compressor.compress(block) {
            Ok(frame) => match (u32::try_from(frame.len()), u32::try_from(block.len())) {
                (Ok(packed), Ok(unpacked)) => {
                    self.table.extend_from_slice(&packed.to_le_bytes());
                    self.table.extend_from_slice(&unpacked.to_le_bytes());
                    self.out.extend_from_slice(&frame);
                }
                _ => self.failed = Some(io::Error::other("a block is larger than 4 GiB")),
            },
            Err(error) => self.failed = Some(error),
        }
    }

    /// Takes the output since the last call.
    ///
    /// # Errors
    /// Fails if a block could not be compressed.
    pub(super) fn take(&mut self) -> io::Result<Vec<u8>> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut self.out)),
        }
    }

    /// Returns the table, to be written last.
    pub(super) fn table(&self) -> Vec<u8> {
        let count = u32::try_from(self.table.len() / ENTRY_BYTES).unwrap_or(u32::MAX);
        let size = u32::try_from(self.table.len() + FOOT_BYTES).unwrap_or(u32::MAX);
        let head = [SKIPPED.to_le_bytes(), size.to_le_bytes()].concat();
        let foot = [&count.to_le_bytes()[..], &[0], &SEEKABLE.to_le_bytes()].concat();
        [head, self.table.clone(), foot].concat()
    }
}

/// End of each frame, in the file and in the unpacked data.
#[derive(Debug)]
pub(super) struct Frames(Vec<(u64, u64)>);

impl Frames {
    /// Reads the table of a file with `len` bytes; `None` if it has none.
    pub(super) fn of_file(file: &File, len: u64) -> io::Result<Option<Frames>> {
        Frames::read(len, |bytes, at| file.read_exact_at(bytes, at))
    }

    /// Returns the size of the table, given the last [`FOOT_BYTES`] of the file.
    pub(super) fn tail_bytes(foot: &[u8]) -> Option<u64> {
        let [a, b, c, d, ..] = foot else { return None };
        let entries = u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
        Some(entries * ENTRY_BYTES as u64 + FOOT_BYTES as u64)
    }

    /// Reads the table at the end of any `len` bytes; `None` if there is none.
    pub(super) fn read(
        len: u64,
        read_at: impl Fn(&mut [u8], u64) -> io::Result<()>,
    ) -> io::Result<Option<Frames>> {
        let mut foot = [0; FOOT_BYTES];
        let Some(foot_at) = len.checked_sub(FOOT_BYTES as u64) else {
            return Ok(None);
        };
        read_at(&mut foot, foot_at)?;
        let [count, magic] = [
            [foot[0], foot[1], foot[2], foot[3]],
            [foot[5], foot[6], foot[7], foot[8]],
        ];
        let size = u64::from(u32::from_le_bytes(count)) * ENTRY_BYTES as u64;
        let table_at = foot_at.checked_sub(size).filter(|at| *at >= HEAD_BYTES as u64);
        let (Some(table_at), SEEKABLE) = (table_at, u32::from_le_bytes(magic)) else {
            return Ok(None);
        };
        // Bounded by the file size.
        let mut table = vec![0; usize::try_from(size).unwrap_or(0)];
        read_at(&mut table, table_at)?;
        let (entries, _) = table.as_chunks::<ENTRY_BYTES>();
        let mut ends = Vec::with_capacity(entries.len());
        let (mut packed, mut unpacked) = (0_u64, 0_u64);
        for [a, b, c, d, e, f, g, h] in entries {
            packed += u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
            unpacked += u64::from(u32::from_le_bytes([*e, *f, *g, *h]));
            ends.push((packed, unpacked));
        }
        Ok((packed + HEAD_BYTES as u64 == table_at).then_some(Frames(ends)))
    }

    /// Returns the total of unpacked bytes.
    pub(super) fn unpacked(&self) -> u64 {
        self.0.last().map_or(0, |(_, unpacked)| *unpacked)
    }

    /// Returns the first bytes of the first block, up to a maximum.
    pub(super) fn first(&self, file: &File, most: usize) -> io::Result<Vec<u8>> {
        let (packed, _) = self.0.first().copied().unwrap_or_default();
        let mut frame = vec![0; usize::try_from(packed).unwrap_or(0)];
        file.read_exact_at(&mut frame, 0)?;
        let mut first = Vec::new();
        let decoder = zstd::stream::read::Decoder::with_buffer(&frame[..])?;
        decoder.take(most as u64).read_to_end(&mut first)?;
        Ok(first)
    }

    /// Checks that each frame matches a block of the index.
    ///
    /// # Errors
    /// Fails if they belong to different files.
    pub(super) fn fit(&self, index: &BlockIndex) -> Result<(), DamagedIndex> {
        let blocks = index.blocks();
        let begins = std::iter::once(0).chain(self.0.iter().map(|(_, unpacked)| *unpacked));
        if blocks.len() == self.0.len()
            && blocks
                .iter()
                .zip(begins)
                .all(|(block, begin)| block.offset == begin)
        {
            Ok(())
        } else {
            Err(DamagedIndex(
                "its blocks don't match the unpacked copy".to_owned(),
            ))
        }
    }

    /// Returns the byte range of a block in the file.
    pub(super) fn place(&self, block: &Located) -> std::ops::Range<u64> {
        let end = |number: usize| self.0.get(number).map_or(0, |(packed, _)| *packed);
        block.number.checked_sub(1).map_or(0, end)..end(block.number)
    }
}

/// Bytes unpacked so far, for [`unpacked_bytes`].
static UNPACKED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of bytes that this process has unpacked, including whole passes: the cost of compressed
/// sources.
pub fn unpacked_bytes() -> u64 {
    UNPACKED.load(Ordering::Relaxed)
}

/// Adds to the count of unpacked bytes.
pub(super) fn count_unpacked(bytes: usize) {
    UNPACKED.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Unpacks a block; `None` if the bytes are not a frame of `len` bytes.
pub(super) fn unpack(frame: &[u8], len: usize) -> Option<Vec<u8>> {
    let bytes = zstd::bulk::decompress(frame, len).ok()?;
    count_unpacked(bytes.len());
    (bytes.len() == len).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_index::Block;
    use windrow_core::ids::ItemIndex;

    fn packed(blocks: &[&[u8]]) -> (Vec<u8>, BlockIndex) {
        let mut packer = Packer::new().expect("there is memory");
        let (mut index, mut offset) = (Vec::new(), 0);
        for (number, block) in blocks.iter().enumerate() {
            packer.add(block);
            index.push(Block {
                first_row: number as u64,
                offset,
                checksum: 0,
            });
            offset += block.len() as u64;
        }
        let mut file = packer.take().expect("it compresses");
        file.extend(packer.table());
        (
            file,
            BlockIndex::new(index, blocks.len() as u64, offset).expect("it is well formed"),
        )
    }

    fn frames(file: &[u8]) -> Option<Frames> {
        let read_at = |bytes: &mut [u8], at: u64| {
            let at = usize::try_from(at).expect("small");
            bytes.copy_from_slice(
                file.get(at..at + bytes.len())
                    .ok_or(io::ErrorKind::UnexpectedEof)?,
            );
            Ok(())
        };
        Frames::read(file.len() as u64, read_at).ok().flatten()
    }

    #[test]
    fn each_block_is_read_alone_and_all_of_them_as_one_zstd_file() {
        let blocks: [&[u8]; 3] = [b"id\n1\n", b"2\n3\n", b"4\n"];
        let (file, index) = packed(&blocks);
        let frames = frames(&file).expect("it has a table");
        assert_eq!(frames.fit(&index), Ok(()));
        assert_eq!(frames.unpacked(), 11);
        for (number, block) in blocks.iter().enumerate() {
            let located = index.locate(ItemIndex(number as u64)).expect("it is there");
            let place = frames.place(&located);
            let frame = &file[place.start as usize..place.end as usize];
            assert_eq!(unpack(frame, block.len()).as_deref(), Some(*block));
            assert_eq!(unpack(frame, block.len() + 1), None, "another length");
        }
        assert_eq!(zstd::decode_all(&file[..]).expect("it is zstd"), blocks.concat());
    }

    #[test]
    fn a_file_that_was_cut_off_or_is_of_another_index_is_noticed() {
        let (file, _) = packed(&[b"a\n", b"b\n"]);
        for end in 0..file.len() {
            assert!(frames(&file[..end]).is_none(), "{end}");
        }
        let (_, other) = packed(&[b"a\nb\n"]);
        assert!(frames(&file).expect("it has a table").fit(&other).is_err());
    }
}
