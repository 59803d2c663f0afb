//! Checkpoint format: items that are settled or parked above the watermark, and an extension section.
//!
//! The format is described below; golden files in `tests/golden/checkpoint` pin version 1 for good. The codec never
//! panics and never guesses: anything that a writer wouldn't produce is [`Corrupt`], and the task stops
//! (`checkpoint_corrupt`) instead of running items again or, worse, leaving some out.
//!
//! ```text
//! 0xB7, version 1, encoding {0 empty, 1 bitmap, 2 runs}, flags 0
//! varint span         highest index of the set − watermark; 0 when the set is empty
//! u64le  watermark    must equal the row's column
//! bitmap              ceil(span / 8) bytes; bit j ⇔ watermark + 1 + j is in the set; unused bits 0
//! runs                varint lengths, in turn not in the set and in the set; their sum is span
//! varint length, and that many bytes of extension
//! u32le  CRC32C of everything before
//! ```

mod bytes;

use bytes::{Reader, push_varint};

use windrow_words::checkpoint as say;

use super::ids::ItemIndex;

/// Maximum span, in indexes; equals the largest window.
pub const SPAN_MAX: u32 = 1 << 20;

const MAGIC: u8 = 0xB7;
/// Newest version that this program reads and writes.
pub const VERSION: u8 = 1;
/// Oldest version, which every program reads.
const VERSION_FIRST: u8 = 1;
const ENCODING_EMPTY: u8 = 0;
const ENCODING_BITMAP: u8 = 1;
const ENCODING_RUNS: u8 = 2;

/// Decoded checkpoint: the watermark and the set above it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Watermark: the first index that is neither settled nor parked; never in the set.
    pub watermark: ItemIndex,
    /// Extent of the set: its highest index is `watermark + span`; 0 if it is empty.
    pub span: u32,
    /// Bits of the set: bit j (bit j % 64 of word j / 64) ⇔ index `watermark + 1 + j` is in the set. As many words as
    /// `span` bits need; bits from `span` on are 0.
    pub words: Vec<u64>,
    /// Extension section, not interpreted here.
    pub extension: Vec<u8>,
}

impl Snapshot {
    /// True if the index is in the set.
    pub fn contains(&self, index: ItemIndex) -> bool {
        let Some(bit) = index
            .0
            .checked_sub(self.watermark.0 + 1)
            .filter(|bit| *bit < u64::from(self.span))
        else {
            return false;
        };
        let word = usize::try_from(bit / 64)
            .ok()
            .and_then(|word| self.words.get(word));
        word.is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// Returns the number of indexes in the set.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.span == 0
    }

    /// Returns the number of indexes from the watermark up to `end` that are not in the set.
    pub fn open_below(&self, end: ItemIndex) -> u64 {
        let all = end.0.saturating_sub(self.watermark.0);
        // The watermark itself has no bit: it is never in the set.
        let bits = all.saturating_sub(1);
        let within = |(word, at): (&u64, u64)| match bits.saturating_sub(at * 64) {
            64.. => *word,
            few => *word & ((1 << few) - 1),
        };
        let set = self.words.iter().zip(0..).map(within);
        all - set.map(|word| u64::from(word.count_ones())).sum::<u64>()
    }
}

/// Reason why bytes are not a checkpoint of this row. Callers must not guess their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    /// The data is truncated or empty.
    #[error("{}", say::cut_off())]
    Truncated,
    /// The checksum doesn't match the bytes.
    #[error("{}", say::wrong_sum(format!("{found:08x}"), format!("{made:08x}")))]
    Checksum {
        /// Checksum in the checkpoint.
        found: u32,
        /// Checksum computed from the bytes.
        made: u32,
    },
    /// The first byte is not the magic number.
    #[error("{}", say::wrong_mark(format!("{_0:#04x}")))]
    Magic(u8),
    /// The version is that of a newer program.
    #[error("{}", say::wrong_version(_0.to_string()))]
    Version(u8),
    /// The encoding is unknown.
    #[error("{}", say::wrong_encoding(_0.to_string()))]
    Encoding(u8),
    /// Reserved flags are set.
    #[error("{}", say::wrong_flags(format!("{_0:#04x}")))]
    Flags(u8),
    /// The checkpoint belongs to another state of the row.
    #[error("{}", say::wrong_watermark(found.to_string(), expected.to_string()))]
    Watermark {
        /// Watermark in the checkpoint.
        found: u64,
        /// Watermark in the row.
        expected: u64,
    },
    /// The span exceeds [`SPAN_MAX`] or doesn't fit the encoding.
    #[error("{}", say::wrong_span(_0.to_string()))]
    Span(u64),
    /// A number takes more than 10 bytes, or more than it needs.
    #[error("{}", say::long_number())]
    Varint,
    /// The highest bit isn't set, or one beyond it is.
    #[error("{}", say::bitmap_end())]
    Bitmap,
    /// The runs don't add up to the span, one other than the first is empty, or the last isn't in the set.
    #[error("{}", say::runs_end())]
    Runs,
    /// The extension section can't be read.
    #[error("{}", say::wrong_extension())]
    Extension,
    /// Bytes follow the extension section.
    #[error("{}", say::bytes_left(*_0))]
    Trailing(usize),
}

