//! Index of a file's blocks: the offset, first row and checksum of each.
//!
//! Blocks are contiguous and cover every byte of the file, including the header and blank lines. The index is in
//! memory while a task runs (24 bytes per block, at most a few megabytes per terabyte). It is stored in parts of at
//! most 64 KiB, each with its own checksum.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use windrow_core::ids::ItemIndex;

/// Maximum size of a stored part, in bytes: small enough for the default limits of every database.
pub const PART_BYTES_MAX: usize = 64 * 1024;
/// First bytes of each part; the last character is the layout version.
const MAGIC: &[u8; 8] = b"wdr-idx1";
const ENTRY_BYTES: usize = 24;
const ENTRIES_PER_PART: usize = (PART_BYTES_MAX - MAGIC.len() - 8) / ENTRY_BYTES;

/// Start of a block, which ends where the next one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of rows before the block.
    pub first_row: u64,
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// XXH3 (64 bits) of the block's bytes.
    pub checksum: u64,
}

/// A block with both its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Number of the block, from 0.
    pub number: usize,
    /// Rows of the block, as item indexes.
    pub rows: Range<u64>,
    /// Byte range of the block in the file.
    pub bytes: Range<u64>,
    /// XXH3 (64 bits) of the block's bytes.
    pub checksum: u64,
}

/// Index of all blocks of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockIndex {
    blocks: Vec<Block>,
    rows: u64,
    bytes: u64,
}

/// The stored parts are not a valid index of this file; indexing it again helps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored index is damaged: {0}")]
pub struct DamagedIndex(pub String);

impl BlockIndex {
    /// Builds the index of a file with `bytes` bytes and `rows` rows. Blocks are in file order, the first at 0.
    ///
    /// # Errors
    /// Fails if the blocks can't belong to such a file.
    pub fn new(blocks: Vec<Block>, rows: u64, bytes: u64) -> Result<BlockIndex, DamagedIndex> {
        let begins = blocks
            .first()
            .is_some_and(|block| block.offset == 0 && block.first_row == 0);
        let grows = blocks
            .windows(2)
            .all(|w| w[0].offset < w[1].offset && w[0].first_row <= w[1].first_row);
        let ends = blocks
            .last()
            .is_some_and(|block| block.offset < bytes && block.first_row <= rows);
        if begins && grows && ends {
            Ok(BlockIndex { blocks, rows, bytes })
        } else {
            Err(DamagedIndex("its blocks are not contiguous".to_owned()))
        }
    }

    /// Returns all blocks in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the block with a row, or `None` past the last row.
    pub fn locate(&self, at: ItemIndex) -> Option<Located> {
        if at.0 >= self.rows {
            return None;
        }
        // Blocks without rows (only blank lines) share `first_row` with the next block; the last of them has the row.
        let after = self.blocks.partition_point(|block| block.first_row <= at.0);
        let number = after - 1;
        let block = self.blocks[number];
        let next = self.blocks.get(after);
        let rows_end = next.map_or(self.rows, |next| next.first_row);
        let bytes_end = next.map_or(self.bytes, |next| next.offset);
        let (rows, bytes) = (block.first_row..rows_end, block.offset..bytes_end);
        Some(Located {
            number,
            rows,
            bytes,
            checksum: block.checksum,
        })
    }

    /// Serializes the index into parts to store.
    pub fn to_parts(&self) -> Vec<Vec<u8>> {
        self.blocks.chunks(ENTRIES_PER_PART).map(encode).collect()
    }

    /// Restores the index of a file with `bytes` bytes and `rows` rows from its stored parts.
    ///
    /// # Errors
    /// Fails if a part is damaged or they don't belong to such a file.
    pub fn from_parts(parts: &[Vec<u8>], rows: u64, bytes: u64) -> Result<BlockIndex, DamagedIndex> {
        let mut blocks = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let entries = decode(part).ok_or_else(|| DamagedIndex(format!("part {number} is unreadable")))?;
            blocks.extend(entries);
        }
        BlockIndex::new(blocks, rows, bytes)
    }
}

fn encode(blocks: &[Block]) -> Vec<u8> {
    let mut part = Vec::with_capacity(MAGIC.len() + blocks.len() * ENTRY_BYTES + 8);
    part.extend_from_slice(MAGIC);
    for block in blocks {
        for number in [block.first_row, block.offset, block.checksum] {
            part.extend_from_slice(&number.to_le_bytes());
        }
    }
    let checksum = xxh3_64(&part);
    part.extend_from_slice(&checksum.to_le_bytes());
    part
}

fn decode(part: &[u8]) -> Option<impl Iterator<Item = Block>> {
    let (sealed, checksum) = part.split_last_chunk::<8>()?;
    if xxh3_64(sealed) != u64::from_le_bytes(*checksum) {
        return None;
    }
    let (entries, rest) = sealed.strip_prefix(MAGIC)?.as_chunks::<ENTRY_BYTES>();
    rest.is_empty().then(|| entries.iter().map(decode_entry))
}

fn decode_entry(entry: &[u8; ENTRY_BYTES]) -> Block {
    let (numbers, _) = entry.as_chunks::<8>();
    let [first_row, offset, checksum] = [0, 1, 2].map(|i| u64::from_le_bytes(numbers[i]));
    Block {
        first_row,
        offset,
        checksum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(count: u64) -> BlockIndex {
        let blocks = (0..count)
            .map(|n| Block {
                first_row: n * 10,
                offset: n * 100,
                checksum: !n,
            })
            .collect();
        BlockIndex::new(blocks, count * 10, count * 100).expect("it is well formed")
    }

    #[test]
    fn an_index_reads_back_from_parts_that_fit_the_store() {
        let index = index(10_000);
        let parts = index.to_parts();
        assert_eq!(parts.len(), 4);
        assert!(parts.iter().all(|part| part.len() <= PART_BYTES_MAX));
        assert_eq!(BlockIndex::from_parts(&parts, 100_000, 1_000_000), Ok(index));
    }

    #[test]
    fn every_flipped_byte_of_a_part_is_noticed() {
        let parts = index(3).to_parts();
        for at in 0..parts[0].len() {
            let mut damaged = parts.clone();
            damaged[0][at] ^= 1;
            assert!(BlockIndex::from_parts(&damaged, 30, 300).is_err(), "byte {at}");
        }
    }

    #[test]
    fn missing_or_swapped_parts_are_noticed() {
        let mut parts = index(10_000).to_parts();
        assert!(BlockIndex::from_parts(&parts[1..], 100_000, 1_000_000).is_err());
        assert!(BlockIndex::from_parts(&[], 100_000, 1_000_000).is_err());
        parts.swap(0, 1);
        assert!(BlockIndex::from_parts(&parts, 100_000, 1_000_000).is_err());
    }

    #[test]
    fn a_row_is_found_in_the_block_that_holds_it_even_next_to_blocks_without_rows() {
        let block = |first_row, offset| Block {
            first_row,
            offset,
            checksum: offset,
        };
        let blocks = vec![block(0, 0), block(0, 5), block(3, 9), block(3, 12), block(4, 20)];
        let index = BlockIndex::new(blocks, 4, 25).expect("it is well formed");
        let found = |at| index.locate(ItemIndex(at)).map(|block| (block.rows, block.bytes));
        assert_eq!(found(0), Some((0..3, 5..9)));
        assert_eq!(found(2), Some((0..3, 5..9)));
        assert_eq!(found(3), Some((3..4, 12..20)));
        assert_eq!(found(4), None);
    }
}
