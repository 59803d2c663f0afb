//! The rows of a block as JSON, one behind the other.

use std::ops::Range;

use bytes::Bytes;

use super::fault::FaultKind;
use windrow_core::ids::ItemIndex;
use windrow_engine::ports::sources::source::RowChunk;

/// So many bytes are copied at once where a text has at most as many: a copy of a known length is two instructions, and one of
/// an unknown length a call.
pub(super) const SHORT: usize = 32;

/// Rows that are being written.
#[derive(Debug)]
pub(super) struct JsonRows {
    /// Room, of which `len` bytes are written.
    buffer: Vec<u8>,
    len: usize,
    /// One past the last byte of each row.
    ends: Vec<u32>,
}

impl JsonRows {
    /// Room for so many rows in so many bytes; there may be more.
    pub(super) fn with_room(rows: usize, bytes: usize) -> JsonRows {
        JsonRows {
            buffer: vec![0; bytes + SHORT],
            len: 0,
            ends: Vec::with_capacity(rows),
        }
    }

    /// Appends a text to the row.
    pub(super) fn push(&mut self, text: &[u8]) {
        let end = self.len + text.len();
        if end > self.buffer.len() {
            self.buffer.resize(end.max(self.buffer.len() * 2), 0);
        }
        self.buffer[self.len..end].copy_from_slice(text);
        self.len = end;
    }

    /// Appends a part of a text to the row.
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

    /// Ends the row.
    ///
    /// # Errors
    /// When there are more bytes than a chunk may have.
    pub(super) fn end_row(&mut self) -> Result<(), FaultKind> {
        self.ends
            .push(u32::try_from(self.len).map_err(|_| FaultKind::TooLong)?);
        Ok(())
    }

    /// Takes back what was written of a row that isn't ended.
    pub(super) fn drop_open_row(&mut self) {
        self.len = self.ends.last().map_or(0, |end| *end as usize);
    }

    /// How many rows are ended.
    pub(super) fn count(&self) -> u64 {
        self.ends.len() as u64
    }

    /// All of them, from this index on.
    pub(super) fn into_chunk(mut self, first: ItemIndex) -> RowChunk {
        self.buffer.truncate(self.len);
        RowChunk::new(first, Bytes::from(self.buffer), self.ends)
    }
}