/// Encodes a checkpoint, in the smaller of the two encodings.
///
/// `words` is the set above the watermark as in [`Snapshot::words`]; zero words at the end are ignored. The window is
/// never larger than [`SPAN_MAX`] bits, so a caller can't exceed it.
///
/// ```
/// use windrow_core::checkpoint::{decode, encode};
/// use windrow_core::ids::ItemIndex;
///
/// let bytes = encode(ItemIndex(100), &[0b101], &[]); // 101 and 103 are settled
/// let snapshot = decode(&bytes, ItemIndex(100)).expect("just written");
/// assert!(snapshot.contains(ItemIndex(103)) && !snapshot.contains(ItemIndex(102)));
/// ```
///
/// # Panics
/// If the set reaches beyond [`SPAN_MAX`].
pub fn encode(watermark: ItemIndex, words: &[u64], extension: &[u8]) -> Vec<u8> {
    encode_as(VERSION, watermark, words, extension)
}

/// Returns the newest version that this program writes and all of these readers read.
pub fn version_for(readers: impl IntoIterator<Item = u8>) -> u8 {
    readers.into_iter().fold(VERSION, u8::min).max(VERSION_FIRST)
}

/// Returns the format version of these bytes; `None` if they are not a checkpoint.
pub fn version_of(bytes: &[u8]) -> Option<u8> {
    if let [MAGIC, version, ..] = bytes {
        Some(*version)
    } else {
        None
    }
}

/// Encodes like [`encode`], in the version that [`version_for`] chose, so that older nodes can resume from what newer
/// ones saved.
///
/// # Panics
/// As [`encode`] does.
pub fn encode_as(version: u8, watermark: ItemIndex, words: &[u64], extension: &[u8]) -> Vec<u8> {
    // All versions so far differ only in their number; a later one branches here.
    let version = version.clamp(VERSION_FIRST, VERSION);
    let span = span_of(words);
    assert!(
        span <= SPAN_MAX,
        "a window of more than {SPAN_MAX} items can't be checkpointed"
    );
    let runs = if span == 0 {
        None
    } else {
        runs_if_smaller(words, span)
    };
    let encoding = match (span, &runs) {
        (0, _) => ENCODING_EMPTY,
        (_, Some(_)) => ENCODING_RUNS,
        (_, None) => ENCODING_BITMAP,
    };
    let mut out = Vec::with_capacity(32 + bitmap_bytes(span) + extension.len());
    out.extend([MAGIC, version, encoding, 0]);
    push_varint(&mut out, u64::from(span));
    out.extend(watermark.0.to_le_bytes());
    match runs {
        Some(runs) => out.extend(runs),
        None => out.extend(
            words
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .take(bitmap_bytes(span)),
        ),
    }
    push_varint(&mut out, extension.len() as u64);
    out.extend(extension);
    let checksum = crc32c::crc32c(&out);
    out.extend(checksum.to_le_bytes());
    out
}

fn bitmap_bytes(span: u32) -> usize {
    span.div_ceil(8) as usize
}

/// Returns one past the highest bit that is set.
fn span_of(words: &[u64]) -> u32 {
    let Some(last) = words.iter().rposition(|word| *word != 0) else {
        return 0;
    };
    let bits = last as u64 * 64 + u64::from(64 - words[last].leading_zeros());
    u32::try_from(bits).unwrap_or(u32::MAX)
}

/// Encodes the set as runs; `None` once that is no smaller than the bitmap. The cap keeps it cheap: a set full of
/// holes is encoded only up to the size of the bitmap.
fn runs_if_smaller(words: &[u64], span: u32) -> Option<Vec<u8>> {
    let mut runs = Vec::new();
    let (mut at, mut in_set) = (0, false);
    while at < span {
        let end = run_end(words, at, in_set, span);
        push_varint(&mut runs, u64::from(end - at));
        if runs.len() >= bitmap_bytes(span) {
            return None;
        }
        (at, in_set) = (end, !in_set);
    }
    Some(runs)
}

/// Returns the first bit from `at` on that is not `in_set`, or `span`.
fn run_end(words: &[u64], at: u32, in_set: bool, span: u32) -> u32 {
    let flip = if in_set { u64::MAX } else { 0 };
    let mut word_no = (at / 64) as usize;
    let mut others = (words[word_no] ^ flip) & (u64::MAX << (at % 64));
    while others == 0 {
        word_no += 1;
        match words.get(word_no) {
            Some(word) if word_no < span.div_ceil(64) as usize => others = word ^ flip,
            _ => return span,
        }
    }
    (word_no as u32 * 64 + others.trailing_zeros()).min(span)
}

