//! How the tests compress, and a source of rows that are long enough for several blocks.

use std::io::Write;

use windrow_sources::Packing;

pub(crate) const ALL: [Packing; 4] = [Packing::Gzip, Packing::Zstd, Packing::Bzip2, Packing::Xz];

/// The bytes as one member.
pub(crate) fn pack(packing: Packing, bytes: &[u8]) -> Vec<u8> {
    match packing {
        Packing::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).expect("memory takes it");
            encoder.finish().expect("memory takes it")
        }
        Packing::Zstd => {
            // With a checksum, as the program writes it.
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).expect("there is memory");
            encoder.include_checksum(true).expect("it is a setting");
            encoder.write_all(bytes).expect("memory takes it");
            encoder.finish().expect("memory takes it")
        }
        Packing::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(bytes).expect("memory takes it");
            encoder.finish().expect("memory takes it")
        }
        Packing::Xz => {
            let options = lzma_rust2::XzOptions::with_preset(0);
            let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).expect("there is memory");
            encoder.write_all(bytes).expect("memory takes it");
            encoder.finish().expect("memory takes it")
        }
    }
}

/// So many numbered rows of some length, with a header.
pub(crate) fn table(rows: u64) -> String {
    let mut text = "id,name\n".to_owned();
    for row in 0..rows {
        text += &format!("{row},user {}\n", row.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
    text
}
