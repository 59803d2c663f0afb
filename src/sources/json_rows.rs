//! Rows of a block as JSON, in one buffer.

use std::ops::Range;

use bytes::Bytes;

use super::fault::FaultKind;
use windrow_core::ids::ItemIndex;
use windrow_engine::ports::sources::source::RowChunk;

/// Length of a fixed-size copy for texts up to this size. A copy of known length takes two instructions, one of
/// unknown length is a call.
pub(super) const SHORT: usize = 32;

/// Buffer for rows being written.
#[derive(Debug)]
pub(super) struct JsonRows {
    /// Buffer of which `len` bytes are written.
    buffer: Vec<u8>,
    len: usize,
    /// End of each row, exclusive.
    ends: Vec<u32>,
}

impl JsonRows {
    /// Creates a buffer with room for this many rows and bytes; it can grow.
    pub(super) fn with_room(rows: usize, bytes: usize) -> JsonRows {
        JsonRows {
            buffer: vec![0; bytes + SHORT],
            len: 0,
            ends: Vec::with_capacity(rows),
        }
    }

    /// Appends text to the open row.
    pub(super) fn push(&mut self, text: &[u8]) {
        let end = self.len + text.len();
        if end > self.buffer.len() {
            self.buffer.resize(end.max(self.buffer.len() * 2), 0);
        }
        self.buffer[self.len..end].copy_from_slice(text);
        self.len = end;
    }

    /// Appends a range of a text to the open row.
    #[inline(always)]
    pub(super) fn push_of(&mut self, text: &[u8], part: Range<usize>) {
        let from = text.get(part.start..).and_then(<[u8]>::first_chunk::<SHORT>);
        let to = self
            .buffer
            .get_mut(self.len..)
            .and_then(<[u8]>::first_chunk_mut::<SHORT>);
        match (from, to) {
            (Some(from), Some(to)) if part.len() <= SHORT => {
                *to = *from;
                self.len += part.len();
            }
            _ => self.push(&text[part]),
        }
    }

    /// Ends the open row.
    ///
    /// # Errors
    /// Fails if there are more bytes than a chunk may have.
    pub(super) fn end_row(&mut self) -> Result<(), FaultKind> {
        self.ends
            .push(u32::try_from(self.len).map_err(|_| FaultKind::TooLong)?);
        Ok(())
    }

    /// Discards the open row.
    pub(super) fn drop_open_row(&mut self) {
        self.len = self.ends.last().map_or(0, |end| *end as usize);
    }

    /// Returns the number of ended rows.
    pub(super) fn count(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Converts all rows to a chunk that starts at an index.
    pub(super) fn into_chunk(mut self, first: ItemIndex) -> RowChunk {
        self.buffer.truncate(self.len);
        RowChunk::new(first, Bytes::from(self.buffer), self.ends)
    }
}