/// Decodes a checkpoint. Empty input is an error too: before the first checkpoint there is nothing to decode.
///
/// # Errors
/// [`Corrupt`] for anything that a writer wouldn't produce.
pub fn decode(bytes: &[u8], expected_watermark: ItemIndex) -> Result<Snapshot, Corrupt> {
    let mut reader = Reader(check_sum(bytes)?);
    let encoding = read_head(&mut reader)?;
    let span = read_span(&mut reader, encoding)?;
    let watermark = u64::from_le_bytes(reader.take_array()?);
    if watermark != expected_watermark.0 {
        return Err(Corrupt::Watermark {
            found: watermark,
            expected: expected_watermark.0,
        });
    }
    let words = match encoding {
        ENCODING_EMPTY => Vec::new(),
        ENCODING_BITMAP => read_bitmap(&mut reader, span)?,
        _ => read_runs(&mut reader, span)?,
    };
    let extension_bytes = reader.take_varint()?;
    let extension_bytes = usize::try_from(extension_bytes).map_err(|_| Corrupt::Truncated)?;
    let extension = reader.take(extension_bytes)?.to_vec();
    match reader.0.len() {
        0 => Ok(Snapshot {
            watermark: ItemIndex(watermark),
            span,
            words,
            extension,
        }),
        left => Err(Corrupt::Trailing(left)),
    }
}

/// Verifies the checksum and returns everything before it. A newer version may put it elsewhere, so the head is
/// checked first.
fn check_sum(bytes: &[u8]) -> Result<&[u8], Corrupt> {
    let (body, sum) = bytes.split_last_chunk::<4>().ok_or(Corrupt::Truncated)?;
    match *body {
        [MAGIC, VERSION, ..] => {}
        [MAGIC, version, ..] => return Err(Corrupt::Version(version)),
        [other, ..] => return Err(Corrupt::Magic(other)),
        [] => return Err(Corrupt::Truncated),
    }
    let (found, made) = (u32::from_le_bytes(*sum), crc32c::crc32c(body));
    if found == made {
        Ok(body)
    } else {
        Err(Corrupt::Checksum { found, made })
    }
}

fn read_head(reader: &mut Reader<'_>) -> Result<u8, Corrupt> {
    match reader.take_array()? {
        [_, _, encoding, _] if encoding > ENCODING_RUNS => Err(Corrupt::Encoding(encoding)),
        [_, _, encoding, 0] => Ok(encoding),
        [_, _, _, flags] => Err(Corrupt::Flags(flags)),
    }
}

fn read_span(reader: &mut Reader<'_>, encoding: u8) -> Result<u32, Corrupt> {
    let span = reader.take_varint()?;
    let is_empty = encoding == ENCODING_EMPTY;
    match u32::try_from(span) {
        Ok(fits) if fits <= SPAN_MAX && (fits == 0) == is_empty => Ok(fits),
        _ => Err(Corrupt::Span(span)),
    }
}

fn read_bitmap(reader: &mut Reader<'_>, span: u32) -> Result<Vec<u64>, Corrupt> {
    let bytes = reader.take(bitmap_bytes(span))?;
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let words: Vec<u64> = words.collect();
    if span_of(&words) == span {
        Ok(words)
    } else {
        Err(Corrupt::Bitmap)
    }
}

fn read_runs(reader: &mut Reader<'_>, span: u32) -> Result<Vec<u64>, Corrupt> {
    let mut words = vec![0; span.div_ceil(64) as usize];
    let (mut at, mut in_set) = (0_u32, false);
    while at < span {
        let len = reader.take_varint()?;
        let is_sound = len <= u64::from(span - at) && (len > 0 || at == 0 && !in_set);
        let len = u32::try_from(len)
            .ok()
            .filter(|_| is_sound)
            .ok_or(Corrupt::Runs)?;
        if in_set {
            set_bits(&mut words, at, at + len);
        }
        (at, in_set) = (at + len, !in_set);
    }
    // `in_set` was flipped after the last run: the highest index must be in the set.
    if in_set { Err(Corrupt::Runs) } else { Ok(words) }
}

fn set_bits(words: &mut [u64], from: u32, to: u32) {
    for (word, base) in words
        .iter_mut()
        .zip((0_u32..).step_by(64))
        .skip((from / 64) as usize)
    {
        if base >= to {
            break;
        }
        let low = from.saturating_sub(base);
        let high = (to - base).min(64);
        *word |= (u64::MAX << low) & (u64::MAX >> (64 - high));
    }
}
