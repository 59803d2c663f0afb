//! Outputs packed as bytes: one `INDEX JSON` line each, in index order, as one zstd frame with a checksum.

use std::io::Read;
use windrow_words::store as say;

use windrow_core::ids::ItemIndex;
use windrow_core::items::output::OUTPUT_KEPT_MAX;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::results::{ItemOutput, SEGMENT_BYTES};

/// Fastest of the common zstd levels: uniform JSON shrinks to a fraction at any of them.
const LEVEL: i32 = 1;
/// Upper bound of an unpacked segment: one output beyond the segment size, plus an index per byte.
const UNPACKED_MAX: u64 = (24 * SEGMENT_BYTES + OUTPUT_KEPT_MAX) as u64;

/// Packs outputs into bytes.
///
/// # Errors
/// If the compressor runs out of memory.
pub(crate) fn pack(outputs: &[ItemOutput]) -> Result<Vec<u8>, StoreError> {
    let bytes: usize = outputs.iter().map(|output| output.json.len() + 21).sum();
    let mut lines = String::with_capacity(bytes);
    for output in outputs {
        lines.push_str(&output.index.0.to_string());
        lines.push(' ');
        lines.push_str(&output.json);
        lines.push('\n');
    }
    let compressed = zstd::bulk::Compressor::new(LEVEL).and_then(|mut compressor| {
        compressor.include_checksum(true)?;
        compressor.compress(lines.as_bytes())
    });
    compressed.map_err(|error| StoreError::Refused(say::not_packed(error.to_string()).to_string()))
}

/// Unpacks outputs from bytes.
///
/// # Errors
/// A description of the damage.
pub(crate) fn unpack(body: &[u8]) -> Result<Vec<ItemOutput>, String> {
    let mut lines = String::new();
    zstd::stream::read::Decoder::with_buffer(body)
        .and_then(|decoder| decoder.take(UNPACKED_MAX).read_to_string(&mut lines))
        .map_err(|error| error.to_string())?;
    lines.lines().map(line).collect()
}

fn line(line: &str) -> Result<ItemOutput, String> {
    let parts = line
        .split_once(' ')
        .and_then(|(index, json)| Some((index.parse().ok()?, json)));
    let (index, json) = parts.ok_or_else(|| say::line_without_index().to_string())?;
    Ok(ItemOutput {
        index: ItemIndex(index),
        json: json.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs() -> Vec<ItemOutput> {
        let output = |index: u64| ItemOutput {
            index: ItemIndex(index),
            json: format!(r#"{{"n":{index},"text":"ä b\n"}}"#).into(),
        };
        (7..2000).map(output).collect()
    }

    #[test]
    fn what_was_packed_comes_back_and_is_smaller() {
        let packed = pack(&outputs()).expect("it can be packed");
        let plain: usize = outputs().iter().map(|output| output.json.len()).sum();
        assert!(packed.len() * 3 < plain, "{} of {plain}", packed.len());
        assert_eq!(unpack(&packed), Ok(outputs()));
    }

    #[test]
    fn a_changed_byte_and_a_cut_end_are_told() {
        let packed = pack(&outputs()).expect("it can be packed");
        assert!(unpack(&packed[..packed.len() - 1]).is_err());
        for at in [4, packed.len() / 2, packed.len() - 1] {
            let mut damaged = packed.clone();
            damaged[at] ^= 1;
            assert!(unpack(&damaged).is_err(), "byte {at}");
        }
    }
}
